"""Spoken replies from any OpenAI-compatible endpoint, local or remote."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# Imported here, because the first construction of a service would block the event loop for half a second.
import pipecat.adapters.llm.services.open_ai_adapter  # noqa: F401
from loguru import logger
from openai import AsyncOpenAI, AsyncStream, OpenAIError, Timeout
from openai.types.chat import ChatCompletionChunk
from pipecat.frames.frames import Frame, LLMContextFrame
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.openai.base_llm import OpenAILLMSettings
from pipecat.services.openai.llm import OpenAILLMService

from glyphoxa.adapters.openai_models import kept_open
from glyphoxa_processors.cloud_llm import ConnectionWarmer
from glyphoxa_processors.frames import AnotherTryFrame, PrimeFrame
from glyphoxa_processors.hot_context import as_context

_CONNECT_WITHIN_S = 3.0
_WORTH_KEEPING_TOKENS = 64
"""A small machine needs seconds to read this many."""

_FREER, _FREEST = 0.3, 1.0
"""Added to the temperature of a second try, up to the limit. A confident model would repeat a rejected answer, and at
temperature 0 verbatim. Requests have no seed, so each gets its own. The provider's default temperature is unchanged.
"""

AsWords = Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]


class PromptCache(Protocol):
    """The prompt cache of one NPC, on a machine that is fastest with one request at a time.

    Attributes:
        one_at_a_time: Lock around each request to the machine.
    """

    one_at_a_time: asyncio.Lock

    async def restore(self) -> None:
        """Restore the saved cache before a request, unless the current one is newer. Never raises."""

    async def save(self) -> None:
        """Save the current cache. Never raises."""


@dataclass(frozen=True, slots=True)
class StreamDeadlines:
    """Deadlines of a reply.

    Attributes:
        first_token_ms: Until its first token.
        stall_ms: Between two tokens.
    """

    first_token_ms: int = 15_000
    stall_ms: int = 8_000


class SpokenLLM(OpenAILLMService):
    """`OpenAILLMService` for voice, with less overhead, stream deadlines, prompt priming and early connections.

    Any other pipecat `LLMService` works in its place and ignores a `PrimeFrame`.

    Args:
        extra_body: Request fields beyond OpenAI's (`cache_prompt`, `id_slot`, `grammar` ...).
        as_words: Removes control tokens of the endpoint's model from messages. None: not needed.
        primes: The endpoint has a prompt cache that a one-token request fills, at no cost.
        cache: That prompt cache, if it is on this machine. None: the endpoint handles parallel requests well.
        others: As for `OpenAILLMService`: address, key ...
    """

    def __init__(  # noqa: PLR0913 - independent parts, passed once
        self,
        *,
        settings: OpenAILLMSettings,
        extra_body: Mapping[str, Any] | None = None,
        as_words: AsWords | None = None,
        primes: bool = False,
        cache: PromptCache | None = None,
        deadlines: StreamDeadlines = StreamDeadlines(),
        **others: Any,
    ) -> None:
        super().__init__(settings=settings, **others)
        self._extra_body = dict(extra_body or {})
        self._as_words = as_words
        self._primes = primes
        self._cache = cache
        self.deadlines = deadlines
        self._priming: asyncio.Task[None] | None = None
        self._is_another_try = False

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        if isinstance(frame, PrimeFrame):
            self._prime(frame)
            await self.push_frame(frame, direction)
            return
        if isinstance(frame, LLMContextFrame):
            self.stop_priming()
            self._is_another_try = isinstance(frame, AnotherTryFrame)
        await super().process_frame(frame, direction)

    async def wait_until_primed(self) -> None:
        """Wait until the last `PrimeFrame` is in the endpoint's cache, or was cancelled."""
        if self._priming is not None:
            await asyncio.gather(self._priming, return_exceptions=True)

    def create_client(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        organization: str | None = None,
        project: str | None = None,
        default_headers: Any = None,
        **_kwargs: Any,
    ) -> AsyncOpenAI:
        http = kept_open()
        client = AsyncOpenAI(
            api_key=api_key,
            base_url=base_url,
            organization=organization,
            project=project,
            default_headers=default_headers,
            timeout=Timeout(60.0, connect=_CONNECT_WITHIN_S),
            http_client=http,
            # One retry, for a connection that went stale between two turns. More would keep the table waiting.
            max_retries=1,
        )
        self._connection = ConnectionWarmer(http, str(client.base_url), clock=time.monotonic)
        return client

    async def cleanup(self) -> None:
        self.stop_priming()
        await super().cleanup()
        await self._client.close()

    def build_chat_completion_params(self, params_from_context: Any) -> dict[str, Any]:
        """Move messages into `extra_body`, which the SDK does not traverse (0.15 ms for each message)."""
        params: dict[str, Any] = super().build_chat_completion_params(params_from_context)
        if self._as_words is not None:
            params["messages"] = [*self._as_words(params["messages"])]
        if self._is_another_try and isinstance(temperature := params.get("temperature"), int | float):
            params["temperature"] = max(temperature, min(temperature + _FREER, _FREEST))
        params["extra_body"] = {
            **self._extra_body,
            **(params.get("extra_body") or {}),
            "messages": params["messages"],
        }
        params["messages"] = []
        return params

    async def get_chat_completions(self, context: LLMContext) -> AsyncStream[ChatCompletionChunk]:
        self._connection.in_use()
        async with contextlib.AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self.deadlines.first_token_ms / 1_000) as deadline:
                    await held.enter_async_context(self._machine())
                    stream = await super().get_chat_completions(context)
            except TimeoutError as error:
                raise _too_late(self.deadlines.first_token_ms) from error
            left_s = (deadline.when() or 0.0) - self.get_event_loop().time()
            return _Watched(  # type: ignore[return-value]  # iterated and closed by pipecat, nothing else
                stream,
                first_s=left_s,
                deadlines=self.deadlines,
                over=self._connection.is_free,
                held=held.pop_all(),
            )

    def _prime(self, frame: PrimeFrame) -> None:
        if self._primes:
            self.stop_priming()
            self._priming = self.create_task(self._read_in(frame), "prime")
        elif not self._connection.is_open:
            self.create_task(self._connection.open(), "connection")

    @contextlib.asynccontextmanager
    async def _machine(self) -> AsyncIterator[None]:
        """Lock the machine for one request and restore its prompt cache."""
        async with self._cache.one_at_a_time if self._cache is not None else contextlib.nullcontext():
            if self._cache is not None:
                await self._cache.restore()
            yield

    def stop_priming(self) -> None:
        """Cancel priming. What was read so far stays in the cache."""
        if self._priming is not None:
            self._priming.cancel()
            self._priming = None

    async def _read_in(self, frame: PrimeFrame) -> None:
        adapter = self.get_llm_adapter()
        params = self.build_chat_completion_params(
            await adapter.get_llm_invocation_params(
                as_context(frame.prompt), convert_developer_to_user=not self.supports_developer_role
            )
        )
        params.pop("stream_options", None)
        try:
            async with self._machine():
                # Streamed, so that the server notices a cancellation at once.
                stream = await self._client.chat.completions.create(**{**params, "stream": True, "max_tokens": 1})
                n_read = 0
                async with stream:
                    async for chunk in stream:
                        n_read = (getattr(chunk, "timings", None) or {}).get("prompt_n", n_read)
                if self._cache is not None and frame.prompt.is_bare and n_read >= _WORTH_KEEPING_TOKENS:
                    await self._cache.save()
        except OpenAIError as error:
            logger.debug("a prompt could not be primed: {}", type(error).__name__)


class _Watched:
    """A stream of chunks that raises TimeoutError if the next one is late. Closing it releases `held`."""

    def __init__(
        self,
        stream: AsyncStream[ChatCompletionChunk],
        *,
        first_s: float,
        deadlines: StreamDeadlines,
        over: Callable[[], None],
        held: contextlib.AsyncExitStack,
    ) -> None:
        self._stream = stream
        self._first_s = first_s
        self._deadlines = deadlines
        self._over = over
        self._held = held

    async def __aiter__(self) -> AsyncIterator[ChatCompletionChunk]:
        chunks = self._stream.__aiter__()
        within_s, late = max(0.0, self._first_s), _too_late(self._deadlines.first_token_ms)
        while True:
            try:
                async with asyncio.timeout(within_s):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                self._over()
                return
            except TimeoutError as error:
                raise late from error
            yield chunk
            within_s = self._deadlines.stall_ms / 1_000
            late = TimeoutError(f"timed out: the model paused for more than {self._deadlines.stall_ms} ms")

    async def close(self) -> None:
        async with self._held:
            await self._stream.close()


def _too_late(first_token_ms: int) -> TimeoutError:
    return TimeoutError(f"timed out: no first word within {first_token_ms} ms")
