"""The local voice as a pipecat service: a blocking synthesiser in a thread, with streamed sound."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from pipecat.frames.frames import Frame, TTSAudioRawFrame
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TTSService

from glyphoxa.npc.table import OUTPUT_RATE_HZ

Synthesise = Callable[[str], Iterator[NDArray[np.int16]]]
"""Blocking. Yields 24 kHz mono sound in parts."""


class HibariTTS(TTSService):
    """The hibari voice. An interruption takes effect between two parts, and discards the part in progress."""

    def __init__(self, synthesise: Synthesise, *, voice: str) -> None:
        super().__init__(
            push_start_frame=True,
            push_stop_frames=True,
            push_text_frames=False,
            # A clause without sound does not mean that the service died.
            max_consecutive_zero_audio_contexts=0,
            sample_rate=OUTPUT_RATE_HZ,
            settings=TTSSettings(model="hibari", voice=voice, language=None),
        )
        self._synthesise = synthesise
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"voice-{voice}")

    def can_generate_metrics(self) -> bool:
        return True

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        loop = asyncio.get_running_loop()
        parts: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        stop = threading.Event()

        def hand_over(part: bytes | Exception | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(parts.put_nowait, part)

        def synthesise() -> None:
            try:
                if not stop.is_set():
                    for part in self._synthesise(text):
                        if stop.is_set():
                            return
                        hand_over(part.tobytes())
                hand_over(None)
            except Exception as error:  # passed to the event loop and reported there
                hand_over(error)

        self._executor.submit(synthesise)
        has_sound = False
        try:
            while (part := await parts.get()) is not None:
                if isinstance(part, Exception):
                    await self.push_error(f"the voice failed: {part}", exception=part)
                    break
                has_sound = True
                await self.stop_ttfb_metrics()
                yield TTSAudioRawFrame(part, OUTPUT_RATE_HZ, 1, context_id=context_id)
            if not has_sound:
                # Otherwise pipecat would delay it and the next clause by three seconds.
                await self.remove_audio_context(context_id)
        finally:
            stop.set()

    async def cleanup(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
        await super().cleanup()
