"""What an ear reports to the room. Times are milliseconds since the Unix epoch."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.domain.ids import PlayerId, UtteranceId
from glyphoxa.domain.utterance import Correction, HeardWord


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
