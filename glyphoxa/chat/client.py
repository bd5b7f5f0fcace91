"""Chat with servers that speak OpenAI's protocol, in a turn and in the background, read as such servers write it.

The protocol's client library expects what OpenAI sends. Compatible servers send errors with status 200, pages of HTML,
whole answers where a stream was requested, and usage data without numbers. `ChatClient` sends the request in the
server's dialect, over a connection that stays open, and reads what is in the lines of the response;
`OpenAiStructuredLlm` asks for JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

import openai
from loguru import logger
from openai import APIConnectionError, APIError, APIStatusError, AsyncOpenAI, Timeout

from glyphoxa.actors.deadline import answered_within
from glyphoxa.chat.dialect import Connection, Dialect, Dialects, Message, Rejection, dialect_of
from glyphoxa.chat.marks import COMMON, without_reasoning
from glyphoxa.chat.questions import JsonSchema, Unparseable, json_object, parsed
from glyphoxa.domain.errors import Unavailable, shown

_READ_AT_MOST: Final = 2_000_000
"""Characters of a response that is no stream."""
_TRIES: Final = 5
_CONNECT_WITHIN_S: Final = 3.0
_WAITS_AT_MOST_S: Final = 3.0
_NO_DATA: Final = (":", "event:", "id:", "retry:", "data:")
_CLIENT: Any = openai.DefaultAsyncHttpxClient
_HTTP: Any = importlib.import_module(_CLIENT.__base__.__module__.partition(".")[0])  # httpx or its successor


@dataclass(frozen=True, slots=True)
class Delta:
    """The content that one piece of an answer adds.

    Attributes:
        has_reasoning: It has reasoning in a field of its own.
        tool_calls: Parts with an `index`, as the protocol has them.
        finish: Why the model stopped; "" while it has not.
        n_tokens: Tokens of the answer so far, if the server counts them.
        extras: The whole piece, for fields of one server.
    """

    text: str = ""
    has_reasoning: bool = False
    tool_calls: Sequence[Mapping[str, Any]] = ()
    finish: str = ""
    n_tokens: int | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)


class NoAnswer(Unavailable):
    """A server refuses a request, or sends something else than an answer.

    Attributes:
        refusal: The reason that the server gives.
    """

    def __init__(self, message: str, refusal: Rejection) -> None:
        super().__init__(message)
        self.refusal = refusal


async def _deltas(lines: AsyncIterator[str]) -> AsyncGenerator[Delta, None]:
    """Yield the content of one response: server-sent events, JSON lines, or one JSON document.

    Raises:
        NoAnswer: It holds an error, or is no answer.
    """
    other: list[str] = []
    n_other, is_stream = 0, False
    async for line in lines:
        payload = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if payload == "[DONE]":
            yield Delta(finish="stop")
        elif payload and (delta := _delta(json_object(payload))) is not None:
            is_stream = True
            yield delta
        elif (text := payload or line).strip() and not text.startswith(_NO_DATA) and n_other < _READ_AT_MOST:
            other.append(text)
            n_other += len(text)
    if not other or is_stream:
        return
    text = "\n".join(other)
    whole = json_object(text)
    documents = map(json_object, other) if whole is None else [whole]
    deltas = [delta for delta in map(_delta, documents) if delta is not None]
    if not deltas:
        raise NoAnswer(f"the server sent no answer: {shown(text)}", Rejection(200, text))
    for delta in deltas:
        yield delta


def _delta(document: Mapping[str, Any] | None) -> Delta | None:
    """Return what a piece of an answer adds; None if it is none.

    Raises:
        NoAnswer: It is an error.
    """
    if document is None:
        return None
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    if (error := document.get("error")) and not choice:
        raise NoAnswer(f"the server reports an error: {shown(error_text(document))}", Rejection(200, error_text(error)))
    if choices is None and not isinstance(document.get("message"), dict):
        return None
    said = choice.get("delta") or choice.get("message") or document.get("message") or {}
    content = said.get("content", choice.get("text"))
    calls = said.get("tool_calls")
    usage = document.get("usage")
    n_tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return Delta(
        text=_text(content),
        has_reasoning=bool(said.get("reasoning_content") or said.get("reasoning") or said.get("thinking"))
        or (isinstance(content, list) and any(_kind(part) not in ("text", "output_text") for part in content)),
        tool_calls=[call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else (),
        finish=str(choice.get("finish_reason") or document.get("done_reason") or ""),
        n_tokens=n_tokens if type(n_tokens) is int else None,
        extras=document,
    )


def _text(content: Any) -> str:
    """Return the words of a message's content, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if _kind(part) in ("text", "output_text"))
    return content if isinstance(content, str) else ""


