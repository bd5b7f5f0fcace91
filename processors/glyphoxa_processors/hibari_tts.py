"""The local voice as a pipecat service: a blocking synthesiser in a thread, with streamed sound."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from glyphoxa_processors.streamed_voice import StreamedVoice, VoiceFailed

Synthesise = Callable[[str], Iterator[NDArray[np.int16]]]
"""Blocking. Yields 24 kHz mono sound in parts."""


class HibariTTS(StreamedVoice):
    """The hibari voice. An interruption takes effect between two parts, and discards the part in progress."""

    def __init__(self, synthesise: Synthesise, *, voice: str) -> None:
        super().__init__(model="hibari", voice=voice, push_text_frames=False)
        self._synthesise = synthesise
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"voice-{voice}")

    async def spoken(self, text: str) -> AsyncGenerator[bytes, None]:
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
        try:
            while (part := await parts.get()) is not None:
                if isinstance(part, Exception):
                    raise VoiceFailed(str(part)) from part
                yield part
        finally:
            stop.set()

    async def cleanup(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
        await super().cleanup()
