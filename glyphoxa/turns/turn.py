"""A turn: a question, its answer, and everything that is known of both; and what the room performs on it.

Turn taking opens, changes and closes it (`glyphoxa.turns.turn_taking` describes its life), and decides the effects. A
turn is as it is when its effect is performed. The room adds what the NPC's engine reports, and makes its record at the
end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from glyphoxa.domain.heard import Draft
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId, UtteranceId
from glyphoxa.domain.turn_record import NO_PROMPT, AssembledPrompt, LookUp, Outcome, Stage, TierChoice, Unsaid
from glyphoxa.language.text import Text
from glyphoxa.turns.address import Addressed

MAX_PARTS = 6
"""Limit for the parts of a continued question."""
_MAX_CHARACTERS = 1_200
"""Limit for all parts together, if there are several: about five sentences each."""


class QuestionPart(NamedTuple):
    """A part of a question.

    Attributes:
        utterance: Its id in the transcript; None as long as it may still change.
    """

    text: str
    utterance: UtteranceId | None = None


@dataclass(frozen=True, slots=True)
class SpokenQuestion:
    """A question in the parts in which it was spoken."""

    parts: tuple[QuestionPart, ...]

    @property
    def text(self) -> str:
        return " ".join(part.text for part in self.parts)

    @property
    def utterances(self) -> tuple[UtteranceId, ...]:
        """The parts that are stored."""
        return tuple(part.utterance for part in self.parts if part.utterance is not None)

    def going_on(self, last: QuestionPart) -> SpokenQuestion:
        """Return the question with another part, dropping the oldest. The NPC has heard those in its prompt."""
        parts, n_characters = [last], len(last.text)
        for part in reversed(self.parts[1 - MAX_PARTS :]):
            n_characters += 1 + len(part.text)
            if n_characters > _MAX_CHARACTERS:
                break
            parts.append(part)
        return SpokenQuestion(tuple(reversed(parts)))


def same_words(a: str, b: str) -> bool:
    return Text.of(a).full == Text.of(b).full


class Phase(Enum):
    PREPARING = auto()
    COMMITTED = auto()
    RELEASED = auto()
    HEARD = auto()


@dataclass(slots=True, eq=False)
class Turn:
    """One turn and its state.

    Attributes:
        player: Who asks. If the turn answers an NPC, that NPC.
        addressed: Why this NPC answers; None before the turn is committed.
        second: The NPC that reacts to the answer.
        answers: The NPC whose words it answers; then no player waits for it.
        reacts_to: The turn to whose answer it reacts.
        n_in_a_row: Answers among NPCs up to this one, since a player spoke.
        stages: Milliseconds since the Unix epoch at which each stage was reached.
        prompt: The prompt as it was sent to the model.
        tier: The NPC's time budget for memory.
        reply: The whole answer once it is generated, while it may still play.
        audience: The NPCs that hear the answer; None before its first sound.
        pieces: The answer's pieces that play or have played. A piece counts as heard when the next one begins, the
            last one only as far as the engine reports at the end.
        discarded_tokens: About how many tokens were spent on answers to other words before this one.
        reply_id: The id of the answer in the transcript, also of what was heard so far.
    """

    id: TurnId
    npc: NpcId
    player: PlayerId
    question: SpokenQuestion
    draft: Draft
    phase: Phase = Phase.PREPARING
    addressed: Addressed | None = None
    begun: bool = False
    filled: bool = False
    lookup_is_slow: bool = False
    has_failed: bool = False
    """Failed before its release: only an excuse would be heard."""
    committed_ms: int = 0
    released_ms: int = 0
    cancelled_as: Outcome | None = None
    words: str = ""
    """Words of the DM to say instead of an answer."""
    second: NpcId | None = None
    answers: NpcId | None = None
    reacts_to: TurnId | None = None
    n_in_a_row: int = 0
    stages: dict[Stage, int] = field(default_factory=dict)
    prompt: AssembledPrompt = NO_PROMPT
    tier: TierChoice | None = None
    looked_up: tuple[LookUp, ...] = ()
    unsaid: tuple[Unsaid, ...] = ()
    reply: str = ""
    audience: frozenset[NpcId] | None = None
    pieces: list[str] = field(default_factory=list)
    discarded_tokens: int = 0
    reply_id: UtteranceId | None = None

    @property
    def asks(self) -> bool:
        """Whether its whole answer is known and ends with a question."""
        return self.reply.rstrip().endswith("?")

    def answers_to(self, npc: NpcId | None, question: SpokenQuestion) -> bool:
        """Return whether it is, or will be, this NPC's answer to these words."""
        return self.npc == npc and same_words(self.question.text, question.text)

    def commit(self, draft: Draft, addressed: Addressed, *, at_ms: int) -> None:
        """Make the turn final: its question is `draft`."""
        self.phase, self.draft, self.addressed, self.committed_ms = Phase.COMMITTED, draft, addressed, at_ms
        self.stages.setdefault(Stage.ADDRESSED, at_ms)
        self.stages |= heard_stages(draft) | {Stage.TURN_END: at_ms}

    def release(self, *, at_ms: int) -> None:
        """Let the answer be heard."""
        self.phase, self.released_ms = Phase.RELEASED, at_ms
        if at_ms > self.stages.get(Stage.TURN_END, at_ms):
            self.stages.setdefault(Stage.FLOOR, at_ms)

    def mark(self, stage: Stage, *, at_ms: int) -> None:
        """Note when a stage was reached first. Silence is one only after an interrupting voice."""
        if stage is not Stage.SILENCED or Stage.BARGE_IN in self.stages:
            self.stages.setdefault(stage, at_ms)

    def resume(self) -> None:
        """Note that the NPC was only held, not interrupted."""
        self.stages.pop(Stage.BARGE_IN, None)
        self.stages.pop(Stage.SILENCED, None)


