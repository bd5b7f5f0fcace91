"""The services that run on this machine: Whisper, a llama.cpp server, the hibari voice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipecat.services.openai.base_llm import OpenAILLMSettings

from glyphoxa.domain.ids import PlayerId
from glyphoxa_processors.hibari_tts import HibariTTS, Synthesise
from glyphoxa_processors.llm import SpokenLLM
from glyphoxa_processors.recogniser import Recogniser
from glyphoxa_processors.whisper_stt import WhisperSTT


def make_stt(
    player: PlayerId, recogniser: Recogniser, *, glossary: Callable[[], str], clock: Callable[[], int]
) -> WhisperSTT:
    """An ear's own front to the model that all ears share."""
    return WhisperSTT(player, recogniser, glossary=glossary, clock=clock)


def make_llm(
    base_url: str,
    *,
    model: str = "local",
    slot: int | None = None,
    max_tokens: int = 90,
    temperature: float = 0.6,
    extra_body: Mapping[str, Any] | None = None,
) -> SpokenLLM:
    """A llama.cpp server through its OpenAI-compatible port.

    Args:
        base_url: With `/v1`.
        slot: The server's slot that keeps this NPC's prompt; one each, or they push each other's prefix out.
        extra_body: What the server takes beyond OpenAI's fields: `grammar`, `repeat_penalty` ...
    """
    pinned = {"cache_prompt": True} if slot is None else {"cache_prompt": True, "id_slot": slot}
    return SpokenLLM(
        api_key="local",
        base_url=base_url,
        settings=OpenAILLMSettings(model=model, max_tokens=max_tokens, temperature=temperature),
        extra_body={**pinned, **(extra_body or {})},
        primes=True,
    )


def make_tts(synthesise: Synthesise, *, voice: str) -> HibariTTS:
    return HibariTTS(synthesise, voice=voice)
