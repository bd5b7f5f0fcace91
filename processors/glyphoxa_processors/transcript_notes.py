"""What the processors of an ear know of a transcript beside its text: it travels with the frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pipecat.frames.frames import Frame

from glyphoxa.domain.utterance import Correction, HeardWord

_KEY: Final = "glyphoxa.transcript"


@dataclass(frozen=True, slots=True)
class TranscriptNotes:
    """The recogniser writes the first part, the corrector the second. None and empty: nobody has written it.

    Attributes:
        words: What the recogniser knows of the words; places in the raw text.
        sound_ms: When the sound of the words begins, in all the sound of the ear.
        transcript_ms: When the recogniser returned it.
        segment: How often speech had begun when the transcribed sound ends.
        revises: It takes the place of the last one.
        raw_text: As it was recognised.
        corrections: The replacements that lead from there to the frame's text.
        corrected_ms: When the corrector was done with it.
    """

    words: tuple[HeardWord, ...] = ()
    sound_ms: int | None = None
    transcript_ms: int | None = None
    segment: int | None = None
    revises: bool = False
    raw_text: str | None = None
    corrections: tuple[Correction, ...] = ()
    corrected_ms: int | None = None


def notes_of(frame: Frame) -> TranscriptNotes:
    notes = frame.metadata.get(_KEY)
    return notes if isinstance(notes, TranscriptNotes) else TranscriptNotes()


def put_notes(frame: Frame, notes: TranscriptNotes) -> None:
    """In the place of those that are there; see `dataclasses.replace`."""
    frame.metadata[_KEY] = notes