def heard_stages(draft: Draft) -> dict[Stage, int]:
    """Return when a player's words reached each stage before turn taking."""
    return {
        Stage.SPEECH_END: draft.speech_end_ms,
        Stage.TRANSCRIPT_FINAL: draft.heard.transcript_ms,
        Stage.CORRECTED: draft.heard.corrected_ms,
    }


@dataclass(frozen=True, slots=True)
class Prime:
    """Somebody is probably speaking to this NPC: prime its engine."""

    npc: NpcId
    player: PlayerId
    text: str


@dataclass(frozen=True, slots=True)
class Begin:
    """Let the NPC generate an answer. Nothing may be heard yet."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Commit:
    """The turn is final: its words are stored, and it will end in exactly one outcome."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Release:
    """The NPC has the floor."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Fill:
    """The answer is late: play a short sound in character."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Hold:
    """A player's voice overlaps the NPC: silence it for now.

    Attributes:
        voice_ms: When the voice had lasted long enough to hold the NPC.
    """

    turn: Turn
    voice_ms: int


@dataclass(frozen=True, slots=True)
class Resume:
    """The voice was no interruption: the NPC continues where it was held."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop this turn. If no engine was asked, nothing will report its end."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Keep:
    """Store a player's words and pass them to the NPCs of the scene.

    A turn that no NPC answers is recorded, so that figures have no survivorship bias.

    Attributes:
        addressed: Who they were meant for.
    """

    draft: Draft
    addressed: Addressed


@dataclass(frozen=True, slots=True)
class Readdressed:
    """The DM decided who a stored line was meant for: record that nobody answers, or let the NPCs hear it so."""

    draft: Draft
    addressed: Addressed


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Call `tick` at this time. It is earlier than any other pending request."""

    at_ms: int


Effect = Prime | Begin | Commit | Release | Fill | Hold | Resume | Cancel | Keep | Readdressed | AskAgain
