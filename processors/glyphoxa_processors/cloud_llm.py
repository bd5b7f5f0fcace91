"""Cloud language models for a mouth: OpenAI and what speaks its protocol, Ollama, Google Gemini."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from glyphoxa.adapters.local.control_tokens import ELSEWHERE, ControlTokens
from glyphoxa.domain.errors import InvalidInput
from glyphoxa_processors.cloud import Provider, choose, key_of, optional_key_of

if TYPE_CHECKING:
    from pipecat.services.google.llm import GoogleLLMService
    from pipecat.services.llm_service import LLMService
    from pipecat.services.openai.llm import OpenAILLMService

    from glyphoxa_processors.llm import AsWords

MAX_REPLY_TOKENS = 160
"""An NPC talks, it does not write: more than a minute of speech is an error of the model."""

STALLED_AFTER_MS = 10_000
"""A stream that sends nothing for so long has died without saying so; the turn fails instead of hanging."""

_WORDS = ControlTokens(ELSEWHERE)
"""Servers of one's own (llama.cpp, vLLM, Ollama) read a chat template's markers wherever they stand."""

TOOL_TIMEOUT_S = 5.0
"""Above the highest tier's ceiling (`glyphoxa.npc.budget`), which cuts a tool first."""


def make_llm(
    provider: Provider,
    *,
    temperature: float | None = None,
    max_tokens: int = MAX_REPLY_TOKENS,
    environ: Mapping[str, str] = os.environ,
) -> LLMService[Any]:
    """A model for one mouth. Names: `openai`, `openai-compatible`, `ollama`, `google`.

    Args:
        temperature: None is the provider's own.

    Raises:
        InvalidInput: The name is unknown, its extra is not installed, the key is not set, or an
            `openai-compatible` provider has no address or no model.
    """

    def openai() -> LLMService[Any]:
        key = key_of(provider, kind="llm", default_env="OPENAI_API_KEY", environ=environ)
        return _openai(provider.model or "gpt-4.1-mini", key, provider.base_url, temperature, max_tokens)

    def compatible() -> LLMService[Any]:
        if not provider.base_url:
            raise InvalidInput("llm provider 'openai-compatible' needs an address: set llm.base_url")
        if not provider.model:
            raise InvalidInput("llm provider 'openai-compatible' needs a model: set llm.model")
        key = optional_key_of(provider, kind="llm", environ=environ)
        return _openai(provider.model, key, provider.base_url, temperature, max_tokens, as_words=_WORDS.in_message)

    def ollama() -> LLMService[Any]:
        key = optional_key_of(provider, kind="llm", environ=environ)
        base_url = provider.base_url or "http://localhost:11434/v1"
        model = provider.model or "llama3.2"
        return _openai(model, key, base_url, temperature, max_tokens, as_words=_WORDS.in_message)

    def google() -> LLMService[Any]:
        key = key_of(provider, kind="llm", default_env="GOOGLE_API_KEY", environ=environ)
        return _google(provider.model or "gemini-3.6-flash", key, provider.base_url, temperature, max_tokens)

    makers = {"openai": openai, "openai-compatible": compatible, "ollama": ollama, "google": google}
    return choose(provider, makers, kind="llm")


def _openai(
    model: str,
    key: str,
    base_url: str | None,
    temperature: float | None,
    max_tokens: int,
    *,
    as_words: AsWords | None = None,
) -> OpenAILLMService:
    from pipecat.services.openai.llm import OpenAILLMService

    from glyphoxa_processors.llm import SpokenLLM

    # OpenAI's newer models refuse the old name of the limit; others' servers may not know the new one.
    limit = "max_completion_tokens" if base_url is None else "max_tokens"
    return SpokenLLM(
        api_key=key,
        base_url=base_url,
        as_words=as_words,
        first_token_ms=STALLED_AFTER_MS,
        stall_ms=STALLED_AFTER_MS,
        retry_on_timeout=False,
        function_call_timeout_secs=TOOL_TIMEOUT_S,
        settings=OpenAILLMService.Settings(
            model=model, system_instruction=None, temperature=temperature, extra={limit: max_tokens}
        ),
    )


def _google(model: str, key: str, base_url: str | None, temperature: float | None, max_tokens: int) -> GoogleLLMService:
    from google.genai.types import HttpOptions
    from pipecat.services.google.llm import GoogleLLMService

    return GoogleLLMService(
        api_key=key,
        http_options=HttpOptions(base_url=base_url) if base_url else None,
        stream_idle_timeout_secs=STALLED_AFTER_MS / 1_000,
        retry_on_timeout=False,
        function_call_timeout_secs=TOOL_TIMEOUT_S,
        settings=GoogleLLMService.Settings(
            model=model,
            system_instruction=None,
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=None,
            top_p=None,
            frequency_penalty=None,
            presence_penalty=None,
            seed=None,
            filter_incomplete_user_turns=False,
            user_turn_completion_config=None,
            thinking=None,
            safety_settings=None,
            extra={},
        ),
    )
