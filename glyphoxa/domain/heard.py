"""What an ear reports to the room. Times are milliseconds since the Unix epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from glyphoxa.domain.ids import CampaignId, NpcId, PlayerId, SessionId, SpeakerId, UtteranceId

CorrectionStage = Literal["phonetic", "learned", "llm"]

UNSURE = 0.5
"""A recogniser that gives a word less confidence was not sure of it."""


@dataclass(frozen=True, slots=True)
class HeardWord:
    """What a recogniser knows of one word of its transcript.

    Attributes:
        start: First character of the word in the raw text.
        end: One past its last character, punctuation that sticks to it included.
        confidence: 0 to 1; None when the recogniser tells none.
        from_ms: When the word begins, since the beginning of the transcribed sound; None when that is not known.
        to_ms: When it ends.
    """

    start: int
    end: int
    confidence: float | None = None
    from_ms: int | None = None
    to_ms: int | None = None

    def moved(self, *, places: int, ms: int | None = 0) -> HeardWord:
        """The word in a longer transcript that its own became part of.

        Args:
            places: By how many characters it stands further back.
            ms: By how much later its sound begins; None when that is not known, and then its times are not either.
        """
        from_ms = None if self.from_ms is None or ms is None else self.from_ms + ms
        to_ms = None if self.to_ms is None or ms is None else self.to_ms + ms
        return replace(self, start=self.start + places, end=self.end + places, from_ms=from_ms, to_ms=to_ms)


@dataclass(frozen=True, slots=True)
class Correction:
    """One span of a transcript that was replaced by a name.

    Attributes:
        start: First character of the span in the raw text.
        end: One past its last character.
        before: The words as they were heard.
        after: What stands there now.
        score: Evidence for the replacement, 0 to 1.
        stage: Which stage of the pipeline decided it.
        reason: Short words for the DM: why.
    """

    start: int
    end: int
    before: str
    after: str
    score: float
    stage: CorrectionStage
    reason: str


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something that was said aloud (or typed) at the table, and who was there to hear it.

    Attributes:
        at_ms: When it began, milliseconds since the Unix epoch.
        duration_ms: How long it lasted; 0 for typed text, and for speech too short to measure.
        text: Corrected text. For an NPC: what was heard of its reply before it ended or was cut off.
        raw_text: What the recogniser returned. For an NPC: the whole reply it meant to give.
        npc_id: The NPC that spoke, None for a player.
        witnesses: The NPCs that were in the scene. An NPC that speaks is a witness of its own words.
        corrections: The replacements that lead from `raw_text` to `text`.
        words: What the recogniser knows of the words of `raw_text`. For the work right after the utterance; not
            kept with it.
        typed: It was written, not spoken. Likewise; the log does not keep it.
    """

    id: UtteranceId
    campaign_id: CampaignId
    session_id: SessionId
    speaker_id: SpeakerId
    speaker_name: str
    text: str
    raw_text: str
    at_ms: int
    duration_ms: int = 0
    npc_id: NpcId | None = None
    witnesses: frozenset[NpcId] = frozenset()
    corrections: tuple[Correction, ...] = ()
    words: tuple[HeardWord, ...] = ()
    typed: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """A transcript, corrected.

    Attributes:
        corrections: The replacements that lead from `raw_text` to `text`.
        transcript_ms: When the recogniser returned it.
        corrected_ms: When the corrector was done with it.
        words: What the recogniser knows of the words of `raw_text`, empty when it tells nothing; their times count
            from the beginning of its sound.
        sound_ms: When that was, in all the sound of this ear; None when it is not known.
    """

    text: str
    raw_text: str
    corrections: tuple[Correction, ...]
    transcript_ms: int
    corrected_ms: int
    words: tuple[HeardWord, ...] = ()
    sound_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """What a player has said since they began to speak, as far as it is known now.

    Attributes:
        began_ms: When the speech began.
        speech_end_ms: When the last voiced sample was heard.
        typed: It was written, not spoken: no recogniser had part in it.
        utterance: The id it is kept under, where that is known before: of a line whose page may send it again.
    """

    player: PlayerId
    heard: Heard
    began_ms: int
    speech_end_ms: int
    typed: bool = False
    utterance: UtteranceId | None = None

    @property
    def text(self) -> str:
        return self.heard.text


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """A player begins, or goes on after a pause that was not yet the end of their turn."""

    player: PlayerId
    at_ms: int


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """Their voice is not heard any more: perhaps the end of their turn."""

    player: PlayerId
    at_ms: int


@dataclass(frozen=True, slots=True)
class PartialHeard:
    """A corrected partial transcript of what is being said; replaces the one before it."""

    player: PlayerId
    heard: Heard
    at_ms: int

    @property
    def text(self) -> str:
        return self.heard.text


@dataclass(frozen=True, slots=True)
class EagerTurn:
    """The player has paused and may have finished: an answer may be prepared, not yet played."""

    draft: Draft


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The player has finished. `draft.text` may differ from the eager one."""

    draft: Draft
    at_ms: int


@dataclass(frozen=True, slots=True)
class NothingSaid:
    """Sound that held no words (a cough, a knock). Ends what `SpeechStarted` began."""

    player: PlayerId
    at_ms: int


Speech = SpeechStarted | PartialHeard | EagerTurn | TurnEnded | NothingSaid
"""What of it concerns who watches the table."""
EarEvent = Speech | SpeechPaused
