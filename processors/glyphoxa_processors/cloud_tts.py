"""Cloud voices for a mouth. Each clause comes as a `TTSSpeakFrame` of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glyphoxa.npc.table import OUTPUT_RATE_HZ
from glyphoxa.providers.building import Connection, build
from glyphoxa.providers.registry import TTS, Choice

if TYPE_CHECKING:
    from pipecat.services.tts_service import TTSService


def make_tts(
    provider: Choice,
    *,
    voice: str | None = None,
    sample_rate: int = OUTPUT_RATE_HZ,
    environ: Mapping[str, str] = os.environ,
) -> TTSService:
    """A voice for one mouth.

    Args:
        voice: The provider's id of it; None for the provider's default of ours.

    Raises:
        InvalidInput: As `build`.
    """
    made: TTSService = build(provider, section=TTS, environ=environ, voice=voice, sample_rate=sample_rate)
    return made


def openai(connection: Connection, *, voice: str | None, sample_rate: int) -> TTSService:
    from glyphoxa_processors.openai_tts import SpokenOpenAiTts

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

    from glyphoxa_processors.deepgram_tts import AuraTts

    spoken_by = voice or "aura-2-draco-en"  # which is its model as well
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
