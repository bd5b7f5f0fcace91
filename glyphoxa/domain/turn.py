"""A turn: from the end of somebody's speech to what came of it.

Every turn ends in exactly one `Outcome`, also the ones that never reached audio; a latency figure made
only of answered turns would be survivor-biased.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.ids import NpcId, SessionId, SpeakerId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import Recalled


class Outcome(StrEnum):
    ANSWERED = "answered"
    INTERRUPTED = "interrupted"
    """An NPC was cut off by a player; what was heard of it is in the log."""
    NOT_ADDRESSED = "not_addressed"
    MERGED = "merged"
    """The speaker went on before the reply began: the next turn answers both."""
    SUPERSEDED = "superseded"
    """Another player's words came first and the reply was never begun."""
    WITHHELD = "withheld"
    """The safety filter left nothing that may be said."""
    TIMED_OUT = "timed_out"
    FAILED = "failed"


class Unaddressed(StrEnum):
    """Why a turn was meant for no NPC."""

    NO_NPC = "no_npc"
    """The scene has none."""
    NO_NAME = "no_name"
    """None was named, and nothing else shows that one is meant, or which."""
    PLAYER = "player"
    """Another player was called or whispered to, or the players are talking with each other."""
    ABSENT = "absent"
    """An NPC was called that is not in the scene."""
    OUT_OF_CHARACTER = "out_of_character"
    """Plainly of the players' own world: a break, rules, dice."""
    FILLER = "filler"
    """Nothing but sounds that say one is listening or thinking."""
    MUTED = "muted"
    """An NPC was meant that the DM has muted."""
    COMMAND = "command"
    """The DM commanded something aloud."""
    PAUSED = "paused"
    """It was being said when the DM paused the table."""
    PLANNING = "planning"
    """The players make plans: "we should ask him"."""
    ABOUT = "about"
    """Talk about somebody who is here: "Oskar is a liar"."""
    NARRATION = "narration"
    """It tells what a character does: "I walk to the bar"."""
    THINKING = "thinking"
    """Somebody thinks aloud."""
    NOT_MEANT = "not_meant"
    """An NPC was told that it is not meant: "not you, Oskar"."""


class Fault(StrEnum):
    """Why a sentence of a reply was not said."""

    NARRATED = "narrated"
    """It tells what the NPC does."""
    THIRD_PERSON = "third_person"
    IDENTITY = "identity"
    """It takes itself for somebody else, or greets itself."""
    ASSISTANT = "assistant"
    """A phrase of an assistant, or of a machine."""
    OF_THE_PROMPT = "of_the_prompt"
    """Words of its instructions."""
    NOT_SPEECH = "not_speech"
    """A stage direction, a tool call, a line of facts: nothing of it is speech."""
    LABEL = "label"
    """It goes on in the name of somebody else."""
    ECHO = "echo"
    """The question, given back."""
    REPEATED = "repeated"
    """What it said just before."""
    LANGUAGE = "language"
    """Another language than it was spoken to in."""
    SECRET = "secret"  # noqa: S105 - a reason, not a password
    """Something that it keeps to itself."""
    UNFOUNDED = "unfounded"
    """Something of which it knows nothing."""
    FORGOTTEN = "forgotten"
    """It leaves out what the asker told it of just this."""
    DICE = "dice"
    """A result of dice that nobody rolled."""


@dataclass(frozen=True, slots=True)
class Character:
    """Who speaks.

    Attributes:
        others: Names of everybody else who may speak.
        language: The campaign's (BCP 47).
        guards_secrets: Its own secrets are never said, whoever asks.
    """

    name: str
    aliases: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    language: str = "en"
    guards_secrets: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reply answers, and what the prompt held.

    Attributes:
        question: The words of the player.
        speaker_name: Who asks.
        facts: What the NPC knows that bears on the question, a sentence each.
        not_known: Of the facts, those which say that it knows nothing of what is asked.
        remembered: What it heard that bears on the question, each line with who said it.
        identity: What it knows of itself, and the scene it is in.
        kept: Its own secrets that the question touches.
        told: Answers from what the asker told it of just this, the best first.
        before: The talk before: what was said to it and what it answered, oldest first.
        so_far: What of this reply was passed already.
        direction: What the DM wants of the answer. It is not for players' ears.
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What may be said of a sentence of a reply.

    Attributes:
        text: What may be said; empty for nothing.
        fault: Why a sentence was rejected. None with an empty text: there was nothing to say, or it is kept for the
            next piece.
    """

    text: str = ""
    fault: Fault | None = None


class Stage(StrEnum):
    """Marks on a turn's timeline, in the order in which they usually come."""

    SPEECH_END = "speech_end"
    TRANSCRIPT_FINAL = "transcript_final"
    CORRECTED = "corrected"
    ADDRESSED = "addressed"
    CONTEXT_READY = "context_ready"
    FIRST_TOKEN = "first_token"  # noqa: S105 - a stage, not a password
    FIRST_SENTENCE = "first_sentence"
    TURN_END = "turn_end"
    """The endpointing wait is over: the player is taken to have finished."""
    FLOOR = "floor"
    """It had to wait, and may be heard from now on."""
    FILLER = "filler"
    FIRST_AUDIO = "first_audio"
    BARGE_IN = "barge_in"
    """A player's voice had lasted so long that it stops an NPC."""
    SILENCED = "silenced"
    """No sample was played after this, because of that voice."""
    AUDIO_END = "audio_end"


