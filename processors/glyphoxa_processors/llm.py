"""Spoken replies from any OpenAI-compatible endpoint, local or remote."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from loguru import logger
from openai import OpenAIError
from pipecat.frames.frames import (
    Frame,
    FunctionCallFromLLM,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.llm_service import LLMService
from pipecat.services.settings import LLMSettings
from pipecat.utils.types import is_given

from glyphoxa.chat.client import ChatClient, Delta
from glyphoxa.chat.dialect import Connection, Dialect, Dialects
from glyphoxa.chat.marks import ReplyPart, ReplyText
from glyphoxa.domain.errors import Unavailable
from glyphoxa_processors.frames import AnotherTryFrame, PrimeFrame, RetractFrame
from glyphoxa_processors.hot_context import as_context

try:
    from pipecat.adapters.llm.services.open_ai_adapter import OpenAILLMAdapter
except ImportError:  # before pipecat 1.14
    from pipecat.adapters.services.open_ai_adapter import OpenAILLMAdapter

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import NotesToken, PromptFile

MAX_REPLY_TOKENS = 160
"""More than a minute of speech, so a longer reply is a model error."""

STALLED_AFTER_MS = 10_000
"""A stream without data for this long has failed, so that the turn ends instead of hanging."""

TOOL_TIMEOUT_S = 5.0
"""Above the highest tier's ceiling (`glyphoxa.npc.toolbox`), which applies first."""

_DRAIN_S = 0.3
"""How long to read on after the model has stopped, so that the connection can be used again."""
_WORTH_KEEPING_TOKENS = 64
"""A small machine needs seconds to read this many."""

_CHECK_TIMEOUT_S = 4.0
"""Twice as long as a machine with two busy cores needs."""
_FREER, _FREEST = 0.3, 1.0
"""Added to the temperature of a second try, up to the limit. A confident model would repeat a rejected answer, and at
temperature 0 verbatim. Requests have no seed, so each gets its own. The provider's default temperature is unchanged.
"""

_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}
_A_TOOL = {"type": "function", "function": {"name": "look_up", "description": "Look up.", "parameters": _PARAMETERS}}
"""Declared in a trial, to see whether the server accepts tools."""


@dataclass(frozen=True, slots=True)
class StreamDeadlines:
    """Deadlines of a reply.

    Attributes:
        first_token_ms: Until its first token.
        stall_ms: Between two tokens.
    """

    first_token_ms: int = 15_000
    stall_ms: int = 8_000


