"""An NPC as an actor, and the actor that prepares the NPCs of a table before they are asked.

An NPC has its conversation in this session, and the engine that speaks for it. Calls such as `hear` and `ask` return at
once. The actor performs them in order once the engine is open, so that an engine that fails crashes this actor alone.
If it crashes and is restarted, it keeps its conversation, opens a new engine and reports its open turns as failed, so
that the table never waits for them.

Rules of the preparation, after which the next answer comes sooner:

- Engines of the opening scene read their personas before the table opens (`open_scene`), all others while the table is
  idle (`run`). This takes seconds for each on a small machine.
- The table is idle while nobody speaks and no answer is in progress. When somebody begins to speak, reading stops at
  once and keeps its progress.
- NPCs of the current scene are read first, also after a change of scene.
- An NPC that is addressed before it is ready reads its persona with that answer, which comes later than usual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple, assert_never

from loguru import logger

from glyphoxa.actors.deadline import end_tasks, within
from glyphoxa.actors.supervisor import Mailbox
from glyphoxa.domain.campaign import Npc
from glyphoxa.domain.events import NpcsGetReady, SceneChanged, TableEvent, UtteranceRetracted
from glyphoxa.domain.heard import SpeechStarted, Utterance
from glyphoxa.domain.ids import NpcId, TurnId, UtteranceId
from glyphoxa.domain.turn_record import Outcome, TierChoice
from glyphoxa.npc.mouth import Finished, Listener, Mouth, MouthEvent
from glyphoxa.npc.table_state import TableState
from glyphoxa.npc.toolbox import TierSelector
from glyphoxa.prompt.conversation import Conversation, others_line, own_line
from glyphoxa.prompt.prompt import Prompt
from glyphoxa.transcript.ports import News
from glyphoxa.transcript.sessions import SummarySentence
from glyphoxa.turns.turn import Cancel, Fill, Hold, Release, Resume, Turn


class _Task(NamedTuple):
    """One thing to do once the engine is open.

    Attributes:
        asks: The turn that it begins.
        is_expendable: It may be dropped if the engine is not open: old speech, which the log has, or priming.
    """

    do: Callable[[Mouth], object]
    asks: TurnId | None = None
    is_expendable: bool = False


Voicing = Release | Hold | Resume | Cancel | Fill
"""Effects of turn taking that an NPC performs unchanged."""
OpenMouth = Callable[[Npc, Listener], Awaitable[Mouth]]

CLOSE_MS = 1_000
"""Time for an engine to close after a crash. After that it is abandoned."""


class NpcActor:
    """The actor of one NPC.

    Args:
        conversation: The NPC's conversation.
        open_mouth: Opens an engine for this NPC; called again after a crash.
        tell: Receives the engine's events in the event loop. Must return at once.
        now_ms: Milliseconds since the Unix epoch.
        tiers: Chooses the budget tier of each turn.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        open_mouth: OpenMouth,
        tell: Callable[[MouthEvent], None],
        now_ms: Callable[[], int],
        tiers: TierSelector | None = None,
    ) -> None:
        self.npc = conversation.npc
        self.mailbox: Mailbox[_Task] = Mailbox(self.npc.name, is_expendable=attrgetter("is_expendable"))
        self.conversation = conversation
        self._open_mouth = open_mouth
        self._tell = tell
        self._now_ms = now_ms
        self._mouth: Mouth | None = None
        self.is_ready = True
        """Whether the engine has read the persona, or need not read it. Otherwise the NPC reads it when it is asked."""
        self._asked: dict[TurnId, TierChoice | None] = {}
        """Turns that the engine has begun, with their budget tiers. Words of the DM have none."""
        self._tiers = tiers or TierSelector(self.npc.budget_tier)
        self._fillers_used = 0

    @property
    def says_given_words(self) -> bool:
        """Whether its engine can say given words."""
        return self._mouth is None or self._mouth.says_given_words

    async def open(self) -> None:
        """Open the engine in advance, so that the first turn does not wait for it."""
        if self._mouth is None:
            self._mouth = await self._open_mouth(self.npc, self._tell)
            await self._mouth.start()

    async def read_persona(self, likely_speaker: str) -> None:
        """Let the engine read the prompt so far, which takes seconds on a small machine. Not while it answers."""
        if self._mouth is not None and not self._asked:
            self._mouth.prime(self.conversation.prompt("", likely_speaker))
            await self._mouth.wait_until_primed()

    async def wait_until_read(self) -> None:
        """Wait until the engine has read its prompt."""
        if self._mouth is not None:
            await self._mouth.wait_until_primed()

    def pause_reading(self) -> None:
        """Stop reading, because another NPC needs the machine. Does nothing if the NPC was asked meanwhile."""
        if self._mouth is not None and not self._asked:
            self._mouth.relax()

    async def run(self) -> None:
        """Run the actor."""
        try:
            await self.open()
            self._give_up_open_turns("the NPC's engine crashed and was restarted")
            while True:
                task = await self.mailbox.receive()
                assert self._mouth is not None  # noqa: S101 - `open` has opened it
                task.do(self._mouth)
        except Exception:
            await within(CLOSE_MS, f"the engine of {self.npc.name}", self._close_mouth())
            raise
        finally:
            await self._close_mouth()

    async def decline(self) -> None:
        """Run the actor after it was given up: decline all questions at once."""
        why = "the NPC's engine cannot be restarted"
        self._give_up_open_turns(why)
        while True:
            if (turn := (await self.mailbox.receive()).asks) is not None:
                self._asked[turn] = None
                self._give_up_open_turns(why)

    # -- what it is told

    def hear(self, utterance: Utterance, *, to: str = "") -> None:
        """Take something said in the NPC's presence, perhaps by the NPC itself.

        Args:
            to: Name of the addressed NPC, if it is another one.
        """
        is_own = utterance.npc_id == self.npc.id
        self.mailbox.post(_Task(lambda _: self._hear(utterance, to), is_expendable=not is_own))

    def take(self, news: News) -> None:
        """Take a decision on an utterance."""
        self.mailbox.post(_Task(lambda _: self._take(news)))

    def cover(self, summary: Sequence[SummarySentence], covered: Sequence[UtteranceId]) -> None:
        """Take a summary for the NPC's prompt, see `Conversation.cover`."""
        self.mailbox.post(_Task(lambda _: self.conversation.cover(summary, covered)))

    def get_ready(self, text: str, speaker_name: str, direction: str = "") -> None:
        """Prime the engine with what is known so far, because somebody may be addressing the NPC.

        Args:
            direction: See `ask`.
        """

        def prime(mouth: Mouth) -> None:
            if not self._asked and (text or self.is_ready):
                mouth.prime(_directed(self.conversation.prompt(text, speaker_name), direction))

        self.mailbox.post(_Task(prime, is_expendable=True))

    def expect(self, speaker: Npc, reply: str, asker: str) -> None:
        """Read an answer that an NPC gives, before it has been heard to the end."""

        def prime(mouth: Mouth) -> None:
            if self.is_ready:  # otherwise it reads its whole persona first
                line = own_line(reply) if speaker.id == self.npc.id else others_line(speaker.name, reply)
                mouth.prime(self.conversation.prompt("", asker, expecting=line))

        self.mailbox.post(_Task(prime, is_expendable=True))

    def relax(self) -> None:
        """Stop priming, because another NPC needs the machine."""
        self.mailbox.post(_Task(lambda mouth: mouth.relax(), is_expendable=True))

    def ask(self, turn: Turn, asker: str, *, queued: int = 0, direction: str = "") -> None:
        """Generate an answer.

        Args:
            queued: Number of waiting turns.
            direction: The DM's direction for the answer; empty for none.
        """
        question = turn.question

        def begin(mouth: Mouth) -> None:
            if turn.words:
                self._asked[turn.id] = None
                mouth.begin(turn.id, replace(self.conversation.prompt("", ""), words=turn.words))
                return
            self.is_ready = True
            tier = self._tiers.choose(question.text, at_ms=self._now_ms(), queued=queued)
            self._asked[turn.id] = tier
            prompt = self.conversation.prompt(question.text, asker, unless=question.utterances)
            is_brief = turn.reacts_to is not None
            mouth.begin(turn.id, replace(_directed(prompt, direction), is_brief=is_brief, tier=tier))

        self.mailbox.post(_Task(begin, asks=turn.id))

    def perform(self, effect: Voicing) -> None:
        """Perform an effect on a turn that was asked."""
        self.mailbox.post(_Task(lambda mouth: self._voice(mouth, effect)))

    def finished(self, turn: TurnId) -> None:
        """Take note that the engine is free: the turn has ended."""
        self._asked.pop(turn, None)

    # -- what it does

    def _hear(self, utterance: Utterance, to: str) -> None:
        if utterance.npc_id == self.npc.id:
            self.conversation.spoke(utterance)
        else:
            self.conversation.hear(utterance, to=to)
        if utterance.npc_id is not None and not self._asked:
            # An answer has ended, and the engine reads the prompt before the next question.
            self.conversation.fold_if_full()

    def _take(self, news: News) -> None:
        match news:
            case UtteranceRetracted(utterance, is_retracted):
                if is_retracted:  # a restored utterance is not added to the current conversation
                    self.conversation.retract(utterance.id)
            case _:
                self.conversation.revise(news.was, news.utterance)

    def _voice(self, mouth: Mouth, effect: Voicing) -> None:
        turn = effect.turn
        match effect:
            case Release():
                if (tier := self._asked.get(turn.id)) is not None:
                    self._tiers.took(tier, at_ms=self._now_ms())
                mouth.release(turn.id)
            case Hold():
                mouth.hold(turn.id)
            case Resume():
                mouth.resume(turn.id)
            case Cancel():
                (mouth.give_up if turn.cancelled_as is Outcome.TIMED_OUT else mouth.cancel)(turn.id)
            case Fill():
                if self.npc.fillers:
                    mouth.fill(turn.id, self.npc.fillers[self._fillers_used % len(self.npc.fillers)])
                    self._fillers_used += 1
            case _:
                assert_never(effect)

    def _give_up_open_turns(self, why: str) -> None:
        asked, self._asked = self._asked, {}
        for turn in asked:
            self._tell(Finished(self.npc.id, turn, "", "", 0, interrupted=False, at_ms=self._now_ms(), error=why))

    async def _close_mouth(self) -> None:
        mouth, self._mouth = self._mouth, None
        if mouth is not None:
            try:
                await mouth.close()
            except Exception as error:  # a broken engine must not prevent the restart
                logger.warning("closing the engine of {} failed: {}", self.npc.name, error)


