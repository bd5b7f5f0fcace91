"""Answers of servers that speak OpenAI's chat protocol, read as such servers write them.

The protocol's client library expects what OpenAI sends. Compatible servers send errors with status 200, pages of HTML,
whole answers where a stream was requested, and usage data without numbers. `AnswerReader` takes the lines of a response
and returns what is in them; `ChatClient` sends the request in the server's dialect.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from openai import APIStatusError, AsyncOpenAI

from glyphoxa.domain.errors import Unavailable, shown
from glyphoxa.judgement.marks import COMMON
from glyphoxa.providers.chat_dialect import Dialect, Dialects, Rejection

_READ_AT_MOST: Final = 2_000_000
"""Characters of a response that is no stream."""
_TRIES: Final = 5
_NO_DATA: Final = (":", "event:", "id:", "retry:")


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


class AnswerReader:
    """Reads the lines of one response: server-sent events, JSON lines, or one JSON document.

    Attributes:
        is_stream: Whether events have come.
    """

    def __init__(self) -> None:
        self._other: list[str] = []
        self._n_other = 0
        self.is_stream = False

    def take(self, line: str) -> Iterator[Delta]:
        """Yield what a line adds.

        Raises:
            NoAnswer: It holds an error.
        """
        if line.startswith("data:"):
            payload = line.removeprefix("data:").strip()
            if payload == "[DONE]":
                yield Delta(finish="stop")
            elif payload:
                yield from self._read(payload)
        elif line.strip() and not line.startswith(_NO_DATA):
            self._keep(line)

    def end(self) -> Iterator[Delta]:
        """Yield what the other lines hold together.

        Raises:
            NoAnswer: They are an error, or no answer.
        """
        lines, self._other = self._other, []
        if not lines or self.is_stream:
            return
        text = "\n".join(lines)
        documents = [_parsed(text)]
        if documents == [None]:
            documents = [_parsed(line) for line in lines]
        deltas = [delta for each in documents if each is not None and (delta := _delta(each)) is not None]
        if not deltas:
            raise NoAnswer(f"the server sent no answer: {shown(text)}", Rejection(200, text))
        yield from deltas

    def _read(self, payload: str) -> Iterator[Delta]:
        document = _parsed(payload)
        delta = None if document is None else _delta(document)
        if delta is None:
            self._keep(payload)
            return
        self.is_stream = True
        yield delta

    def _keep(self, line: str) -> None:
        if self._n_other < _READ_AT_MOST:
            self._other.append(line)
            self._n_other += len(line)


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _delta(document: Mapping[str, Any]) -> Delta | None:
    """Return what a piece of an answer adds; None if it is none.

    Raises:
        NoAnswer: It is an error.
    """
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


class ChatClient:
    """Asks one model for chat completions, in the dialect of its server.

    Args:
        client: Closed by the caller. Its retries cover connections; refusals are handled here.
        expected: The dialect, unless `dialects` knows better.
    """

    def __init__(self, client: AsyncOpenAI, model: str, *, expected: Dialect, dialects: Dialects | None = None) -> None:
        self._client = client
        self._model = model
        self._address = str(client.base_url)
        self._expected = expected
        self._dialects = dialects or Dialects()

    @property
    def dialect(self) -> Dialect:
        return self._dialects.of(self._address, self._expected, model=self._model)

    def learn(self, dialect: Dialect) -> None:
        self._dialects.learn(self._address, dialect, model=self._model)

    async def ask(self, request: Mapping[str, Any]) -> AsyncGenerator[Delta, None]:
        """Yield the pieces of an answer as they come. Close the iterator (`aclosing`).

        Args:
            request: Fields of the protocol, without `model`; those without a value are left out. Marks in messages are
                broken, because any address may be a server that interprets them.

        Raises:
            NoAnswer: The server refuses the request, in every form that it may accept, or sends no answer.
            openai.APIError: It cannot be reached.
        """
        request = {**request, "messages": COMMON.in_messages(request["messages"])}
        known = dialect = self.dialect
        for n in range(_TRIES):
            has_begun = False
            try:
                async with aclosing(self._once(dialect.fitted(request))) as deltas:
                    async for delta in deltas:
                        if not has_begun:
                            has_begun = True
                            if dialect != known:
                                self.learn(dialect)
                        yield delta
                return
            except NoAnswer as failure:
                other = None if has_begun or n == _TRIES - 1 else dialect.after(failure.refusal, request)
                if other is None:
                    raise
                dialect = other

    async def _once(self, fields: Mapping[str, Any]) -> AsyncGenerator[Delta, None]:
        # The SDK would take 0.15 ms to look through each message.
        asked = self._client.chat.completions.with_streaming_response.create(
            model=self._model, messages=[], extra_body=dict(fields)
        )
        try:
            async with asked as response:
                reader = AnswerReader()
                async for line in response.iter_lines():
                    for delta in reader.take(line):
                        yield delta
                for delta in reader.end():
                    yield delta
        except APIStatusError as error:
            raise self._refused(error) from error
        except NoAnswer as failure:
            raise NoAnswer(self._without_key(str(failure)), failure.refusal) from None

    def _refused(self, error: APIStatusError) -> NoAnswer:
        said = error_text(error.body if error.body is not None else error.message)
        named = error.body.get("param") if isinstance(error.body, Mapping) else None
        message = f"HTTP {error.status_code}: {self._without_key(shown(said))}"
        return NoAnswer(message, Rejection(error.status_code, f"{said} {named or ''}"))

    def _without_key(self, text: str) -> str:
        """Some servers quote the key that they refuse."""
        return text.replace(self._client.api_key, "…") if self._client.api_key else text
