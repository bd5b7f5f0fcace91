"""Providers of speech to speech."""

from __future__ import annotations

from typing import Final

from glyphoxa.providers.rows import over_sockets

_S2S: Final = "glyphoxa_processors.s2s.providers"

ROWS: Final = (
    over_sockets("s2s", "openai-realtime", f"{_S2S}:openai_realtime", key_env="OPENAI_API_KEY", model="gpt-realtime"),
    over_sockets("s2s", "gemini-live", f"{_S2S}:gemini_live", key_env="GOOGLE_API_KEY", model="gemini-3.8-live"),
)
