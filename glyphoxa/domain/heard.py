"""Reports of an ear to the room. Times are milliseconds since the Unix epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from glyphoxa.domain.ids import CampaignId, NpcId, PlayerId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.turn_record import Unaddressed

CorrectionStage = Literal["phonetic", "learned", "llm"]

UNSURE = 0.5
"""Below this confidence, a recogniser was not sure of a word."""
PhoneticCode = Literal["double_metaphone", "soundex", "nysiis", "match_rating"]
LONGEST_CODE = 32
"""Letters of a phonetic code."""
Similarity = Literal["jaro_winkler", "jaro", "damerau_levenshtein", "levenshtein", "smith_waterman"]
"""How the similarity of two spellings is measured."""


@dataclass(frozen=True, slots=True)
class HeardWord:
    """A recogniser's report about one word of its transcript.

    Attributes:
        start: First character of the word in the raw text.
        end: One past its last character, including attached punctuation.
        confidence: 0 to 1; None if the recogniser reports none.
        from_ms: Start of the word, relative to the start of the transcribed sound; None if unknown.
        to_ms: End of the word.
    """

    start: int
    end: int
    confidence: float | None = None
    from_ms: int | None = None
    to_ms: int | None = None

    def moved(self, *, places: int, ms: int | None = 0) -> HeardWord:
        """The word's position in a longer transcript that contains its own.

        Args:
            places: Offset in characters.
            ms: Offset of the sound; None if unknown, which makes the word's times unknown too.
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
        after: The replacement.
        score: Evidence for the replacement, 0 to 1.
        stage: The pipeline stage that made the replacement.
        reason: A short explanation for the DM.
    """

    start: int
    end: int
    before: str
    after: str
    score: float
    stage: CorrectionStage
    reason: str


@dataclass(frozen=True, slots=True)
class SpokenBy:
    """The speaker of an utterance."""

    id: SpeakerId
    name: str


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something said aloud (or typed) at the table, and who heard it.

    Attributes:
        at_ms: When it began, milliseconds since the Unix epoch.
        duration_ms: How long it lasted; 0 for typed text, and for speech too short to measure.
        text: Corrected text. For an NPC: what was heard of its reply before it ended or was cut off.
        raw_text: The recogniser's output. For an NPC: the whole intended reply.
        npc_id: The NPC that spoke, None for a player.
        witnesses: The NPCs in the scene. An NPC that speaks is a witness of its own words.
        corrections: The replacements that lead from `raw_text` to `text`.
        aside: Why it is no part of the story: a whisper between players, their plans, words out of character, a command
            of the DM. No NPC hears it, and nothing is learned or told from it. None for anything else.
        words: Recogniser details for the words of `raw_text`. Not stored; for processing right after the utterance.
        typed: It was written, not spoken. Not stored.
        seat: Whose microphone or page it came from. Not stored.
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
    aside: Unaddressed | None = None
    words: tuple[HeardWord, ...] = ()
    typed: bool = False
    seat: PlayerId | None = None

    @property
    def is_evidence(self) -> bool:
        """Whether it may be learned from and told: a player says it in the story. A model invents NPCs' words."""
        return self.npc_id is None and self.aside is None


@dataclass(frozen=True, slots=True)
class Heard:
    """A corrected transcript.

    Attributes:
        corrections: The replacements that lead from `raw_text` to `text`.
        transcript_ms: When the recogniser returned it.
        corrected_ms: When the corrector finished.
        words: Recogniser details for the words of `raw_text`, empty if it reports none; times are relative to the start
            of the sound.
        sound_ms: Start of the sound in this ear's whole recording; None if unknown.
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
    """A player's words so far in the current turn.

    Attributes:
        began_ms: When the speech began.
        speech_end_ms: When the last voiced sample was heard.
        typed: It was written, not spoken.
        utterance: The id to store it under: of a finished turn, and of a typed line, which a page may send twice.
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
    """A player begins, or continues after a pause that did not end their turn."""

    player: PlayerId
    at_ms: int


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """The player's voice has stopped: possibly the end of their turn."""

    player: PlayerId
    at_ms: int


@dataclass(frozen=True, slots=True)
class PartialHeard:
    """A corrected partial transcript; replaces the previous one."""

    player: PlayerId
    heard: Heard
    at_ms: int

    @property
    def text(self) -> str:
        return self.heard.text


@dataclass(frozen=True, slots=True)
class EagerTurn:
    """The player has paused and may have finished: prepare an answer, but do not play it yet."""

    draft: Draft


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The player has finished. `draft.text` may differ from the eager one."""

    draft: Draft
    at_ms: int


@dataclass(frozen=True, slots=True)
class NothingSaid:
    """The sound held no words (a cough, a knock). Ends what `SpeechStarted` began.

    Attributes:
        noise: Words that a recogniser wrote for it; None for none.
    """

    player: PlayerId
    at_ms: int
    noise: Draft | None = None


Speech = SpeechStarted | PartialHeard | EagerTurn | TurnEnded | NothingSaid
"""Speech events for observers of the table."""
EarEvent = Speech | SpeechPaused
