"""Voices that return the sound of one clause at a time, and the local one: a blocking synthesiser in a thread."""

from __future__ import annotations

import asyncio
import threading
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import numpy as np
from numpy.typing import NDArray
from pipecat.frames.frames import ErrorFrame, Frame, TTSAudioRawFrame
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TTSService

from glyphoxa.npc.table_interface import OUTPUT_RATE_HZ


class VoiceFailed(Exception):
    """A clause cannot be spoken. The message is for the DM."""


class StreamedVoice(TTSService):
    """A voice that returns the sound of one clause at a time, as a stream: mono s16le at `OUTPUT_RATE_HZ`."""

    def __init__(self, *, model: str, voice: str, push_text_frames: bool = True) -> None:
        super().__init__(
            push_start_frame=True,
            push_stop_frames=True,
            push_text_frames=push_text_frames,
            # A clause without sound does not mean that the service died.
            max_consecutive_zero_audio_contexts=0,
            sample_rate=OUTPUT_RATE_HZ,
            settings=TTSSettings(model=model, voice=voice, language=None),
        )

    def can_generate_metrics(self) -> bool:
        return True

    @abstractmethod
    def spoken(self, text: str) -> AsyncGenerator[bytes, None]:
        """Yield the sound of a clause, of any length each.

        Raises:
            VoiceFailed: The provider refuses it or fails.
        """

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        rest, has_sound = b"", False
        try:
            async with aclosing(self.spoken(text)) as parts:
                async for part in parts:
                    sound = rest + part if rest else part
                    rest = sound[len(sound) & ~1 :]  # half a sample
                    if len(sound) < 2:
                        continue
                    has_sound = True
                    await self.stop_ttfb_metrics()
                    yield TTSAudioRawFrame(sound[: len(sound) & ~1], self.sample_rate, 1, context_id=context_id)
                    await asyncio.sleep(0)  # let the player run first
        except VoiceFailed as error:
            # Without an exception: for some kinds of it, pipecat would never use the voice again.
            yield ErrorFrame(error=f"the voice failed: {error}")
        if not has_sound:
            # Otherwise pipecat would delay it and the next clause by three seconds.
            await self.remove_audio_context(context_id)


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
