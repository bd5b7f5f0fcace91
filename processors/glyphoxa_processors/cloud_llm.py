"""Cloud language models for a mouth: OpenAI-compatible services, Ollama and Google Gemini."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loguru import logger

from glyphoxa.adapters.openai_models import IDLE_S
from glyphoxa.providers.building import LLM, Choice, Connection, build
from glyphoxa.providers.chat_dialect import Dialects, dialect_of

if TYPE_CHECKING:
    from pipecat.services.llm_service import LLMService

    from glyphoxa_processors.google_llm import SpokenGoogle
    from glyphoxa_processors.llm import SpokenLLM


MAX_REPLY_TOKENS = 160
"""More than a minute of speech, so a longer reply is a model error."""

STALLED_AFTER_MS = 10_000
"""A stream without data for this long has failed, so that the turn ends instead of hanging."""

TOOL_TIMEOUT_S = 5.0
"""Above the highest tier's ceiling (`glyphoxa.npc.budget`), which applies first."""


def make_llm(  # noqa: PLR0913 - settings, passed on
    provider: Choice,
    *,
    temperature: float | None = None,
    max_tokens: int = MAX_REPLY_TOKENS,
    stalled_after_ms: int = STALLED_AFTER_MS,
    dialects: Dialects | None = None,
    environ: Mapping[str, str] = os.environ,
) -> LLMService[Any]:
    """Create a model for one mouth.

    Args:
        temperature: None: the provider's default.
        stalled_after_ms: A stream without data for this long has failed.
        dialects: Requests that such servers have refused in this session.

    Raises:
        InvalidInput: See `build`.
    """
    made: LLMService[Any] = build(
        provider,
        section=LLM,
        environ=environ,
        temperature=temperature,
        max_tokens=max_tokens,
        stalled_after_ms=stalled_after_ms,
        dialects=dialects,
    )
    return made


def openai(
    connection: Connection,
    *,
    temperature: float | None,
    max_tokens: int,
    stalled_after_ms: int = STALLED_AFTER_MS,
    dialects: Dialects | None = None,
) -> SpokenLLM:
    """Create a client for OpenAI or a compatible server."""
    from glyphoxa_processors.llm import SpokenLLM, StreamDeadlines

    return SpokenLLM(
        connection,
        temperature=temperature,
        max_tokens=max_tokens,
        deadlines=StreamDeadlines(stalled_after_ms, stalled_after_ms),
        expected=dialect_of(connection.model, has_new_limit=connection.base_url is None, habits=connection.habits),
        dialects=dialects,
        function_call_timeout_secs=TOOL_TIMEOUT_S,
    )


def ollama(connection: Connection, **options: Any) -> SpokenLLM:
    """Create a model like `openai`, on this machine by default."""
    return openai(replace(connection, base_url=connection.base_url or "http://localhost:11434/v1"), **options)


def google(
    connection: Connection,
    *,
    temperature: float | None,
    max_tokens: int,
    stalled_after_ms: int = STALLED_AFTER_MS,
    **_of_openai: object,
) -> SpokenGoogle:
    from google.genai.types import HttpOptions

    from glyphoxa_processors.google_llm import SpokenGoogle

    return SpokenGoogle(
        api_key=connection.key,
        http_options=HttpOptions(base_url=connection.base_url) if connection.base_url else None,
        stream_idle_timeout_secs=stalled_after_ms / 1_000,
        retry_on_timeout=False,
        function_call_timeout_secs=TOOL_TIMEOUT_S,
        settings=SpokenGoogle.Settings(
            model=connection.model,
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


class ConnectionWarmer:
    """Opens a connection before a request needs it.

    Over HTTP/1.1, cancelling an answer closes its connection, so the next request would have to wait for a new one.

    Args:
        http: The client that keeps connections.
        address: Address of the service. It only sees a connection, without a key.
        clock: Seconds.
    """

    within_s = 3.0

    def __init__(self, http: Any, address: str, *, clock: Callable[[], float]) -> None:
        self._http = http
        self._address = address
        self._clock = clock
        self._open_until_s = 0.0

    @property
    def is_open(self) -> bool:
        return self._clock() < self._open_until_s

    def in_use(self) -> None:
        """Note that a request is in progress. Its connection is unusable until `is_free`."""
        self._open_until_s = 0.0

    def is_free(self) -> None:
        """Note that an answer was read to its end."""
        self._open_until_s = self._clock() + IDLE_S

    async def open(self) -> None:
        """Connect, unless a connection is open."""
        if self.is_open:
            return
        self.is_free()  # no other caller needs to try
        try:
            async with asyncio.timeout(self.within_s):
                await self._http.head(self._address)
        except Exception as error:  # the HTTP client's own; the request itself will report it
            self.in_use()
            logger.debug("no connection in advance: {}", type(error).__name__)
