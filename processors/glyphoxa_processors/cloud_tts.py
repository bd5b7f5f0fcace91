"""Cloud voices for a mouth. Each clause comes as a `TTSSpeakFrame` of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from glyphoxa.npc.table import OUTPUT_RATE_HZ
from glyphoxa_processors.cloud import Provider, choose, key_of

if TYPE_CHECKING:
    from pipecat.services.tts_service import TTSService

_DEFAULT_VOICES = {
    "openai": "onyx",
    "deepgram": "aura-2-draco-en",
    "elevenlabs": "JBFqnCBsd6RMkjVDRZzb",
    "cartesia": "a0e99841-438c-4a64-b679-ae501e7d6091",
}


def make_tts(
    provider: Provider,
    *,
    voice: str | None = None,
    sample_rate: int = OUTPUT_RATE_HZ,
    environ: Mapping[str, str] = os.environ,
) -> TTSService:
    """A voice for one mouth. Names: `openai`, `deepgram`, `elevenlabs`, `cartesia`.

    Args:
        voice: The provider's id of it; None for the provider's default of ours.

    Raises:
        InvalidInput: The name is unknown, its extra is not installed, or the key is not set.
    """
    key = partial(key_of, provider, kind="tts", environ=environ)
    spoken_by = voice or _DEFAULT_VOICES.get(provider.name, "")

    def openai() -> TTSService:
        from glyphoxa_processors.openai_tts import SpokenOpenAiTts

        return SpokenOpenAiTts(
            api_key=key(default_env="OPENAI_API_KEY"),
            base_url=provider.base_url,
            sample_rate=sample_rate,
            settings=SpokenOpenAiTts.Settings(
                model=provider.model or "gpt-4o-mini-tts",
                voice=spoken_by,
                language=None,
                instructions=None,
                speed=None,
            ),
        )

    def deepgram() -> TTSService:
        from pipecat.services.deepgram.tts import DeepgramTTSService

        from glyphoxa_processors.deepgram_tts import AuraTts

        return AuraTts(
            api_key=key(default_env="DEEPGRAM_API_KEY"),
            base_url=_socket_url(provider.base_url or "wss://api.deepgram.com"),
            sample_rate=sample_rate,
            encoding="linear16",
            mip_opt_out=True,
            settings=DeepgramTTSService.Settings(model=spoken_by, voice=spoken_by, language=None, speed=None),
        )

    def elevenlabs() -> TTSService:
        from pipecat.services.elevenlabs.tts import ElevenLabsTTSService

        return ElevenLabsTTSService(
            api_key=key(default_env="ELEVENLABS_API_KEY"),
            url=_socket_url(provider.base_url or "wss://api.elevenlabs.io"),
            sample_rate=sample_rate,
            settings=ElevenLabsTTSService.Settings(model=provider.model or "eleven_flash_v2_5", voice=spoken_by),
        )

    def cartesia() -> TTSService:
        from pipecat.services.cartesia.tts import CartesiaTTSService

        return CartesiaTTSService(
            api_key=key(default_env="CARTESIA_API_KEY"),
            url=_socket_url(provider.base_url or "wss://api.cartesia.ai/tts/websocket"),
            sample_rate=sample_rate,
            settings=CartesiaTTSService.Settings(model=provider.model or "sonic-3", voice=spoken_by),
        )

    makers = {"openai": openai, "deepgram": deepgram, "elevenlabs": elevenlabs, "cartesia": cartesia}
    return choose(provider, makers, kind="tts")


def _socket_url(base_url: str) -> str:
    return base_url.rstrip("/").replace("https://", "wss://").replace("http://", "ws://")