def _kind(part: Any) -> str:
    return str(part.get("type", "text")) if isinstance(part, dict) else ""


def error_text(error: Any) -> str:
    """Return the message in the body of an error, however it is nested; otherwise the body."""
    while isinstance(error, Mapping):
        inner = next((error[name] for name in ("error", "message", "detail", "msg") if error.get(name)), None)
        if inner is None:
            break
        error = inner
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


Messages = Iterable[Message]


class ChatClient:
    """Asks one model for chat completions, in the dialect of its server. `close` it.

    Args:
        dialects: Those that servers were found to have in this session.
        extras: Fields of every request beyond OpenAI's (`cache_prompt`, `id_slot`, `grammar` ...).
        as_words: Removes control tokens of the server's own model from messages. The common ones are removed anyway.

    Attributes:
        address: The server's base URL.
        connection: Opens the connection to the server before a request.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        dialects: Dialects | None = None,
        extras: Mapping[str, Any] | None = None,
        as_words: Callable[[Sequence[Message]], Messages] = list,
    ) -> None:
        http = kept_open()
        self._client = AsyncOpenAI(
            api_key=connection.key,
            base_url=connection.base_url,
            timeout=Timeout(600.0, connect=_CONNECT_WITHIN_S),
            http_client=http,
            # One retry, for a connection that went stale between two turns. More would keep the table waiting.
            max_retries=1,
        )
        self.model = connection.model
        self.address = str(self._client.base_url)
        self.connection = ConnectionWarmer(http, self.address)
        self._expected = dialect_of(
            connection.model, has_new_limit=connection.base_url is None, habits=connection.habits
        )
        self._dialects = Dialects() if dialects is None else dialects
        self._extras = dict(extras or {})
        self._as_words = as_words

    @property
    def dialect(self) -> Dialect:
        """The server's dialect: as it was found to be, or at first as it is expected."""
        return self._dialects.get((self.address, self.model), self._expected)

    @dialect.setter
    def dialect(self, found: Dialect) -> None:
        self._dialects[self.address, self.model] = found

    async def close(self) -> None:
        await self._client.close()

    async def ask(self, request: Mapping[str, Any]) -> AsyncGenerator[Delta, None]:
        """Yield the pieces of an answer as they come. Close the iterator (`aclosing`).

        Args:
            request: Fields of the protocol, without `model`; those without a value are left out. Marks in messages are
                broken, because any address may be a server that interprets them.

        Raises:
            NoAnswer: The server refuses the request, in every form that it may accept, or sends no answer.
            openai.APIError: It cannot be reached.
        """
        self.connection.in_use()
        request = {**self._extras, **request, "messages": COMMON.in_messages(self._as_words(request["messages"]))}
        known = dialect = self.dialect
        for n in range(_TRIES):
            has_begun = False
            try:
                async with aclosing(self._once(dialect.fitted(request))) as deltas:
                    async for delta in deltas:
                        if not has_begun and dialect != known:
                            self.dialect = dialect
                        has_begun = True
                        yield delta
                self.connection.is_free()
                return
            except NoAnswer as failure:
                other = None if has_begun or n == _TRIES - 1 else dialect.after(failure.refusal, request)
                if other is None:
                    raise
                dialect = other

    async def _once(self, fields: Mapping[str, Any]) -> AsyncGenerator[Delta, None]:
        # The SDK would take 0.15 ms to look through each message.
        asked = self._client.chat.completions.with_streaming_response.create(
            model=self.model, messages=[], extra_body=dict(fields)
        )
        try:
            async with asked as response, aclosing(_deltas(response.iter_lines())) as deltas:
                async for delta in deltas:
                    yield delta
        except APIStatusError as error:
            raise self._refused(error) from error
        except NoAnswer as failure:
            raise NoAnswer(self._without_key(str(failure)), failure.refusal) from None
        except _HTTP.TransportError as error:  # the SDK translates only those that come before the answer
            raise APIConnectionError(request=error.request) from error

    def _refused(self, error: APIStatusError) -> NoAnswer:
        said = error_text(error.body if error.body is not None else error.message)
        named = error.body.get("param") if isinstance(error.body, Mapping) else None
        message = f"HTTP {error.status_code}: {self._without_key(shown(said))}"
        return NoAnswer(message, Rejection(error.status_code, f"{said} {named or ''}"))

    def _without_key(self, text: str) -> str:
        """Some servers quote the key that they refuse."""
        return text.replace(self._client.api_key, "…") if self._client.api_key else text


