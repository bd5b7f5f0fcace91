"""Cloud providers of recognisers and voices."""

from __future__ import annotations

from functools import partial
from typing import Final

from glyphoxa.providers.rows import Provider, from_openai, over_sockets

_CLOUD: Final = "glyphoxa_processors.cloud"
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
)
