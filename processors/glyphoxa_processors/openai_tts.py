"""OpenAI's voice, heard as soon as its first tenth of a second is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from pipecat.frames.frames import Frame
from pipecat.services.openai.tts import OpenAITTSService

from glyphoxa_processors.openai_connections import kept_open

_PIECE_MS = 100
"""The voice is faster than speech, so that a short beginning does not run dry."""


class SpokenOpenAiTts(OpenAITTSService):
    """`OpenAITTSService` whose connection stays open between two turns, and whose first sound waits for nothing.

    pipecat's collects half a second of sound before it gives the first of it away, and prepares the request for the
    next clause before anybody takes that.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(http_client=kept_open(), **kwargs)

    @property
    def chunk_size(self) -> int:
        """Bytes of a piece of sound."""
        return self.sample_rate * _PIECE_MS // 1_000 * 2

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame, None]:
        """See `OpenAITTSService.run_tts`."""
        async with aclosing(super().run_tts(text, context_id)) as frames:
            async for frame in frames:
                yield frame
                await asyncio.sleep(0)  # whoever plays it comes first

    async def cleanup(self) -> None:
        await super().cleanup()
        await self._client.close()
