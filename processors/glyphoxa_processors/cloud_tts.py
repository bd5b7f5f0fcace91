"""Cloud voices for a mouth. Each clause arrives as its own `TTSSpeakFrame`."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from loguru import logger
from pipecat.frames.frames import Frame, TTSAudioRawFrame, TTSStoppedFrame
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.deepgram.tts import DeepgramTTSService
from pipecat.services.openai.tts import OpenAITTSService

from glyphoxa.adapters.openai_models import kept_open
from glyphoxa.npc.table import OUTPUT_RATE_HZ
from glyphoxa.providers.building import TTS, Choice, Connection, build
from glyphoxa_processors.cloud_llm import ConnectionWarmer
from glyphoxa_processors.frames import PrimeFrame

if TYPE_CHECKING:
    from pipecat.services.tts_service import TTSService


def make_tts(
    provider: Choice,
    *,
    voice: str | None = None,
    sample_rate: int = OUTPUT_RATE_HZ,
    environ: Mapping[str, str] = os.environ,
) -> TTSService:
    """Create a voice for one mouth.

    Args:
        voice: The provider's voice id; None for the default.

    Raises:
        InvalidInput: As `build`.
    """
    made: TTSService = build(provider, section=TTS, environ=environ, voice=voice, sample_rate=sample_rate)
    return made


def openai(connection: Connection, *, voice: str | None, sample_rate: int) -> TTSService:

    return SpokenOpenAiTts(
        api_key=connection.key,
        base_url=connection.base_url,
        sample_rate=sample_rate,
        settings=SpokenOpenAiTts.Settings(
            model=connection.model, voice=voice or "onyx", language=None, instructions=None, speed=None
        ),
    )


def deepgram(connection: Connection, *, voice: str | None, sample_rate: int) -> TTSService:
    from pipecat.services.deepgram.tts import DeepgramTTSService

    spoken_by = voice or "aura-2-draco-en"  # also the model name
    return AuraTts(
        api_key=connection.key,
        base_url=_socket_url(connection.base_url or "wss://api.deepgram.com"),
        sample_rate=sample_rate,
        encoding="linear16",
        mip_opt_out=True,
        settings=DeepgramTTSService.Settings(model=spoken_by, voice=spoken_by, language=None, speed=None),
    )


def elevenlabs(connection: Connection, *, voice: str | None, sample_rate: int) -> TTSService:
    from pipecat.services.elevenlabs.tts import ElevenLabsTTSService

    return ElevenLabsTTSService(
        api_key=connection.key,
        url=_socket_url(connection.base_url or "wss://api.elevenlabs.io"),
        sample_rate=sample_rate,
        settings=ElevenLabsTTSService.Settings(model=connection.model, voice=voice or "JBFqnCBsd6RMkjVDRZzb"),
    )


def cartesia(connection: Connection, *, voice: str | None, sample_rate: int) -> TTSService:
    from pipecat.services.cartesia.tts import CartesiaTTSService

    return CartesiaTTSService(
        api_key=connection.key,
        url=_socket_url(connection.base_url or "wss://api.cartesia.ai/tts/websocket"),
        sample_rate=sample_rate,
        settings=CartesiaTTSService.Settings(
            model=connection.model, voice=voice or "a0e99841-438c-4a64-b679-ae501e7d6091"
        ),
    )


def _socket_url(base_url: str) -> str:
    return base_url.rstrip("/").replace("https://", "wss://").replace("http://", "ws://")


# Deepgram's voice, which never plays the rest of an interrupted reply in the next one.


class AuraTts(DeepgramTTSService):
    """Drops sound between our `Clear` and the server's `Cleared`.

    The protocol does not say which text a piece of sound belongs to, and pipecat assigns it to the current one. Sound
    in transit at an interruption would therefore start the next reply.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._n_clearing = 0

    async def on_audio_context_interrupted(self, context_id: str) -> None:
        if self._websocket:
            self._n_clearing += 1
        await super().on_audio_context_interrupted(context_id)

    async def _connect_websocket(self) -> None:
        self._n_clearing = 0
        await super()._connect_websocket()

    async def _receive_messages(self) -> None:
        async for message in self._get_websocket():
            if isinstance(message, str):
                await self._take(json.loads(message))
                continue
            context_id = self.get_active_audio_context_id()
            if context_id and not self._n_clearing:
                frame = TTSAudioRawFrame(message, self.sample_rate, 1, context_id=context_id)
                await self.append_to_audio_context(context_id, frame)

    async def _take(self, control: dict[str, Any]) -> None:
        match control.get("type"):
            case "Cleared":
                self._n_clearing = max(0, self._n_clearing - 1)
            case "Flushed" if not self._n_clearing:
                context_id = self.get_active_audio_context_id()
                if context_id:
                    await self.append_to_audio_context(context_id, TTSStoppedFrame(context_id=context_id))
                    await self.remove_audio_context(context_id)
            case "Warning" | "Error":
                # Its message may quote the text to be spoken.
                logger.bind(content=str(control)).warning("{}: the voice service reports a warning", self)
            case _:
                pass


# OpenAI's voice, played as soon as its first 100 ms are there.


_PIECE_MS = 100
"""The voice is faster than real time, so a short start does not run dry."""


class SpokenOpenAiTts(OpenAITTSService):
    """`OpenAITTSService` with a persistent connection and an immediate start.

    pipecat's service buffers half a second of sound first, and starts the next request only after that is consumed.
    """

    def __init__(self, **kwargs: Any) -> None:
        http = kept_open()
        super().__init__(http_client=http, **kwargs)
        # One retry, for a connection that went stale between two turns. More would keep the table waiting.
        self._client.max_retries = 1
        self._connection = ConnectionWarmer(http, str(self._client.base_url), clock=time.monotonic)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        if isinstance(frame, PrimeFrame):
            if not self._connection.is_open:
                self.create_task(self._connection.open(), "connection")
            return
        await super().process_frame(frame, direction)

    @property
    def chunk_size(self) -> int:
        """Bytes of one chunk of sound."""
        return self.sample_rate * _PIECE_MS // 1_000 * 2

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame, None]:
        """See `OpenAITTSService.run_tts`."""
        self._connection.in_use()
        async with aclosing(super().run_tts(text, context_id)) as frames:
            async for frame in frames:
                yield frame
                await asyncio.sleep(0)  # let the player run first
        self._connection.is_free()

    async def cleanup(self) -> None:
        await super().cleanup()
        await self._client.close()
