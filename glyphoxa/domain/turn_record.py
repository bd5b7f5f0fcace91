"""A turn: from the end of somebody's speech to its outcome.

Every turn ends in exactly one `Outcome`, including turns that never reached audio: a latency figure over answered turns
alone would have survivorship bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.ids import NpcId, SessionId, SpeakerId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import Recalled


class Outcome(StrEnum):
    ANSWERED = "answered"
    INTERRUPTED = "interrupted"
    """A player cut an NPC off; the log holds what was heard of it."""
    NOT_ADDRESSED = "not_addressed"
    MERGED = "merged"
    """The speaker continued before the reply began: the next turn answers both."""
    SUPERSEDED = "superseded"
    """Another player spoke first and the reply was never begun."""
    WITHHELD = "withheld"
    """The safety filter removed the whole reply."""
    TIMED_OUT = "timed_out"
    FAILED = "failed"


class Unaddressed(StrEnum):
    """Why a turn addressed no NPC."""

    NO_NPC = "no_npc"
    """The scene has no NPC."""
    NO_NAME = "no_name"
    """No NPC was named, and nothing else shows which one is addressed, if any."""
    PLAYER = "player"
    """Another player was called, or the players talk to each other."""
    WHISPER = "whisper"
    """Whispered to another player: "(to Bran) ..."."""
    ABSENT = "absent"
    """The NPC that was called is not in the scene."""
    OUT_OF_CHARACTER = "out_of_character"
    """Clearly out of character: a break, rules, dice."""
    FILLER = "filler"
    """Only sounds of listening or thinking."""
    MUTED = "muted"
    """The addressed NPC is muted by the DM."""
    COMMAND = "command"
    """A voice command of the DM."""
    PAUSED = "paused"
    """The DM paused the table during it."""
    PLANNING = "planning"
    """The players make plans: "we should ask him"."""
    ABOUT = "about"
    """Talk about somebody present: "Oskar is a liar"."""
    NARRATION = "narration"
    """Describes a character's action: "I walk to the bar"."""
    THINKING = "thinking"
    """Thinking aloud."""
    NOISE = "noise"
    """A recogniser's words for sound without speech."""
    NOT_MEANT = "not_meant"
    """An NPC was excluded: "not you, Oskar"."""


class Fault(StrEnum):
    """Why a sentence of a reply was not said."""

    NARRATED = "narrated"
    """Narrates the NPC's actions."""
    THIRD_PERSON = "third_person"
    IDENTITY = "identity"
    """The NPC takes itself for somebody else, or greets itself."""
    ASSISTANT = "assistant"
    """Typical phrase of an assistant or a machine."""
    OF_THE_PROMPT = "of_the_prompt"
    """Quotes its instructions, or an example of them."""
    NOT_SPEECH = "not_speech"
    """A stage direction, a tool call or a line of facts, not speech."""
    LABEL = "label"
    """Continues in somebody else's name."""
    ECHO = "echo"
    """Repeats the question."""
    REPEATED = "repeated"
    """Repeats what it said just before."""
    LANGUAGE = "language"
    """A different language than it was addressed in."""
    SECRET = "secret"  # noqa: S105 - a reason, not a password
    """Reveals one of its secrets."""
    UNFOUNDED = "unfounded"
    """A claim about something it does not know."""
    FORGOTTEN = "forgotten"
    """Omits what the asker told it about this."""
    SAFETY = "safety"
    """Touches a topic that the group does not play."""
    DICE = "dice"
    """A dice result that nobody rolled."""


ENDS_REPLY: Final = (Fault.SECRET, Fault.SAFETY)
"""Faults that end a reply: its rest depends on such a sentence and is not said either."""


