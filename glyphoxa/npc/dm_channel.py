"""Carries the DM's decisions from other processes to an open table.

- `StoredControls` stores the controls in force with the session, so that reopening it restores mutes and directions.
- `follow_commands` obeys each command from another process once.
- `Revisions` applies changes of the transcript to the recent transcript, the NPCs' prompts and the page: what the DM
  retracted, rolled back or reworded, the results of a second look, and spoken requests to forget.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from loguru import logger
from pydantic import TypeAdapter

from glyphoxa.actors.deadline import done_within
from glyphoxa.actors.supervisor import follow
from glyphoxa.chronicle.consent import SpokenRequests
from glyphoxa.domain.commands import PendingCommand, SessionCommand
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.events import TableEvent, UtteranceKept, UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId
from glyphoxa.npc.actor import GetReady, NpcActor
from glyphoxa.npc.table import TableState
from glyphoxa.transcript.journal import RecentTalk
from glyphoxa.transcript.ports import Decided, DecidedTalk, News
from glyphoxa.turns.dm_controls import DmControls

_WAIT_FOR_MS: Final = 1_000
_OBEYED_WITHIN_S: Final = 3.0
_STORED: Final = TypeAdapter(DmControls)


class ControlsStore(Protocol):
    """Stores the controls of sessions. Calls raise `Unavailable` if the database is unreachable."""

    async def controls(self, campaign: CampaignId, session: SessionId) -> Mapping[str, Any]:
        """Return the stored controls; empty if there are none."""
        ...

    async def keep_controls(self, campaign: CampaignId, session: SessionId, controls: Mapping[str, Any]) -> None: ...


class StoredControls:
    """Stores the controls in the background, only the newest state."""

    def __init__(self, campaign: CampaignId, session: SessionId, store: ControlsStore) -> None:
        self._campaign = campaign
        self._session = session
        self._store = store
        self._newest: Mapping[str, Any] = {}
        self._changed = asyncio.Event()
        self._is_kept = asyncio.Event()
        self._is_kept.set()

    async def before(self, npcs: Mapping[NpcId, str]) -> DmControls:
        """Return the controls from the end of the last run, for these NPCs."""
        try:
            return _restored(await self._store.controls(self._campaign, self._session), npcs)
        except GlyphoxaError as error:
            logger.warning("mutes and directions of this session could not be restored: {}", error)
            return DmControls(npcs)

    def on_changed(self, controls: DmControls) -> None:
        self._newest = _STORED.dump_python(controls, mode="json", exclude={"npcs", "dms"})
        self._changed.set()
        self._is_kept.clear()

    async def wait_until_kept(self) -> None:
        """Wait briefly until the database has the current controls.

        A confirmed command then usually survives a crash. It applies even if the wait times out.
        """
        await done_within(_WAIT_FOR_MS, self._is_kept.wait())

    async def run(self) -> None:
        """Run the actor."""
        await follow(self._changes, self._keep, what="the DM's controls")

    async def _changes(self) -> AsyncGenerator[Mapping[str, Any], None]:
        while True:
            await self._changed.wait()
            yield self._newest

    async def _keep(self, controls: Mapping[str, Any]) -> None:
        await self._store.keep_controls(self._campaign, self._session, controls)
        if controls is self._newest:
            self._changed.clear()
            self._is_kept.set()


def _restored(kept: Mapping[str, Any], npcs: Mapping[NpcId, str]) -> DmControls:
    """Parse stored controls, without NPCs that the campaign no longer has."""
    controls = _STORED.validate_python({**kept, "npcs": npcs})
    controls.muted &= npcs.keys()
    controls.directions = {npc: each for npc, each in controls.directions.items() if npc in npcs}
    controls.puppets = {player: npc for player, npc in controls.puppets.items() if npc in npcs}
    return controls


class CommandInbox(ControlsStore, Protocol):
    """Commands of DMs, and the controls that they set. Each is taken by one table soon after it was given, or never."""

    async def take(self, campaign: CampaignId, session: SessionId) -> PendingCommand | None:
        """Take the oldest command for this table.

        Raises:
            Unavailable: The database is unreachable.
        """
        ...

    async def answer(self, campaign: CampaignId, command: str, text: str, *, is_done: bool) -> None:
        """Answer a command. Its sender waits for this.

        Raises:
            Unavailable: The database is unreachable.
        """
        ...

    def changes(self, campaign: CampaignId) -> AsyncGenerator[object, None]:
        """Yield whenever there may be a command."""
        ...


async def follow_commands(
    state: TableState,
    inbox: CommandInbox,
    *,
    read: Callable[[Mapping[str, object]], SessionCommand],
    obey: Callable[[SessionCommand], Awaitable[str]],
) -> None:
    """Take commands for a table from an inbox and obey them. An actor.

    Args:
        read: Resolves the names in a command; raises `InvalidInput`.
        obey: Obeys it and returns a report; raises `InvalidInput`.
    """
    campaign = state.campaign.id

    async def result_of(asked: PendingCommand) -> tuple[str, bool]:
        try:
            command = read(asked.told)
            async with asyncio.timeout(_OBEYED_WITHIN_S):
                return await obey(command), True
        except InvalidInput as error:
            return str(error), False
        except TimeoutError:
            return "the table received the command but has not obeyed it yet: it is busy, or closing", False

    async def take_all(_: object) -> None:
        while (asked := await inbox.take(campaign, state.session)) is not None:
            text, is_done = await result_of(asked)
            await inbox.answer(campaign, asked.id, text, is_done=is_done)

    await follow(lambda: inbox.changes(campaign), take_all, what="the DM's commands")


class Revisions:
    """Applies revisions to prompts when no turn is affected. `run` and `follow` are actors; the rest returns at once.

    A changed prompt must be read again by the engine, which must not happen during a turn.

    Args:
        wait_until_quiet: Waits until nobody speaks and no NPC answers.
    """

    def __init__(
        self,
        recent: RecentTalk,
        npcs: Mapping[NpcId, NpcActor],
        state: TableState,
        *,
        wait_until_quiet: Callable[[], Awaitable[None]],
    ) -> None:
        self.recent = recent
        self._npcs = npcs
        self._state = state
        self._wait_until_quiet = wait_until_quiet
        self._tell = state.events.tell
        self._decided = DecidedTalk(self._utterance_of)
        self._requests = SpokenRequests()
        self._waiting: list[News] = []
        self._work = asyncio.Event()

    def on(self, event: TableEvent) -> None:
        """Have a line forgotten as soon as its player asks for it, also while there is no database."""
        if isinstance(event, UtteranceKept) and (withheld := self._requests.take(event.utterance)):
            # Later, because all subscribers must have taken this event before.
            asyncio.get_running_loop().call_soon(self.at_once, [UtteranceRetracted(each) for each in withheld])

    def at_once(self, news: Sequence[News]) -> None:
        """Apply decisions of the DM or of players at once. Answers in progress are unaffected."""
        self._remember(news)
        self._spread(news)
        for one in news:
            self._tell(one)

    def when_quiet(self, event: UtteranceRevised) -> None:
        """Apply a better transcript: to the recent transcript and page now, to NPCs when nobody speaks."""
        self._remember([event])
        self._waiting.append(event)
        self._work.set()
        self._tell(event)

    async def run(self) -> None:
        """Run the actor."""
        while True:
            if not self._waiting:
                self._work.clear()
                await self._work.wait()
            await self._wait_until_quiet()
            waiting, self._waiting = self._waiting, []
            self._spread(waiting)

    async def follow(
        self,
        decisions: Callable[[], AsyncGenerator[object, None]],
        decided: Callable[[CampaignId, SessionId], Awaitable[Sequence[Decided]]],
        *,
        refresh: Callable[[], Awaitable[object]],
    ) -> None:
        """Apply the DM's decisions on this session's transcript. Recall follows by itself.

        Args:
            decisions, decided: See `glyphoxa.npc.session.DmChannels`.
            refresh: Rereads the transcript that recall holds in memory. Otherwise a removed utterance could be
                recalled.
        """

        async def take(_: object) -> None:
            now = await decided(self._state.campaign.id, self._state.session)
            try:
                await refresh()
            except GlyphoxaError as error:
                logger.debug("the transcript in memory is not refreshed yet: {}", error)
            self.at_once(self._decided.take(now))

        await follow(decisions, take, what="decisions of the DM")

    def _utterance_of(self, utterance: UtteranceId) -> Utterance | None:
        recent = self.recent.of(self._state.session, limit=sys.maxsize)
        return next((said for said in recent if said.id == utterance), None)

    def _remember(self, news: Sequence[News]) -> None:
        for one in news:
            match one:
                case UtteranceRetracted(utterance, is_retracted=True):
                    self.recent.retracted(utterance.id)
                case UtteranceRevised(utterance):
                    self.recent.revised(utterance)
                case _:
                    pass  # restored utterances can be recalled, but do not return to the conversation

    def _spread(self, news: Sequence[News]) -> None:
        concerned: dict[NpcId, None] = {}
        for one in news:
            heard_it = sorted(one.utterance.witnesses & self._npcs.keys())
            concerned |= dict.fromkeys(heard_it)
            for npc in heard_it:
                self._npcs[npc].mailbox.post(one)
        for npc in concerned:
            self._npcs[npc].mailbox.post(GetReady("", self._state.likely_speaker()))
