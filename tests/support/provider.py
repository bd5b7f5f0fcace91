from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from glyphoxa.providers.registry import LLM, S2S, STT, TTS, build


@dataclass(frozen=True)
class ProviderNamed:
    """A provider as the settings file would name it."""

    name: str
    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = "TEST_KEY"


KEYS = {"TEST_KEY": "secret-1234"}

make_stt = partial(build, section=STT)
make_llm = partial(build, section=LLM)
make_tts = partial(build, section=TTS)
make_endpoint = partial(build, section=S2S)