@dataclass(frozen=True, slots=True)
class Character:
    """The NPC that speaks.

    Attributes:
        others: Names of everybody else who may speak.
        language: The campaign's (BCP 47).
        guards_secrets: It never reveals its own secrets to anyone.
    """

    name: str
    aliases: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    language: str = "en"
    guards_secrets: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """The question a reply answers, and the contents of the prompt.

    Attributes:
        question: The player's words.
        speaker_name: Who asks; empty if it is unknown.
        facts: The NPC's knowledge relevant to the question, one sentence each.
        not_known: Those facts that say it knows nothing about the question.
        remembered: Relevant lines it heard, each with its speaker, and the summaries of what was said before.
        identity: Its knowledge of itself and the current scene.
        kept: Its own secrets that the question touches.
        told: Answers from what the asker told it about exactly this, best first.
        before: The conversation so far: what was said to it and what it answered, oldest first.
        so_far: The part of this reply that has passed already.
        direction: The DM's instruction for the answer. Players must not hear it.
        flags: Topics that the question touches, see `glyphoxa.judgement.safety`.
    """

    question: str = ""
    speaker_name: str = ""
    facts: tuple[str, ...] = ()
    not_known: tuple[str, ...] = ()
    remembered: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    before: tuple[tuple[str, str], ...] = ()
    so_far: str = ""
    direction: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which part of a reply's sentence may be said.

    Attributes:
        text: The words that may be said; empty for none.
        fault: Why a sentence was rejected. None with an empty text: there was nothing to say, or it is held for the
            next piece.
    """

    text: str = ""
    fault: Fault | None = None


class Stage(StrEnum):
    """Marks on a turn's timeline, in their usual order."""

    SPEECH_END = "speech_end"
    TRANSCRIPT_FINAL = "transcript_final"
    CORRECTED = "corrected"
    ADDRESSED = "addressed"
    CONTEXT_READY = "context_ready"
    FIRST_TOKEN = "first_token"  # noqa: S105 - a stage, not a password
    FIRST_SENTENCE = "first_sentence"
    TURN_END = "turn_end"
    """The endpointing wait is over: the player is assumed to have finished."""
    FLOOR = "floor"
    """The reply had to wait and may be heard from now on."""
    FILLER = "filler"
    FIRST_AUDIO = "first_audio"
    BARGE_IN = "barge_in"
    """A player's voice lasted long enough to stop an NPC."""
    SILENCED = "silenced"
    """The last sample was played before this, because of that voice."""
    AUDIO_END = "audio_end"


@dataclass(frozen=True, slots=True)
class Rejected:
    """Something recalled in this turn that got no place in the prompt.

    Attributes:
        why: "it shares no word with the question".
    """

    recalled: Recalled
    why: str


SAFETY: Final = "safety"
"""Name of the part that leads away from a topic; its source names the flags, such as "line:spiders"."""


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a prompt as it was sent.

    Attributes:
        name: "persona", "identity", "talk", "recall" and so on.
        source: Origin of its words.
        tokens: Approximate number; 0 if it was requested but the prompt contains nothing of it.
        took_us: Microseconds it took to gather; None for constant parts.
    """

    name: str
    source: str
    tokens: int = 0
    took_us: int | None = None


@dataclass(frozen=True, slots=True)
class AssembledPrompt:
    """A prompt as it was sent, and why it is so: for the turn's record, the DM's pages, a rehearsal and a benchmark.

    Attributes:
        text: All of it: a paragraph a message, headed by its role. For inspection and for leak checks.
        parts: Its parts, in reading order.
        recalled: Recalled items in the prompt, in that order.
        rejected: Recalled items that were left out of the prompt.
        omitted: Parts of the hot context that were late or failed, each with its reason.
    """

    text: str = ""
    parts: tuple[PromptPart, ...] = ()
    recalled: tuple[Recalled, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    omitted: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Return about how many tokens it has."""
        return sum(part.tokens for part in self.parts)


NO_PROMPT: Final = AssembledPrompt()
"""No model was asked."""


@dataclass(frozen=True, slots=True)
class Unsaid:
    """A sentence of a reply that was rejected before it reached the voice."""

    text: str
    fault: Fault


