"""Puts the campaign's names right in every transcript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from pipecat.frames.frames import EagerTranscriptionFrame, Frame, InterimTranscriptionFrame, TranscriptionFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from glyphoxa.domain.heard import Correction, HeardWord
from glyphoxa_processors.recogniser import notes_of, put_notes


class CorrectedText(Protocol):
    @property
    def text(self) -> str: ...

    @property
    def corrections(self) -> Sequence[Correction]: ...


class CorrectsText(Protocol):
    """Puts the names in a transcript right, at once. `heard`: what the recogniser knows of the words of `text`."""

    def __call__(self, text: str, /, *, heard: Sequence[HeardWord]) -> CorrectedText: ...


class PhoneticCorrector(FrameProcessor):
    """Partial, eager and final transcripts alike, at once and always the same: an answer that was prepared for an
    eager transcript fits the final one only then.

    The raw text, the corrections and the times are added to the recogniser's notes, which travel with the frame.

    Args:
        correct: Must return at once.
    """

    def __init__(self, correct: CorrectsText, *, clock: Callable[[], int]) -> None:
        super().__init__()
        self._correct = correct
        self._clock = clock

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TranscriptionFrame | InterimTranscriptionFrame | EagerTranscriptionFrame):
            await self._put_right(frame)
        await self.push_frame(frame, direction)

    async def _put_right(self, frame: TranscriptionFrame | InterimTranscriptionFrame | EagerTranscriptionFrame) -> None:
        notes = notes_of(frame)
        transcript_ms = notes.transcript_ms if notes.transcript_ms is not None else self._clock()
        raw_text, corrections = frame.text, tuple[Correction, ...]()
        try:
            corrected = self._correct(raw_text, heard=notes.words)
        except Exception as error:  # a corrector of somebody else's: what was said must not be lost through it
            await self.push_error(f"a transcript was left uncorrected: {error}", exception=error)
        else:
            frame.text = corrected.text
            corrections = tuple(corrected.corrections)
        put_notes(
            frame,
            replace(
                notes,
                transcript_ms=transcript_ms,
                raw_text=raw_text,
                corrections=corrections,
                corrected_ms=self._clock(),
            ),
        )
        # Set here as well as by our own STT: other services' transcripts are dropped by an interruption too.
        frame.interruptible = False
