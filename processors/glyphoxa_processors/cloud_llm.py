"""Cloud language models for a mouth: OpenAI-compatible services, Ollama and Google Gemini."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from glyphoxa.providers.building import Connection
from glyphoxa.providers.chat_dialect import Dialects, dialect_of

if TYPE_CHECKING:
    from glyphoxa_processors.google_llm import SpokenGoogle
    from glyphoxa_processors.llm import SpokenLLM


MAX_REPLY_TOKENS = 160
"""More than a minute of speech, so a longer reply is a model error."""

STALLED_AFTER_MS = 10_000
"""A stream without data for this long has failed, so that the turn ends instead of hanging."""

TOOL_TIMEOUT_S = 5.0
"""Above the highest tier's ceiling (`glyphoxa.npc.budget`), which applies first."""


def openai(
    connection: Connection,
    *,
    temperature: float | None = None,
    max_tokens: int = MAX_REPLY_TOKENS,
    stalled_after_ms: int = STALLED_AFTER_MS,
    dialects: Dialects | None = None,
) -> SpokenLLM:
    """Create a model for one mouth: OpenAI or a compatible server.

    Args:
        temperature: None: the provider's default.
        stalled_after_ms: A stream without data for this long has failed.
        dialects: Requests that such servers have refused in this session.
    """
    from glyphoxa.adapters.chat_completions import ChatClient
    from glyphoxa_processors.llm import SpokenLLM, StreamDeadlines

    expected = dialect_of(connection.model, has_new_limit=connection.base_url is None, habits=connection.habits)
    return SpokenLLM(
        ChatClient(connection, expected=expected, dialects=dialects),
        temperature=temperature,
        max_tokens=max_tokens,
        deadlines=StreamDeadlines(stalled_after_ms, stalled_after_ms),
        function_call_timeout_secs=TOOL_TIMEOUT_S,
    )


def ollama(connection: Connection, **options: Any) -> SpokenLLM:
    """Create a model like `openai`, on this machine by default."""
    return openai(replace(connection, base_url=connection.base_url or "http://localhost:11434/v1"), **options)


def google(
    connection: Connection,
    *,
    temperature: float | None = None,
    max_tokens: int = MAX_REPLY_TOKENS,
    stalled_after_ms: int = STALLED_AFTER_MS,
    **_of_openai: object,
) -> SpokenGoogle:
    from google.genai.types import HttpOptions

    from glyphoxa_processors.google_llm import SpokenGoogle
    from glyphoxa_processors.llm import settings_of

    return SpokenGoogle(
        api_key=connection.key,
        http_options=HttpOptions(base_url=connection.base_url) if connection.base_url else None,
        stream_idle_timeout_secs=stalled_after_ms / 1_000,
        retry_on_timeout=False,
        function_call_timeout_secs=TOOL_TIMEOUT_S,
        settings=settings_of(SpokenGoogle.Settings, connection.model, temperature, max_tokens),
    )
