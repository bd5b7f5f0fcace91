"""The services that run on this machine: Whisper, a llama.cpp server, the hibari voice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipecat.services.openai.base_llm import OpenAILLMSettings

from glyphoxa.domain.ids import PlayerId
from glyphoxa.providers.building import Connection
from glyphoxa_processors.hibari_tts import HibariTTS, Synthesise
from glyphoxa_processors.llm import AsWords, PromptCache, SpokenLLM, StreamDeadlines
from glyphoxa_processors.recogniser import Recogniser
from glyphoxa_processors.whisper_stt import WhisperSTT


def make_stt(
    player: PlayerId, recogniser: Recogniser, *, glossary: Callable[[], str], clock: Callable[[], int]
) -> WhisperSTT:
    """An ear's own front to the model that all ears share."""
    return WhisperSTT(player, recogniser, glossary=glossary, clock=clock)


def make_llm(  # noqa: PLR0913 - what the server takes beside its connection
    connection: Connection,
    *,
    max_tokens: int = 90,
    temperature: float = 0.6,
    extra_body: Mapping[str, Any] | None = None,
    as_words: AsWords | None = None,
    cache: PromptCache | None = None,
    deadlines: StreamDeadlines | None = None,
) -> SpokenLLM:
    """A llama.cpp server through its OpenAI-compatible port.

    Args:
        connection: Its address ends in `/v1`; its model's name means nothing there.
        extra_body: What the server takes beyond OpenAI's fields: the slot that keeps this NPC's prompt (one each, or
            they push each other's prefix out), a grammar, a penalty for repeating.
        as_words: See `SpokenLLM`: the server reads markers of its chat template wherever they stand.
        cache: The NPC's. Two prompts that a processor reads at once are both late: the first NPC begins to speak when
            both are read, and the second is not heard before the first is silent.
    """
    return SpokenLLM(
        api_key=connection.key,
        base_url=connection.base_url,
        settings=OpenAILLMSettings(model=connection.model, temperature=temperature, max_tokens=max_tokens),
        extra_body=extra_body,
        as_words=as_words,
        primes=True,
        cache=cache,
        deadlines=deadlines or StreamDeadlines(),
    )


def make_tts(synthesise: Synthesise, *, voice: str) -> HibariTTS:
    return HibariTTS(synthesise, voice=voice)