class SpokenLLM(LLMService[OpenAILLMAdapter]):
    """A model of an OpenAI-compatible server, for voice: stream deadlines, prompt priming and early connections.

    It asks through `ChatClient` and not through pipecat's `OpenAILLMService`, which fails a turn if a server's answer
    differs from OpenAI's. Any pipecat `LLMService` works in its place and ignores a `PrimeFrame`.

    Args:
        chat: Closed with the service.
        temperature, max_tokens: None: the server's default.
        cache: The endpoint's prompt cache, which a one-token request fills, at no cost. None: it has none, and handles
            parallel requests well.

    Attributes:
        notes: Asked if it is uncertain whether the NPC knows an answer. None: nobody is. Closed with the service.
    """

    def __init__(
        self,
        chat: ChatClient,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        cache: PromptFile | None = None,
        deadlines: StreamDeadlines = StreamDeadlines(),
    ) -> None:
        super().__init__(settings=_settings(chat.model), function_call_timeout_secs=TOOL_TIMEOUT_S)
        self._chat = chat
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._cache = cache
        self.deadlines = deadlines
        self.notes: NotesToken | None = None
        self._priming: asyncio.Task[None] | None = None

    def can_generate_metrics(self) -> bool:
        return True

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case LLMContextFrame():
                self.stop_priming()
                await self._answer(frame.context, is_another_try=isinstance(frame, AnotherTryFrame))
            case PrimeFrame():
                self._prime(frame)
                await self.push_frame(frame, direction)
            case _:
                await self.push_frame(frame, direction)

    @property
    def reads_ahead(self) -> bool:
        """Whether it reads the prompt of a `PrimeFrame`."""
        return self._cache is not None

    async def check_notes(self, notes: str) -> float | None:
        """See `glyphoxa.prompt.prompt.CheckNotes`. Takes at most `_CHECK_TIMEOUT_S`."""
        if self.notes is None or self._cache is None:
            return None
        self.stop_priming()
        try:
            async with asyncio.timeout(_CHECK_TIMEOUT_S), self._cache.one_at_a_time:
                return await self.notes.log_odds(notes)
        except Exception as error:  # whatever the server sends, the fitted model decides then
            logger.info("the model did not say whether an NPC knows an answer: {}", type(error).__name__)
            return None

    async def wait_until_primed(self) -> None:
        """Wait until the last `PrimeFrame` is in the endpoint's cache, or was cancelled."""
        if self._priming is not None:
            await asyncio.gather(self._priming, return_exceptions=True)

    async def cleanup(self) -> None:
        self.stop_priming()
        await super().cleanup()
        await self._chat.close()
        if self.notes is not None:
            await self.notes.close()

    async def try_out(self, context: LLMContext) -> str:
        """Ask outside a pipeline. Return the latency and what the server can do, in words.

        Raises:
            Unavailable: There is no answer, with the reason.
            openai.APIError: The server cannot be reached.
        """
        options = {"stream_options": {"include_usage": True}, "tools": [_A_TOOL]}
        request = {**await self._request(context), **options}
        began_s, first_ms = time.monotonic(), 0
        read = _Reading(self._chat.dialect)
        async with contextlib.aclosing(self._in_time(request)) as deltas:
            async for delta in deltas:
                first_ms = first_ms or round((time.monotonic() - began_s) * 1_000)
                read.take(delta)
        read.end()
        read.check(self._max_tokens)
        dialect = self._chat.dialect
        able = {
            "streaming": "stream" not in dialect.omits,
            "usage": read.n_tokens is not None,
            "tools": "tools" not in dialect.omits,
            "system role": not dialect.folds,
            "repeated roles": not dialect.merges,
        }
        yes, no = (", ".join(name for name, is_able in able.items() if is_able is wanted) for wanted in (True, False))
        told = [f"first words after {first_ms} ms", f"has {yes}", f"without {no}" if no else ""]
        return "; ".join(filter(None, (*told, "reasons before it answers" if read.reply.has_reasoning else "")))

    async def _answer(self, context: LLMContext, *, is_another_try: bool) -> None:
        try:
            await self.push_frame(LLMFullResponseStartFrame())
            await self.start_processing_metrics()
            await self.start_ttfb_metrics()
            await self._say(await self._request(context, is_another_try=is_another_try), context)
        except Exception as error:  # whatever a server sends costs this reply, and not the NPC
            await self.push_error(_reason(error))
        finally:
            await self.stop_processing_metrics()
            await self.push_frame(LLMFullResponseEndFrame())

    async def _say(self, request: Mapping[str, Any], context: LLMContext) -> None:
        """Pass on the words of an answer as they come, then run its tool calls."""
        read = _Reading(self._chat.dialect)
        async with contextlib.aclosing(self._in_time(request)) as deltas:
            async for delta in deltas:
                await self.stop_ttfb_metrics()
                await self._pass_on(read.take(delta))
                if read.reply.is_over:
                    break  # the rest is no reply, and the model may not end it for long
        await self._pass_on(read.end())
        self._learn(read.reply, is_cut=read.is_cut)
        read.check(self._max_tokens)
        if made := read.calls.made(context):
            await self.run_function_calls(made)

    async def _pass_on(self, part: ReplyPart) -> None:
        if part.retracts:
            await self.push_frame(RetractFrame())
        if part.text:
            await self.stop_ttfat_metrics()
            await self.push_frame(LLMTextFrame(part.text))

    def _learn(self, reply: ReplyText, *, is_cut: bool) -> None:
        """Remember whether the model's answers lack the opening mark of reasoning."""
        dialect = self._chat.dialect
        if reply.lacks_opening:
            self._chat.dialect = replace(dialect, lacks_opening=True)
        elif dialect.lacks_opening and dialect.habits.reasoning != "unopened" and not is_cut:
            self._chat.dialect = replace(dialect, lacks_opening=False)

    async def _request(self, context: LLMContext, *, is_another_try: bool = False) -> dict[str, Any]:
        fields: Mapping[str, Any] = await self.get_llm_adapter().get_llm_invocation_params(
            context, convert_developer_to_user=True
        )
        temperature = self._temperature
        if is_another_try and temperature is not None:
            temperature = max(temperature, min(temperature + _FREER, _FREEST))
        given = {name: value for name, value in fields.items() if is_given(value)}
        return {**given, "stream": True, "temperature": temperature, "max_tokens": self._max_tokens}

    async def _in_time(self, request: Mapping[str, Any]) -> AsyncGenerator[Delta, None]:
        """Yield the pieces of an answer. What fails after the model has stopped is no failure.

        Raises:
            Unavailable: The first piece or the next one is late.
        """
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self.deadlines.first_token_ms / 1_000
        late = Unavailable(f"timed out: no first word within {self.deadlines.first_token_ms} ms")
        is_finished = False
        async with contextlib.AsyncExitStack() as held:
            try:
                async with asyncio.timeout_at(until_s):
                    await held.enter_async_context(self._machine())
                deltas = await held.enter_async_context(contextlib.aclosing(self._chat.ask(request)))
                while True:
                    async with asyncio.timeout_at(until_s):
                        delta = await anext(deltas)
                    yield delta
                    is_finished = is_finished or bool(delta.finish)
                    until_s = loop.time() + (_DRAIN_S if is_finished else self.deadlines.stall_ms / 1_000)
                    late = Unavailable(f"timed out: the model paused for more than {self.deadlines.stall_ms} ms")
            except StopAsyncIteration:
                pass
            except TimeoutError as error:
                if not is_finished:
                    raise late from error
            except Exception:
                if not is_finished:
                    raise

    def _prime(self, frame: PrimeFrame) -> None:
        if self.reads_ahead:
            self.stop_priming()
            self._priming = self.create_task(self._read_in(frame), "prime")
        elif not self._chat.connection.is_open:
            self.create_task(self._chat.connection.open(), "connection")

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
        request = await self._request(as_context(frame.prompt))
        n_read = 0
        try:
            # Streamed, so that the server notices a cancellation at once.
            async with (
                self._machine(),
                contextlib.aclosing(self._chat.ask({**request, "max_tokens": 1})) as deltas,
            ):
                async for delta in deltas:
                    n_read = (delta.extras.get("timings") or {}).get("prompt_n", n_read)
                if self._cache is not None and frame.prompt.is_bare and n_read >= _WORTH_KEEPING_TOKENS:
                    await self._cache.save()
                if self.notes is not None and not frame.prompt.question:
                    await self.notes.get_ready()
        except (OpenAIError, Unavailable) as error:
            logger.debug("a prompt could not be primed: {}", type(error).__name__)


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
        dialects: See `ChatClient`.
    """
    return SpokenLLM(
        ChatClient(connection, dialects=dialects),
        temperature=temperature,
        max_tokens=max_tokens,
        deadlines=StreamDeadlines(stalled_after_ms, stalled_after_ms),
    )


def ollama(connection: Connection, **options: Any) -> SpokenLLM:
    """Create a model like `openai`, on this machine by default."""
    return openai(replace(connection, base_url=connection.base_url or "http://localhost:11434/v1"), **options)


class NoWords(Unavailable):
    """A model's answer has no words.

    Args:
        n_tokens: How many tokens it used, or was allowed; None if neither is known.
    """

    def __init__(self, has_reasoning: bool, finish: str, n_tokens: int | None) -> None:
        if has_reasoning and finish == "length":
            used = "all its tokens" if n_tokens is None else f"its {n_tokens} tokens"
            text = f"the model used {used} for reasoning: raise providers.llm.max_tokens, or turn its reasoning off"
        elif has_reasoning:
            text = "the model returned only reasoning"
        else:
            why = f" (finish_reason: {finish})" if finish not in ("", "stop") else ""
            text = f"the model returned no words{why}"
        super().__init__(text)


class _Reading:
    """The part of one answer that has been read."""

    def __init__(self, dialect: Dialect) -> None:
        removes = dialect.habits.reasoning != "none"
        self.reply = ReplyText(removes=removes, begins_inside=bool(dialect.lacks_opening))
        self.calls = _ToolCalls()
        self.n_tokens: int | None = None
        self._finish = ""
        self._has_words = False

    @property
    def is_cut(self) -> bool:
        """Whether the answer ended at the token limit."""
        return self._finish == "length"

    def take(self, delta: Delta) -> ReplyPart:
        self._finish = self._finish or delta.finish
        self.n_tokens = self.n_tokens if delta.n_tokens is None else delta.n_tokens
        if delta.has_reasoning:
            self.reply.reasoned_elsewhere()
        self.calls.take(delta)
        return self._counted(self.reply.push(delta.text))

    def end(self) -> ReplyPart:
        return self._counted(self.reply.end(is_cut=self.is_cut))

    def check(self, max_tokens: int | None) -> None:
        """
        Raises:
            NoWords: There are neither words nor tool calls.
        """
        if not (self._has_words or self.calls):
            n_tokens = max_tokens if self.n_tokens is None else self.n_tokens
            raise NoWords(self.reply.has_reasoning, self._finish, n_tokens)

    def _counted(self, part: ReplyPart) -> ReplyPart:
        self._has_words = bool(part.text.strip()) or (self._has_words and not part.retracts)
        return part


class _ToolCalls:
    """Collects tool calls from their parts."""

    def __init__(self) -> None:
        self._calls: dict[tuple[Any, Any], dict[str, str]] = {}
        self._latest: tuple[Any, Any] = (None, None)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def take(self, delta: Delta) -> None:
        for part in delta.tool_calls:
            # Some servers number all calls 0, and some number none: then a new id is a new call.
            call_id = part.get("id") or self._latest[1]
            key = self._latest = (part.get("index"), call_id) if part.get("id") else self._latest
            call = self._calls.setdefault(key, {"id": call_id or f"call_{len(self._calls)}", "name": "", "text": ""})
            function = part.get("function") or {}
            arguments = function.get("arguments") or ""
            call["name"] += function.get("name") or ""
            call["text"] += arguments if isinstance(arguments, str) else json.dumps(arguments)

    def made(self, context: LLMContext) -> list[FunctionCallFromLLM]:
        """Return the calls whose arguments are JSON."""
        made = []
        for call in self._calls.values():
            try:
                arguments = json.loads(call["text"] or "{}")
            except ValueError:
                logger.warning("a tool call without valid arguments: {}", call["name"])
                continue
            made.append(
                FunctionCallFromLLM(
                    context=context, tool_call_id=call["id"], function_name=call["name"], arguments=arguments
                )
            )
        return made


def _settings(model: str) -> LLMSettings:
    """Return pipecat's settings without the values of a request, which are ours."""
    # Each release of pipecat may add a setting, and expects a value for each.
    values: dict[str, Any] = {each.name: None for each in fields(LLMSettings) if each.name != "extra"}
    return LLMSettings(**{**values, "model": model, "filter_incomplete_user_turns": False})


def _reason(error: Exception) -> str:
    """Return what the DM reads about a failed answer."""
    if isinstance(error, Unavailable):
        return str(error)
    cause = f" ({type(error.__cause__).__name__})" if error.__cause__ is not None else ""
    return f"the model failed: {str(error) or type(error).__name__}{cause}"