@dataclass(frozen=True, slots=True)
class LookUp:
    """A look-up that an NPC's model made while it answered.

    Attributes:
        tool: The tool's name, as the model called it.
        found: The response to the model: JSON.
    """

    tool: str
    arguments: Mapping[str, object]
    found: Mapping[str, object]
    took_ms: int


@dataclass(frozen=True, slots=True)
class TierChoice:
    """How long an NPC may search its memory in this turn, and with which tools.

    Attributes:
        reason: "asks for memory: 'remember'".
        ceiling_ms: A look-up that takes longer is cut off.
        wanted: The tier the turn asked for; the NPC may be allowed less.
    """

    tier: BudgetTier
    reason: str
    ceiling_ms: int
    wanted: BudgetTier


READDRESSED: Final = "the DM says it was for "
"""How the reason of a turn begins that the DM opened by saying who a line was meant for."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A finished turn, as it is logged, shown and measured.

    Attributes:
        prompt: The prompt of the NPC's model; without text if no model was asked.
        stages: Milliseconds since the Unix epoch at which each stage was reached.
        looked_up: The model's own look-ups, in the order of their answers.
        unsaid: Sentences of the reply that were rejected and never heard.
        utterance_id: `text` in the log.
        reply_id: `reply_heard` in the log; None when nothing was heard.
        tier: The look-up tier; empty if no engine was asked, and in records of older versions.
        tier_reason: Why this tier.
        discarded_tokens: About how many tokens were spent on answers that were prepared for other words. Not logged.
        unaddressed: Why no NPC was addressed; None if one was. The log keeps only `address_reason`.
    """

    id: TurnId
    session_id: SessionId
    speaker_id: SpeakerId
    speaker_name: str
    raw_text: str
    text: str
    npc_id: NpcId | None
    address_reason: str
    outcome: Outcome
    reply: str = ""
    reply_heard: str = ""
    prompt: AssembledPrompt = NO_PROMPT
    stages: Mapping[Stage, int] = field(default_factory=dict)
    error: str = ""
    looked_up: tuple[LookUp, ...] = ()
    unsaid: tuple[Unsaid, ...] = ()
    utterance_id: UtteranceId | None = None
    reply_id: UtteranceId | None = None
    tier: BudgetTier | Literal[""] = ""
    tier_reason: str = ""
    discarded_tokens: int = 0
    unaddressed: Unaddressed | None = None

    @property
    def is_readdressed(self) -> bool:
        """Whether the DM said afterwards that `text` was meant for `npc_id`, or for nobody."""
        return self.address_reason.startswith(READDRESSED)

    @property
    def flags(self) -> tuple[str, ...]:
        """Return what the question touched: see `glyphoxa.judgement.safety`. Empty if no engine was asked."""
        return tuple(flag for part in self.prompt.parts if part.name == SAFETY for flag in part.source.split(", "))

    @property
    def first_audio_ms(self) -> int | None:
        """End of speech to the first sample of the reply (a filler does not count)."""
        if Stage.FIRST_AUDIO not in self.stages or Stage.SPEECH_END not in self.stages:
            return None
        return self.stages[Stage.FIRST_AUDIO] - self.stages[Stage.SPEECH_END]

    @property
    def waited_ms(self) -> int | None:
        """How long the answer waited for others to finish; None if it did not wait."""
        if Stage.FLOOR in self.stages and Stage.TURN_END in self.stages:
            return self.stages[Stage.FLOOR] - self.stages[Stage.TURN_END]
        return None

    @property
    def silenced_after_ms(self) -> int | None:
        """Time from the interrupting voice to the NPC's silence; None if no voice cut it off, or words did first."""
        if Stage.BARGE_IN in self.stages and Stage.SILENCED in self.stages:
            return max(0, self.stages[Stage.SILENCED] - self.stages[Stage.BARGE_IN])
        return None
