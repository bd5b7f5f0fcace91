"""Puts the campaign's names right in every transcript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pipecat.frames.frames import EagerTranscriptionFrame, Frame, InterimTranscriptionFrame, TranscriptionFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from glyphoxa.domain.utterance import Correction, HeardWord


class Corrected(Protocol):
    @property
    def text(self) -> str: ...

    @property
    def corrections(self) -> Sequence[Correction]: ...


class Correct(Protocol):
    """Puts the names in a transcript right, at once. `heard`: what the recogniser knows of the words of `text`."""

    def __call__(self, text: str, /, *, heard: Sequence[HeardWord]) -> Corrected: ...


class PhoneticCorrector(FrameProcessor):
    """Partial, eager and final transcripts alike, at once and always the same: an answer that was prepared for an
    eager transcript fits the final one only then.

    The raw text, the corrections and the times travel in the frame's metadata, where the recogniser has put what it
    knows of the words (`words`, places in the raw text; none when it knows nothing).

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
            await self._put_right(frame)
        await self.push_frame(frame, direction)

    async def _put_right(self, frame: TranscriptionFrame | InterimTranscriptionFrame | EagerTranscriptionFrame) -> None:
        frame.metadata.setdefault("transcript_ms", self._clock())
        frame.metadata["raw_text"] = frame.text
        frame.metadata["corrections"] = ()
        try:
            corrected = self._correct(frame.text, heard=frame.metadata.setdefault("words", ()))
        except Exception as error:  # a corrector of somebody else's: what was said must not be lost through it
            await self.push_error(f"a transcript was left uncorrected: {error}", exception=error)
        else:
            frame.text = corrected.text
            frame.metadata["corrections"] = tuple(corrected.corrections)
        frame.metadata["corrected_ms"] = self._clock()
        # Set here as well as by our own STT: other services' transcripts are dropped by an interruption too.
        frame.interruptible = False
