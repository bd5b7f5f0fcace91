"""How a voice sounds: one text, and what a voice behind which this stands makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pipecat.frames.frames import Frame, TTSAudioRawFrame, TTSSpeakFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import TurnId
from glyphoxa_processors.frames import ReplyEndFrame

WITHIN_MS: Final = 30_000


class Sample(FrameProcessor):
    """Keeps the sound of one reply."""

    def __init__(self) -> None:
        super().__init__()
        self._pcm = bytearray()
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def of(self, text: str, send: Callable[[Frame], object], *, within_ms: int = WITHIN_MS) -> bytes:
        """The sound of a text: mono s16le, at the voice's rate.

        Args:
            send: Puts a frame in front of the voice.

        Raises:
            Unavailable: The voice fails, or is not done in time.
        """
        send(TTSSpeakFrame(text, append_to_context=False))
        send(ReplyEndFrame(TurnId("sample")))
        try:
            async with asyncio.timeout(within_ms / 1000):
                await self._done
        except TimeoutError:
            raise Unavailable(f"the voice did not speak within {within_ms} ms") from None
        return bytes(self._pcm)

    def fail(self, error: str) -> None:
        if not self._done.done():
            self._done.set_exception(Unavailable(f"the voice failed: {error}"))

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSAudioRawFrame):
            self._pcm += frame.audio
        elif isinstance(frame, ReplyEndFrame) and not self._done.done():
            self._done.set_result(None)
        await self.push_frame(frame, direction)