class OpenAiStructuredLlm:
    """A model of an OpenAI-compatible server; see `StructuredLlm`.

    Args:
        max_tokens: A longer answer is cut off and therefore unparseable.
        name: The model's name in errors.
        options: Those of `ChatClient`.
    """

    def __init__(self, connection: Connection, *, max_tokens: int = 2_000, name: str = "", **options: Any) -> None:
        self._chat = ChatClient(connection, **options)
        self._max_tokens = max_tokens
        self._name = name or f"model {connection.model!r}"

    async def complete(
        self, system: str, user: str, schema: JsonSchema, *, temperature: float = 0.0, deadline_ms: int = 30_000
    ) -> dict[str, Any]:
        form = {"name": str(schema.get("title", "answer")), "schema": dict(schema), "strict": True}
        request = {
            "response_format": {"type": "json_schema", "json_schema": form},
            "max_tokens": self._max_tokens,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": temperature,
        }
        text = ""
        try:
            async with (
                answered_within(deadline_ms, f"{self._name} did not answer"),
                aclosing(self._chat.ask(request)) as deltas,
            ):
                async for delta in deltas:
                    text += delta.text
                    if delta.finish == "length":
                        raise Unparseable("the model's answer was cut off at the length limit")
        except NoAnswer as error:
            raise Unavailable(f"{self._name} fails: {error}") from error
        except APIError as error:
            raise Unavailable(f"{self._name} fails: {error.__cause__ or error.message}") from error
        return parsed(without_reasoning(text))

    async def close(self) -> None:
        await self._chat.close()


def local_structured(
    connection: Connection, *, slot: int, as_words: Callable[[Sequence[Message]], Messages], max_tokens: int = 400
) -> OpenAiStructuredLlm:
    """Create a background task's client of llama.cpp's server in this process, whose grammar enforces the schema.

    A cancelled request frees the model within one batch of its prompt, not seconds later: with `return_progress` the
    server writes while it reads, and so notices at once that the client has gone.

    Args:
        slot: One that no NPC uses.
    """
    extras = {"cache_prompt": True, "id_slot": slot, "return_progress": True, "stream": True}
    name = "the local model"
    return OpenAiStructuredLlm(connection, max_tokens=max_tokens, name=name, extras=extras, as_words=as_words)


# Connections that stay open.


IDLE_S = 240.0
"""How long an idle connection is kept; the default is 5 s.

A table is often quiet for minutes, and a new connection costs two or three round trips. Proxies drop an idle one after
four minutes at the earliest (Azure; AWS: 350 s); a server that closes it reports that."""


def kept_open() -> Any:
    """An HTTP client for `AsyncOpenAI` that keeps idle connections for `IDLE_S`. The caller closes it.

    A server that wants to be asked again later than `_WAITS_AT_MOST_S` is not asked again: the SDK would wait for up to
    a minute, and the server's reason would be lost at the caller's deadline.
    """
    limits = _HTTP.Limits(max_connections=1_000, max_keepalive_connections=100, keepalive_expiry=IDLE_S)
    return _CLIENT(limits=limits, event_hooks={"response": [_no_long_wait]})


async def _no_long_wait(response: Any) -> None:
    wanted = response.headers.get("retry-after", "0")
    try:
        is_long = float(wanted) > _WAITS_AT_MOST_S
    except ValueError:  # a date
        is_long = True
    if is_long:
        response.headers["x-should-retry"] = "false"


class ConnectionWarmer:
    """Opens a connection before a request needs it.

    Over HTTP/1.1, cancelling an answer closes its connection, so the next request would have to wait for a new one.

    Args:
        http: The client that keeps connections.
        address: Address of the service. It only sees a connection, without a key.
    """

    within_s = 3.0

    def __init__(self, http: Any, address: str) -> None:
        self._http = http
        self._address = address
        self._open_until_s = 0.0

    @property
    def is_open(self) -> bool:
        return time.monotonic() < self._open_until_s

    def in_use(self) -> None:
        """Note that a request is in progress. Its connection is unusable until `is_free`."""
        self._open_until_s = 0.0

    def is_free(self) -> None:
        """Note that an answer was read to its end."""
        self._open_until_s = time.monotonic() + IDLE_S

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
