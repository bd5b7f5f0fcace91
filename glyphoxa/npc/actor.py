"""An NPC as an actor: a mailbox, its conversation in this session, and the engine that speaks for it.

It performs the effects of turn taking that concern its voice (`Release`, `Hold`, `Resume`, `Cancel`, `Fill`). If it
crashes and is restarted, it keeps its conversation, opens a new engine and reports its open turns as failed, so that
the table never waits for them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import assert_never

from loguru import logger

from glyphoxa.actors.deadline import within
from glyphoxa.actors.supervisor import Mailbox
from glyphoxa.domain.campaign import Npc
from glyphoxa.domain.events import UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, TurnId, UtteranceId
from glyphoxa.domain.session_state import SummarySentence
from glyphoxa.domain.turn import Outcome, TierChoice
from glyphoxa.npc.budget import TierSelector
from glyphoxa.npc.mouth import Finished, Listener, Mouth, MouthEvent
from glyphoxa.prompt.conversation import Conversation, others_line, own_line
from glyphoxa.prompt.prompt import Prompt
from glyphoxa.turns.effects import Begin, Cancel, Fill, Hold, Release, Resume


@dataclass(frozen=True, slots=True)
class Hear:
    """Something said in the NPC's presence, perhaps by the NPC itself.

    Attributes:
        to: Name of the addressed NPC, if it is another one.
    """

    utterance: Utterance
    to: str = ""


@dataclass(frozen=True, slots=True)
class GetReady:
    """Somebody may be addressing the NPC: prime the engine with what is known so far.

    Attributes:
        direction: See `Ask`.
    """

    text: str
    speaker_name: str
    direction: str = ""


@dataclass(frozen=True, slots=True)
class Relax:
    """Stop priming, because another NPC needs the machine."""


@dataclass(frozen=True, slots=True)
class Expect:
    """An answer being played: read it before it has been heard to the end."""

    npc: NpcId
    npc_name: str
    text: str
    speaker_name: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Generate an answer.

    Attributes:
        begin: The effect of turn taking.
        unless: Utterances that are part of the question.
        queued: Number of waiting turns.
        direction: The DM's direction for the answer; empty for none.
    """

    begin: Begin
    speaker_name: str
    unless: tuple[UtteranceId, ...] = ()
    queued: int = 0
    direction: str = ""


@dataclass(frozen=True, slots=True)
class Cover:
    """A summary for the NPC's prompt, see `Conversation.cover`."""

    summary: tuple[SummarySentence, ...]
    covered: tuple[UtteranceId, ...]


Voicing = Release | Hold | Resume | Cancel | Fill
"""Effects of turn taking that an NPC performs unchanged."""
NpcMessage = Hear | UtteranceRevised | UtteranceRetracted | Cover | GetReady | Expect | Relax | Ask | Voicing
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
        self.mailbox: Mailbox[NpcMessage] = Mailbox(self.npc.name, is_expendable=self._is_expendable)
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
            self._mouth = await self._open_mouth(self.npc, self._on_mouth)
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
                self._take(await self.mailbox.receive())
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
            message = await self.mailbox.receive()
            if isinstance(message, Ask):
                self._asked[message.begin.turn] = None
                self._give_up_open_turns(why)

    def _take(self, message: NpcMessage) -> None:
        mouth = self._mouth
        assert mouth is not None  # noqa: S101 - opened before the first message is read
        match message:
            case Hear():
                self._hear(message)
            case UtteranceRevised(utterance, was):
                self.conversation.revise(was, utterance)
            case UtteranceRetracted(utterance, is_retracted):
                if is_retracted:  # a restored utterance is not added to the current conversation
                    self.conversation.retract(utterance.id)
            case Cover(summary, covered):
                self.conversation.cover(summary, covered)
            case GetReady(text, speaker_name, direction):
                if not self._asked and (text or self.is_ready):
                    mouth.prime(_directed(self.conversation.prompt(text, speaker_name), direction))
            case Expect(npc, npc_name, text, speaker_name):
                if self.is_ready:  # otherwise it reads its whole persona first
                    line = own_line(text) if npc == self.npc.id else others_line(npc_name, text)
                    mouth.prime(self.conversation.prompt("", speaker_name, expecting=line))
            case Relax():
                mouth.relax()
            case Ask():
                self._ask(mouth, message)
            case _:
                self._voice(mouth, message)

    def _voice(self, mouth: Mouth, effect: Voicing) -> None:
        match effect:
            case Release(turn):
                if (tier := self._asked.get(turn)) is not None:
                    self._tiers.took(tier, at_ms=self._now_ms())
                mouth.release(turn)
            case Hold(turn):
                mouth.hold(turn)
            case Resume(turn):
                mouth.resume(turn)
            case Cancel(turn, outcome=Outcome.TIMED_OUT):
                mouth.give_up(turn)
            case Cancel(turn):
                mouth.cancel(turn)
            case Fill(turn):
                if self.npc.fillers:
                    mouth.fill(turn, self.npc.fillers[self._fillers_used % len(self.npc.fillers)])
                    self._fillers_used += 1
            case _:
                assert_never(effect)

    def _hear(self, heard: Hear) -> None:
        if heard.utterance.npc_id == self.npc.id:
            self.conversation.spoke(heard.utterance)
        else:
            self.conversation.hear(heard.utterance, to=heard.to)
        if heard.utterance.npc_id is not None and not self._asked:
            # An answer has ended, and the engine reads the prompt before the next question.
            self.conversation.fold_if_full()

    def _ask(self, mouth: Mouth, asked: Ask) -> None:
        begin = asked.begin
        if begin.words:
            self._asked[begin.turn] = None
            mouth.begin(begin.turn, replace(self.conversation.prompt("", ""), words=begin.words))
            return
        self.is_ready = True
        tier = self._tiers.choose(begin.text, at_ms=self._now_ms(), queued=asked.queued)
        self._asked[begin.turn] = tier
        prompt = self.conversation.prompt(begin.text, asked.speaker_name, unless=asked.unless)
        mouth.begin(begin.turn, replace(_directed(prompt, asked.direction), is_brief=begin.is_brief, tier=tier))

    def _on_mouth(self, event: MouthEvent) -> None:
        if isinstance(event, Finished):
            self._asked.pop(event.turn, None)
        self._tell(event)

    def _give_up_open_turns(self, why: str) -> None:
        for turn in tuple(self._asked):
            self._on_mouth(Finished(self.npc.id, turn, "", "", 0, interrupted=False, at_ms=self._now_ms(), error=why))

    async def _close_mouth(self) -> None:
        mouth, self._mouth = self._mouth, None
        if mouth is not None:
            try:
                await mouth.close()
            except Exception as error:  # a broken engine must not prevent the restart
                logger.warning("closing the engine of {} failed: {}", self.npc.name, error)

    def _is_expendable(self, message: NpcMessage) -> bool:
        """Return whether a message may be dropped: old speech, if the engine is not open. The log has all of it."""
        if isinstance(message, Hear):
            return message.utterance.npc_id != self.npc.id
        return isinstance(message, GetReady | Expect | Relax)


def _directed(prompt: Prompt, direction: str) -> Prompt:
    """Return the prompt with the DM's direction before its own."""
    return replace(prompt, direction=" ".join(filter(None, (direction, prompt.direction))))