def _directed(prompt: Prompt, direction: str) -> Prompt:
    """Return the prompt with the DM's direction before its own."""
    return replace(prompt, direction=" ".join(filter(None, (direction, prompt.direction))))


class Preparation:
    """An actor that lets engines read their personas, by the rules of this module.

    Args:
        wait_until_quiet: Waits until nobody speaks and no answer is in progress.
        now_ms: Unix epoch.
    """

    def __init__(
        self,
        npcs: Mapping[NpcId, NpcActor],
        state: TableState,
        *,
        wait_until_quiet: Callable[[], Awaitable[None]],
        now_ms: Callable[[], int],
    ) -> None:
        for npc in npcs.values():
            npc.is_ready = False
        self._npcs = npcs
        self._present = state.present
        self._likely_speaker = state.likely_speaker
        self._wait_until_quiet = wait_until_quiet
        self._tell = state.events.tell
        self._now_ms = now_ms
        self._told: tuple[NpcId, ...] = ()
        self._give_way = asyncio.Event()
        self._is_done = asyncio.Event()

    async def open_scene(self, tell: Callable[[str], None]) -> None:
        """Open all engines and let those of the scene read their personas, before anybody speaks.

        Args:
            tell: Receives a progress message for each.
        """
        for npc in self._npcs.values():
            await npc.open()
        present = self._present()
        for n, npc_id in enumerate(present, start=1):
            npc = self._npcs[npc_id]
            await npc.read_persona(self._likely_speaker())
            npc.is_ready = True
            tell(f"{npc.npc.name} is ready ({n} of {len(present)})")

    def on(self, event: TableEvent) -> None:
        """Take an event of the table."""
        match event:
            case SpeechStarted():
                self._give_way.set()
            case SceneChanged():
                self._give_way.set()
                self._tell_of_scene()

    async def run(self) -> None:
        """Run the actor. Ends when all engines are ready."""
        while (npc := self._next()) is not None:
            await self._wait_until_quiet()
            self._give_way.clear()
            if await self._read(npc):
                n_ready = sum(1 for other in self._npcs.values() if other.is_ready)
                logger.info("{} is ready ({} of {})", npc.npc.name, n_ready, len(self._npcs))
                self._tell_of_scene()
        self._is_done.set()

    async def wait_until_done(self) -> None:
        """Wait until all engines are ready, before measuring answers."""
        await self._is_done.wait()

    def _next(self) -> NpcActor | None:
        waiting = [self._npcs[npc] for npc in (*self._present(), *self._npcs)]
        return next((npc for npc in waiting if not npc.is_ready), None)

    async def _read(self, npc: NpcActor) -> bool:
        """Let an engine read its persona. False if somebody needed the machine."""
        reading = asyncio.ensure_future(self._read_after_scene(npc))
        giving_way = asyncio.ensure_future(self._give_way.wait())
        try:
            await asyncio.wait((reading, giving_way), return_when=asyncio.FIRST_COMPLETED)
            if self._give_way.is_set():
                npc.pause_reading()
                return False
            if (error := reading.exception()) is not None:  # it reads again when it is addressed
                logger.warning("{} could not be prepared: {}", npc.npc.name, error)
            npc.is_ready = True
            return True
        finally:
            await end_tasks(reading, giving_way)

    async def _read_after_scene(self, npc: NpcActor) -> None:
        """Let an engine read its persona after engines of the scene have read the new conversation."""
        for other in self._present():
            if self._npcs[other].is_ready:
                await self._npcs[other].wait_until_read()
        await npc.read_persona(self._likely_speaker())

    def _tell_of_scene(self) -> None:
        unready = tuple(npc for npc in self._present() if not self._npcs[npc].is_ready)
        if unready != self._told:
            self._told = unready
            self._tell(NpcsGetReady(tuple(self._npcs[npc].npc.name for npc in unready), self._now_ms()))
