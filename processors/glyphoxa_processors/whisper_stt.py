"""Speech to text for one human, with a local model that takes whole segments.

The model takes a quarter of a second and more. So it is asked early: as soon as the voice falls quiet, before the
detector is sure of the pause. When the detector agrees, and found no speech behind what was transcribed, that is
the final transcript; otherwise it was one more partial.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

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
from glyphoxa_processors.recogniser import Recognised, Recogniser

_RATE_HZ = 16_000
_BYTES_PER_MS = _RATE_HZ * 2 // 1_000
_QUIET_SHARE = 0.1
"""Of the loudest 20 ms of the segment: below it, the voice has fallen quiet."""


class WhisperSTT(FrameProcessor):
    """Transcribes between the detector's start and stop; partials by running again while the human speaks.

    Every stop is answered by exactly one closing transcript, an empty one when the model fails: a turn never
    waits for words that will not come. The audio ends here.

    Args:
        glossary: Read anew for every run, so that names can change while the session goes on.
        partial_every_ms: A partial is skipped while the model is busy.
        pre_roll_ms: Sound kept from before the speech began: detectors miss soft onsets.
        early_ms: Quiet after which the model is asked for what may be the final transcript. The detector hears the
            speech end some 80 ms later than its sound falls off.
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
        early_ms: int = 120,
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
        self._early_ms = early_ms
        self._loudest = 0.0
        self._quiet_ms = 0
        self._partial: asyncio.Task[Recognised | None] | None = None
        self._early_covers = 0
        """How much of the segment the run in `_partial` is a full transcript of; 0 for an ordinary partial."""
        self._finals: asyncio.Queue[_Segment] = asyncio.Queue()
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
            n_silent = int(frame.stop_secs * 1_000) * _BYTES_PER_MS
            self._close_segment(closes=True, n_speech=len(self._segment) - n_silent)
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
        self._listen_for_quiet(audio)
        if len(self._segment) >= self._longest_bytes:
            self._close_segment(closes=False, n_speech=len(self._segment))
            self._segment = bytearray()
            self._next_partial_at = self._partial_every_bytes
        elif self._quiet_ms >= self._early_ms:
            if not (self._early_covers or self._recogniser.is_busy):
                self._ask(retry=True)
        elif len(self._segment) >= self._next_partial_at and not self._quiet_ms:
            self._next_partial_at = len(self._segment) + self._partial_every_bytes
            if self._partial is None or self._partial.done():
                self._ask(retry=False)

    def _listen_for_quiet(self, audio: bytes) -> None:
        samples = np.frombuffer(audio, dtype=np.int16).astype(np.float32)
        loudness = float(np.sqrt(np.mean(samples * samples))) if len(samples) else 0.0
        self._loudest = max(self._loudest, loudness)
        if loudness < self._loudest * _QUIET_SHARE:
            self._quiet_ms += len(audio) // _BYTES_PER_MS
        else:
            self._quiet_ms = 0
            self._early_covers = 0

    def _open_segment(self, start_secs: float) -> None:
        keep = (self._pre_roll_ms + int(start_secs * 1_000)) * _BYTES_PER_MS
        self._segment = bytearray(b"".join(self._before)[-keep:])
        self._before.clear()
        self._n_before = 0
        self._next_partial_at = len(self._segment) + self._partial_every_bytes // 2
        self._loudest, self._quiet_ms, self._early_covers = 0.0, 0, 0

    def _close_segment(self, *, closes: bool, n_speech: int) -> None:
        early = self._partial if self._early_covers >= max(1, n_speech) else None
        if self._partial is not None and early is None:
            self._partial.cancel()
        self._partial, self._early_covers = None, 0
        if self._worker is None:
            self._worker = self.create_task(self._transcribe_finals(), "finals")
        self._finals.put_nowait(_Segment(bytes(self._segment or b""), closes, early))

    def _ask(self, *, retry: bool) -> None:
        segment = bytes(self._segment or b"")
        self._early_covers = len(segment) if retry else 0
        self._partial = self.create_task(self._transcribe_partial(segment, retry=retry), "partial")

    async def _transcribe_partial(self, segment: bytes, *, retry: bool) -> Recognised | None:
        pcm = np.frombuffer(segment, dtype=np.int16)
        try:
            heard = await self._recogniser.partial(pcm, self._glossary(), retry=retry)
        except Exception as error:  # the model's own; a lost partial costs nothing, the final will tell
            await self.push_error(f"a partial transcript failed: {error}", exception=error)
            return None
        if heard is not None and heard.text.strip():
            frame = InterimTranscriptionFrame(heard.text, self._player, time_now_iso8601(), result=heard)
            frame.metadata["transcript_ms"] = self._clock()
            await self.push_frame(frame)
        return heard

    async def _transcribe_finals(self) -> None:
        while True:
            segment = await self._finals.get()
            text, result = "", None
            try:
                result = await self._final(segment)
                text = result.text
            except Exception as error:  # the model's own; the turn must end all the same
                await self.push_error(f"a transcript failed: {error}", exception=error)
            frame = TranscriptionFrame(
                text, self._player, time_now_iso8601(), result=result, finalized=segment.is_before_a_pause
            )
            # Words that were said are not taken back by an interruption.
            frame.interruptible = False
            frame.metadata["transcript_ms"] = self._clock()
            await self.push_frame(frame)

    async def _final(self, segment: _Segment) -> Recognised:
        heard = await segment.early if segment.early is not None else None
        if heard is None:
            heard = await self._recogniser.final(np.frombuffer(segment.pcm, dtype=np.int16), self._glossary())
        return heard


@dataclass(frozen=True, slots=True)
class _Segment:
    """`early`: a run that is under way or done and heard all of the speech in it."""

    pcm: bytes
    is_before_a_pause: bool
    early: asyncio.Task[Recognised | None] | None
