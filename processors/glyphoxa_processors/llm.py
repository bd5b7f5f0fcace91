"""A spoken reply from any OpenAI-compatible endpoint: the local server, a cloud, a colleague's."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# Imported here, not at the first construction of a service: it costs half a second of the event loop.
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
from glyphoxa_processors.cloud_llm import OpenAhead
from glyphoxa_processors.frames import AnotherTryFrame, PrimeFrame
from glyphoxa_processors.hot_context import as_context

_CONNECT_WITHIN_S = 3.0
_WORTH_KEEPING_TOKENS = 64
"""Read in seconds by a small machine."""

_FREER, _FREEST = 0.3, 1.0
"""Added to the temperature of a second try, up to so much. A model that is sure of what may not be said says it again,
one at 0 to the letter; each request has a seed of its own, for none is given. Where the temperature is the provider's
own it stays so.
"""

AsWords = Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]


class PromptCache(Protocol):
    """The prompt cache of one NPC, on a machine that is fastest with one request at a time.

    Attributes:
        one_at_a_time: Held while a request is answered, by all that ask the machine.
    """

    one_at_a_time: asyncio.Lock

    async def restore(self) -> None:
        """Before a request: what was kept is in the cache again, unless something newer is. Raises nothing."""

    async def save(self) -> None:
        """Keep what is in the cache. Raises nothing."""


@dataclass(frozen=True, slots=True)
class StreamDeadlines:
    """When a reply has failed.

    Attributes:
        first_token_ms: It has not begun by then.
        stall_ms: It pauses for so long between two tokens.
    """

    first_token_ms: int = 15_000
    stall_ms: int = 8_000


class SpokenLLM(OpenAILLMService):
    """`OpenAILLMService` for voice: no cost per message, deadlines on the stream, a prompt cache that can be primed, a
    connection that is open before the question ends.

    Any other pipecat `LLMService` works in its place; a `PrimeFrame` means nothing to it.

    Args:
        extra_body: Fields of the request that OpenAI does not know (`cache_prompt`, `id_slot`, `grammar` ...).
        as_words: The messages as the endpoint may read them, with no control token of its model in what was said.
            None: words are words there.
        primes: The endpoint keeps a prompt cache that a request for one token fills, and asks no money for it.
        cache: Of that prompt cache, where it is on this machine. None: the endpoint answers many as fast as one.
        others: As of `OpenAILLMService`: where the endpoint is, its key ...
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
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
        """Until the last `PrimeFrame` is in the endpoint's cache, or has been called off."""
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
            # One, for a connection that went stale between two turns; more would only keep the table waiting.
            max_retries=1,
        )
        self._connection = OpenAhead(http, str(client.base_url), clock=time.monotonic)
        return client

    async def cleanup(self) -> None:
        self.stop_priming()
        await super().cleanup()
        await self._client.close()

    def build_chat_completion_params(self, params_from_context: Any) -> dict[str, Any]:
        """The SDK walks through every message (0.15 ms each); inside `extra_body` it leaves them alone."""
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
        """The machine for one request, with what was kept of its prompt cache."""
        async with self._cache.one_at_a_time if self._cache is not None else contextlib.nullcontext():
            if self._cache is not None:
                await self._cache.restore()
            yield

    def stop_priming(self) -> None:
        """Call off what is being primed; what has been read so far stays in the cache."""
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
                # Streamed, so that the server notices at once when the priming is called off.
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
    """A stream of chunks that raises TimeoutError when the next one is too late. Closing it lets go what is `held`."""

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
