"""Speech to text for one human, with a local model that takes whole segments."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import numpy as np
from pipecat.frames.frames import (
    Frame,
    InputAudioRawFrame,
    InterimTranscriptionFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.utils.time import time_now_iso8601

from glyphoxa.domain.ids import PlayerId
from glyphoxa_processors.recogniser import Recogniser

_RATE_HZ = 16_000
_BYTES_PER_MS = _RATE_HZ * 2 // 1_000


class WhisperSTT(FrameProcessor):
    """Transcribes between the detector's start and stop; partials by running again while the human speaks.

    Every stop is answered by exactly one closing transcript, an empty one when the model fails: a turn never
    waits for words that will not come. The audio ends here.

    Args:
        glossary: Read anew for every run, so that names can change while the session goes on.
        partial_every_ms: A partial is skipped while the model is busy.
        pre_roll_ms: Sound kept from before the speech began: detectors miss soft onsets.
        longest_segment_ms: Whoever speaks longer without a pause is transcribed in parts; the model hears 30 s.
    """

    def __init__(
        self,
        player: PlayerId,
        recogniser: Recogniser,
        *,
        glossary: Callable[[], str],
        clock: Callable[[], int],
        partial_every_ms: int = 500,
        pre_roll_ms: int = 300,
        longest_segment_ms: int = 24_000,
    ) -> None:
        super().__init__(name=f"stt-{player}")
        self._player = player
        self._recogniser = recogniser
        self._glossary = glossary
        self._clock = clock
        self._partial_every_bytes = partial_every_ms * _BYTES_PER_MS
        self._pre_roll_ms = pre_roll_ms
        self._longest_bytes = longest_segment_ms * _BYTES_PER_MS
        self._before: deque[bytes] = deque()
        self._n_before = 0
        self._keep_before = (pre_roll_ms + 400) * _BYTES_PER_MS
        self._segment: bytearray | None = None
        self._next_partial_at = 0
        self._partial: asyncio.Task[None] | None = None
        self._finals: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            self._hear(frame.audio)
            return
        await self.push_frame(frame, direction)
        if direction is not FrameDirection.DOWNSTREAM:
            return
        if isinstance(frame, VADUserStartedSpeakingFrame):
            self._open_segment(frame.start_secs)
        elif isinstance(frame, VADUserStoppedSpeakingFrame) and self._segment is not None:
            self._close_segment(closes=True)
            self._segment = None

    async def cleanup(self) -> None:
        for task in (self._partial, self._worker):
            if task is not None:
                await self.cancel_task(task)
        await super().cleanup()

    def _hear(self, audio: bytes) -> None:
        if self._segment is None:
            self._before.append(audio)
            self._n_before += len(audio)
            while self._before and self._n_before - len(self._before[0]) >= self._keep_before:
                self._n_before -= len(self._before.popleft())
            return
        self._segment += audio
        if len(self._segment) >= self._longest_bytes:
            self._close_segment(closes=False)
            self._segment = bytearray()
            self._next_partial_at = self._partial_every_bytes
        elif len(self._segment) >= self._next_partial_at:
            self._next_partial_at = len(self._segment) + self._partial_every_bytes
            self._ask_for_partial(bytes(self._segment))

    def _open_segment(self, start_secs: float) -> None:
        keep = (self._pre_roll_ms + int(start_secs * 1_000)) * _BYTES_PER_MS
        self._segment = bytearray(b"".join(self._before)[-keep:])
        self._before.clear()
        self._n_before = 0
        self._next_partial_at = len(self._segment) + self._partial_every_bytes // 2

    def _close_segment(self, *, closes: bool) -> None:
        if self._partial is not None:
            self._partial.cancel()
        if self._worker is None:
            self._worker = self.create_task(self._transcribe_finals(), "finals")
        self._finals.put_nowait((bytes(self._segment or b""), closes))

    def _ask_for_partial(self, segment: bytes) -> None:
        if self._partial is None or self._partial.done():
            self._partial = self.create_task(self._transcribe_partial(segment), "partial")

    async def _transcribe_partial(self, segment: bytes) -> None:
        try:
            heard = await self._recogniser.partial(np.frombuffer(segment, dtype=np.int16), self._glossary())
        except Exception as error:  # the model's own; a lost partial costs nothing, the final will tell
            await self.push_error(f"a partial transcript failed: {error}", exception=error)
            return
        if heard is None or not heard.text.strip():
            return
        frame = InterimTranscriptionFrame(heard.text, self._player, time_now_iso8601(), result=heard)
        frame.metadata["transcript_ms"] = self._clock()
        await self.push_frame(frame)

    async def _transcribe_finals(self) -> None:
        while True:
            segment, closes = await self._finals.get()
            text, result = "", None
            try:
                result = await self._recogniser.final(np.frombuffer(segment, dtype=np.int16), self._glossary())
                text = result.text
            except Exception as error:  # the model's own; the turn must end all the same
                await self.push_error(f"a transcript failed: {error}", exception=error)
            frame = TranscriptionFrame(text, self._player, time_now_iso8601(), result=result, finalized=closes)
            # Words that were said are not taken back by an interruption.
            frame.interruptible = False
            frame.metadata["transcript_ms"] = self._clock()
            await self.push_frame(frame)
