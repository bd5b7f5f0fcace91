"""Keep the memory of a running session up to date in the background: summaries and named events, for each view.

Protocol of use: subscribe `on` to the table's events, and run `run` as an actor. Call `finish` at the end.

Lines arrive here when they are on disk. What is due is decided by `RollingSummary`. A summariser may be slow or away:
if the lines of a view exceed their budget meanwhile, lines are selected instead. A new summary is stored, and posted to
the NPC, which changes its prompt between turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loguru import logger

from glyphoxa.actors.deadline import end_tasks
from glyphoxa.chronicle.summaries import LineSelection, LlmSummariser, in_order
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.events import SceneChanged, TableEvent, UtteranceKept, UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, NpcId, UtteranceId
from glyphoxa.prompt.conversation import RollingSummary
from glyphoxa.transcript.ports import SessionStates
from glyphoxa.transcript.sessions import DM_VIEW, SummarySentence, View

NEW_NPC: Final = "new_npc"
ITEM_ACQUIRED: Final = "item_acquired"
LOCATION_CHANGE: Final = "location_change"
DECISION_MADE: Final = "decision_made"
_FLAGS: Final = {"decision": DECISION_MADE, **dict.fromkeys(("gave", "bought", "took"), ITEM_ACQUIRED)}
"""Flags by the kind of a fact that the rules find in a line."""

SUMMARISE_MS: Final = 60_000
"""Deadline of a summariser with a model, with its pauses between requests. Then lines are selected."""
_LOGGED_MS: Final = 2_000
"""A summary is stored after its lines; if the log takes longer, with the next one."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """Where the states of the session are stored.

    Args:
        wait_until_logged: See `glyphoxa.transcript.delivery.Delivery`.
    """

    states: SessionStates
    wait_until_logged: Callable[[UtteranceId], Awaitable[bool]]


class SessionStateKeeper:
    """An actor, see the module's protocol of use.

    Args:
        views: The DM's view and those of all NPCs.
        selection: Replaces a summariser that is late or fails.
        tell: Gives an NPC a new summary, and the lines that it covers since the last one.
        stored: None without long-term memory.
        summarisers: Those of views that have a model. Lines of the others are selected, unless a model has summarised
            the same lines.
    """

    def __init__(
        self,
        views: Mapping[View, RollingSummary],
        selection: LineSelection,
        *,
        tell: Callable[[NpcId, Sequence[SummarySentence], Sequence[UtteranceId]], None],
        stored: StoredSession | None = None,
        summarisers: Mapping[View, LlmSummariser] | None = None,
    ) -> None:
        self._views = views
        self._selection = selection
        self._tell = tell
        self._stored = stored
        self._summarisers = summarisers or {}
        self._new: list[Utterance] = []
        self._happened: dict[View, set[str]] = {}
        self._unsaved: dict[View, set[str]] = {}
        self._place: EntityId | None = None
        self._met: dict[View, set[str]] = {view: {view} for view in views}
        """Names of those who spoke or were introduced, and the ids of NPCs that spoke."""
        self._work = asyncio.Event()
        self._is_over = asyncio.Event()
        self._updating = asyncio.Lock()
        """The actor and `finish` may update at the same time."""
        self._work.set()  # restored lines may be due

    def on(self, event: TableEvent) -> None:
        """Take an event of the table. Returns at once."""
        match event:
            case UtteranceKept(utterance):
                for view in self._views_of(utterance):
                    self._views[view].hear(utterance)
                self._look()
                self._new.append(utterance)
            case UtteranceRevised(utterance):
                for view in self._views_of(utterance):
                    self._views[view].revise(utterance)
            case UtteranceRetracted(utterance, is_retracted=True):
                for view in self._views_of(utterance):
                    self._views[view].retract(utterance.id)
            case SceneChanged(scene):
                if self._place not in (None, scene.location):
                    for view in (DM_VIEW, *map(View, scene.npcs)):
                        self._note(view, {LOCATION_CHANGE})
                self._place = scene.location
            case _:
                return
        self._work.set()

    async def run(self) -> None:
        """Run the actor."""
        while True:
            await self._work.wait()
            self._work.clear()
            async with self._updating:
                await self._update()

    async def finish(self) -> None:
        """Store what is not stored yet."""
        async with self._updating:
            await self._update()

    def _views_of(self, utterance: Utterance) -> list[View]:
        return [view for view in (DM_VIEW, *map(View, sorted(utterance.witnesses))) if view in self._views]

    def _look(self) -> None:
        """Note whether a view cannot wait for a model."""
        if any(rolling.is_over for rolling in self._views.values()):
            self._is_over.set()
        else:
            self._is_over.clear()

    def _note(self, view: View, names: set[str]) -> None:
        if view in self._views and names:
            self._happened.setdefault(view, set()).update(names)

    async def _update(self) -> None:
        new, self._new = self._new, []
        for utterance, (names, people) in zip(new, await asyncio.to_thread(self._events_in, new), strict=True):
            # What an NPC says is no evidence that somebody exists.
            appear: set[str] = people if utterance.npc_id is None else {utterance.npc_id}
            for view in self._views_of(utterance):
                met = self._met[view]
                if utterance.npc_id is None:
                    met.add(utterance.speaker_name)
                self._note(view, names | ({NEW_NPC} if appear - met else set()))
                met |= appear
        happened, self._happened = self._happened, {}
        self._look()
        made: dict[tuple[UtteranceId, ...], list[SummarySentence]] = {}
        # The longest first: its prompt needs it most.
        for view in sorted(self._views, key=lambda view: not self._views[view].is_over):
            if said := self._views[view].due(at_once=view in happened):
                await self._cover(view, said, made)
        await self._store(happened)

    def _events_in(self, said: Sequence[Utterance]) -> list[tuple[set[str], set[str]]]:
        """Return the names of events in each line, and the people in it that the campaign does not know."""
        found = (self._selection.findings(each.text) for each in said)
        return [({_FLAGS[kind] for kind in kinds if kind in _FLAGS}, people) for kinds, people in found]

    async def _cover(
        self, view: View, said: Sequence[Utterance], made: dict[tuple[UtteranceId, ...], list[SummarySentence]]
    ) -> None:
        """Summarise lines.

        Args:
            made: A model's summaries of this update. Views with the same lines share one.
        """
        rolling, ids = self._views[view], tuple(each.id for each in said)
        sentences = made.get(ids) or await self._asked(view, said)
        if sentences is not None:
            made[ids] = sentences
        rolling.cover(await asyncio.to_thread(self._summary, view, rolling.summary, sentences, said), said)
        self._look()
        if view != DM_VIEW:
            self._tell(NpcId(view), rolling.summary, ids)

    def _summary(
        self,
        view: View,
        before: Sequence[SummarySentence],
        sentences: Sequence[SummarySentence] | None,
        said: Sequence[Utterance],
    ) -> list[SummarySentence]:
        """Return the summary with that of new lines; None: lines are selected."""
        npc, selection = NpcId(view), self._selection
        if sentences is None:
            return selection.select(said, before=before, own=npc)
        return selection.compress([*before, *in_order([*sentences, *selection.own_words(said, npc)], said)])

    async def _asked(self, view: View, said: Sequence[Utterance]) -> list[SummarySentence] | None:
        """Return the model's summary; None without a model, or if no view can wait for it."""
        if (summariser := self._summarisers.get(view)) is None or self._is_over.is_set():
            return None
        asking = asyncio.ensure_future(summariser.summarise(said))
        over = asyncio.ensure_future(self._is_over.wait())
        try:
            await asyncio.wait((asking, over), timeout=SUMMARISE_MS / 1_000, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        except GlyphoxaError as error:
            logger.debug("lines are selected instead of summarised: {}", error)
            return None
        finally:
            await end_tasks(asking, over)

    async def _store(self, happened: Mapping[View, set[str]]) -> None:
        for view, names in happened.items():
            if more := names - self._views[view].flags:
                self._views[view].flags |= more
                self._unsaved.setdefault(view, set()).update(more)
        if self._stored is None:
            return
        try:
            for view in tuple(self._unsaved):
                await self._stored.states.note(view, dict.fromkeys(self._unsaved[view], True))
                del self._unsaved[view]
            for view, rolling in self._views.items():
                if not rolling.is_stored:
                    await self._store_one(self._stored, view, rolling)
        except (GlyphoxaError, TimeoutError) as error:
            logger.debug("the state of the session is stored later: {}", error)

    async def _store_one(self, at: StoredSession, view: View, rolling: RollingSummary) -> None:
        summary, covered_to = rolling.summary, rolling.covered_to
        assert covered_to is not None  # noqa: S101 - `cover` sets it
        async with asyncio.timeout(_LOGGED_MS / 1_000):
            if not await at.wait_until_logged(covered_to):
                return
        reached = await at.states.cover(view, summary, up_to=covered_to, after=rolling.last_ordinal)
        if reached is not None:
            rolling.last_ordinal = reached
            rolling.is_stored = (rolling.summary, rolling.covered_to) == (summary, covered_to)
            return
        stored = await at.states.state(view)
        if stored.last_ordinal > rolling.last_ordinal:
            rolling.adopt(stored)  # written before a restart, or by another table of this session
            self._work.set()
