"""Corrects the campaign's names in every transcript."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipecat.frames.frames import EagerTranscriptionFrame, Frame, InterimTranscriptionFrame, TranscriptionFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from glyphoxa.domain.heard import Correction, Heard
from glyphoxa.names.corrector import Correct
from glyphoxa_processors.recogniser import notes_of, put_notes


class PhoneticCorrector(FrameProcessor):
    """Corrects partial, eager and final transcripts, at once and deterministically.

    An answer prepared for an eager transcript fits the final one only if both are corrected alike. The result is added
    to the recogniser's notes on the frame.

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
        notes, transcript_ms, raw_text = notes_of(frame), self._clock(), frame.text
        corrections = tuple[Correction, ...]()
        try:
            corrected = self._correct(raw_text, heard=notes.words)
        except Exception as error:  # a failing corrector must not lose the transcript
            await self.push_error(f"a transcript was left uncorrected: {error}", exception=error)
        else:
            frame.text = corrected.text
            corrections = corrected.corrections
        text, corrected_ms = frame.text.strip(), self._clock()
        heard = Heard(text, raw_text, corrections, transcript_ms, corrected_ms, notes.words, notes.sound_ms)
        put_notes(frame, replace(notes, heard=heard))
        # Also set by our STT. An interruption would drop other services' transcripts.
        frame.interruptible = False
