"""Cloud providers of recognisers, voices and speech to speech.

Their services are in `glyphoxa_processors.cloud` and `glyphoxa_processors.s2s`, the mouth of speech to speech in
`glyphoxa_pipelines.s2s`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from glyphoxa.providers.registry import Provider, from_openai, over_sockets

_CLOUD: Final = "glyphoxa_processors.cloud"
_S2S: Final = "glyphoxa_processors.s2s.providers"
_recogniser = partial(Provider, "stt", extra="deepgram", modules=("pipecat", "deepgram"), key_env="DEEPGRAM_API_KEY")

ROWS: Final = (
    _recogniser("deepgram-nova", f"{_CLOUD}.deepgram_stt:NovaStt", model="nova-3-general"),
    _recogniser("deepgram-flux", f"{_CLOUD}.deepgram_stt:FluxStt", model="flux-general-en"),
    from_openai("tts", "openai", f"{_CLOUD}.voices:openai", model="gpt-4o-mini-tts"),
    over_sockets("tts", "deepgram", f"{_CLOUD}.voices:deepgram", key_env="DEEPGRAM_API_KEY"),
    over_sockets("tts", "cartesia", f"{_CLOUD}.voices:cartesia", key_env="CARTESIA_API_KEY", model="sonic-3"),
    over_sockets(
        "tts",
        "elevenlabs",
        f"{_CLOUD}.voices:elevenlabs",
        key_env="ELEVENLABS_API_KEY",
        model="eleven_flash_v2_5",
    ),
    over_sockets("s2s", "openai-realtime", f"{_S2S}:openai_realtime", key_env="OPENAI_API_KEY", model="gpt-realtime"),
    over_sockets("s2s", "gemini-live", f"{_S2S}:gemini_live", key_env="GOOGLE_API_KEY", model="gemini-3.8-live"),
)
