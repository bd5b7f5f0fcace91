"""OpenAI's voice, heard as soon as its first tenth of a second is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from pipecat.frames.frames import Frame
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.openai.tts import OpenAITTSService

from glyphoxa_processors.frames import PrimeFrame
from glyphoxa_processors.openai_connections import OpenAhead, kept_open

_PIECE_MS = 100
"""The voice is faster than speech, so that a short beginning does not run dry."""


class SpokenOpenAiTts(OpenAITTSService):
    """`OpenAITTSService` whose connection stays open between two turns, and whose first sound waits for nothing.

    pipecat's collects half a second of sound before it gives the first of it away, and prepares the request for the
    next clause before anybody takes that.
    """

    def __init__(self, **kwargs: Any) -> None:
        http = kept_open()
        super().__init__(http_client=http, **kwargs)
        # Once more, for a connection that went stale between two turns; more would only keep the table waiting.
        self._client.max_retries = 1
        self._connection = OpenAhead(http, str(self._client.base_url), clock=time.monotonic)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        if isinstance(frame, PrimeFrame):
            if not self._connection.is_open:
                self.create_task(self._connection.open(), "connection")
            return
        await super().process_frame(frame, direction)

    @property
    def chunk_size(self) -> int:
        """Bytes of a piece of sound."""
        return self.sample_rate * _PIECE_MS // 1_000 * 2

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame, None]:
        """See `OpenAITTSService.run_tts`."""
        self._connection.in_use()
        async with aclosing(super().run_tts(text, context_id)) as frames:
            async for frame in frames:
                yield frame
                await asyncio.sleep(0)  # whoever plays it comes first
        self._connection.is_free()

    async def cleanup(self) -> None:
        await super().cleanup()
        await self._client.close()
