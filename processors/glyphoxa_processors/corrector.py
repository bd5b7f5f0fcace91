"""Corrects the campaign's names in every transcript."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipecat.frames.frames import EagerTranscriptionFrame, Frame, InterimTranscriptionFrame, TranscriptionFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from glyphoxa.domain.heard import Correction
from glyphoxa.names.corrector import Correct
from glyphoxa_processors.recogniser import notes_of, put_notes


class PhoneticCorrector(FrameProcessor):
    """Corrects partial, eager and final transcripts, at once and deterministically.

    An answer prepared for an eager transcript fits the final one only if both are corrected alike. The raw text, the
    corrections and the times are added to the recogniser's notes on the frame.

    Args:
        correct: Must return at once.
    """

    def __init__(self, correct: Correct, *, clock: Callable[[], int]) -> None:
        super().__init__()
        self._correct = correct
        self._clock = clock

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TranscriptionFrame | InterimTranscriptionFrame | EagerTranscriptionFrame):
            await self._correct_frame(frame)
        await self.push_frame(frame, direction)

    async def _correct_frame(
        self, frame: TranscriptionFrame | InterimTranscriptionFrame | EagerTranscriptionFrame
    ) -> None:
        notes = notes_of(frame)
        transcript_ms = notes.transcript_ms if notes.transcript_ms is not None else self._clock()
        raw_text, corrections = frame.text, tuple[Correction, ...]()
        try:
            corrected = self._correct(raw_text, heard=notes.words)
        except Exception as error:  # a failing corrector must not lose the transcript
            await self.push_error(f"a transcript was left uncorrected: {error}", exception=error)
        else:
            frame.text = corrected.text
            corrections = corrected.corrections
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
        # Also set by our STT. An interruption would drop other services' transcripts.
        frame.interruptible = False