@dataclass(frozen=True, slots=True)
class Rejected:
    """Something an NPC recalled in this turn that got no place in its prompt.

    Attributes:
        why: "not near enough to the question".
    """

    recalled: Recalled
    why: str


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a prompt as it was sent.

    Attributes:
        name: "persona", "identity", "talk", "recall" and so on.
        source: Where its words come from.
        tokens: About how many; 0 where it was asked for and nothing of it stands in the prompt.
        took_us: How long it took to gather, in microseconds; None for what is always there.
    """

    name: str
    source: str
    tokens: int
    took_us: int | None = None


@dataclass(frozen=True, slots=True)
class Unsaid:
    """A sentence of a reply that was rejected before the voice had it."""

    text: str
    fault: Fault


@dataclass(frozen=True, slots=True)
class LookUp:
    """What an NPC's model looked up by itself while it answered.

    Attributes:
        tool: Its name, as the model called it.
        found: What the model was answered: JSON.
    """

    tool: str
    arguments: Mapping[str, object]
    found: Mapping[str, object]
    took_ms: int


@dataclass(frozen=True, slots=True)
class TierChoice:
    """How long an NPC may look into its memory in this turn, and with which tools.

    Attributes:
        reason: "asks for memory: 'remember'".
        ceiling_ms: A look-up that takes longer is cut.
        wanted: What the turn asked for; the NPC may be allowed less.
    """

    tier: BudgetTier
    reason: str
    ceiling_ms: int
    wanted: BudgetTier


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A finished turn, as it is logged, shown and measured.

    Attributes:
        recalled: What stood in the prompt, in that order.
        stages: Milliseconds since the Unix epoch at which each stage was reached.
        omitted: Parts of the hot context that were late or failed, each with its reason.
        prompt_text: Everything the model was given, for the DM's inspection and for leak checks.
        parts: What that consists of, in the order in which it is read.
        rejected: What was recalled as well, and had no place in the prompt.
        looked_up: What the model asked for by itself, in the order in which it was answered.
        unsaid: Sentences of the reply that were rejected, and were heard by nobody.
        utterance_id: `text` in the log.
        reply_id: `reply_heard` in the log; None when nothing was heard.
        tier: How deep it might look; empty where no engine was asked, and in the records of older versions.
        tier_reason: Why so deep.
        unaddressed: Why no NPC was meant, in one word; None when one was. The log keeps only `address_reason`.
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
    recalled: tuple[Recalled, ...] = ()
    stages: Mapping[Stage, int] = field(default_factory=dict)
    omitted: tuple[str, ...] = ()
    prompt_text: str = ""
    error: str = ""
    rejected: tuple[Rejected, ...] = ()
    looked_up: tuple[LookUp, ...] = ()
    unsaid: tuple[Unsaid, ...] = ()
    utterance_id: UtteranceId | None = None
    reply_id: UtteranceId | None = None
    tier: BudgetTier | Literal[""] = ""
    tier_reason: str = ""
    unaddressed: Unaddressed | None = None
    parts: tuple[PromptPart, ...] = ()

    @property
    def first_audio_ms(self) -> int | None:
        """End of speech to the first sample of the reply (a filler does not count)."""
        return self._since_speech_end(Stage.FIRST_AUDIO)

    @property
    def first_sound_ms(self) -> int | None:
        """End of speech to the first sound of any kind, such as a filler."""
        sounds = [
            ms for stage in (Stage.FILLER, Stage.FIRST_AUDIO) if (ms := self._since_speech_end(stage)) is not None
        ]
        return min(sounds, default=None)

    def _since_speech_end(self, stage: Stage) -> int | None:
        if stage in self.stages and Stage.SPEECH_END in self.stages:
            return self.stages[stage] - self.stages[Stage.SPEECH_END]
        return None

    @property
    def waited_ms(self) -> int | None:
        """How long the answer waited for the floor behind others; None if it did not have to."""
        if Stage.FLOOR in self.stages and Stage.TURN_END in self.stages:
            return self.stages[Stage.FLOOR] - self.stages[Stage.TURN_END]
        return None

    @property
    def silenced_after_ms(self) -> int | None:
        """From a voice that stops an NPC to its silence; None if none cut it off, or words did before that."""
        if Stage.BARGE_IN in self.stages and Stage.SILENCED in self.stages:
            return max(0, self.stages[Stage.SILENCED] - self.stages[Stage.BARGE_IN])
        return None
