"""The interface of speech-to-speech providers: one NPC's session with one of them.

Protocol of use, for each turn:

1. `ask(messages, tools)`: the session then knows exactly these messages and is shown exactly these tools.
2. `respond()` until it ends. If it made tool calls, `answer` them and `respond()` again.
3. `replied(text)`, and once known, `heard(text)`, so that the session does not believe it said more.
4. `renew()` between turns, to prepare the next one.

`stop()` ends a response at any point. Errors raise `SessionFailed`; then call `close()`, and the next `ask` opens a new
connection with the whole conversation. `expect` and `renew` may be called in any order while no question is open.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from loguru import logger
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import CLOSE_CODE_EXPLANATIONS

from glyphoxa.chat.marks import COMMON
from glyphoxa.chat.questions import json_object
from glyphoxa.npc.tool_spec import ToolSpec
from glyphoxa.prompt.prompt import Message
from glyphoxa_processors.sockets import FAULTS, OPEN_WITHIN_S


class SessionFailed(Exception):
    """The session cannot give this reply."""


class SessionLost(SessionFailed):
    """The connection is lost. Another one may succeed."""


@dataclass(frozen=True, slots=True)
class SpokenWords:
    """Words of the reply, a little before their sound."""

    text: str


@dataclass(frozen=True, slots=True)
class SpokenSound:
    """Mono s16le at 24 kHz."""

    pcm: bytes


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model.

    Attributes:
        arguments: None if they are not a JSON object.
    """

    id: str
    name: str
    arguments: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Warned:
    """An error that the server reports during a reply without ending it."""

    text: str


Given = SpokenWords | SpokenSound | Call | Warned


class SpeechSession(Protocol):
    """See the module's protocol of use."""

    async def open(self) -> None:
        """Connect, unless connected."""
        ...

    async def expect(self, instructions: str) -> None:
        """Prepare for a question with these instructions."""
        ...

    async def ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> None:
        """Send a question.

        Args:
            tools: Tools of the question's tier.
        """
        ...

    def respond(self, tools: Sequence[ToolSpec]) -> AsyncIterator[Given]:
        """Yield the reply as it arrives. Ends with the reply or with tool calls.

        Args:
            tools: Tools allowed in this response: those of the question, or none.
        """
        ...

    async def answer(self, answers: Sequence[tuple[Call, Any]]) -> None:
        """Send the results of all calls of a response."""
        ...

    def replied(self, text: str) -> None: ...

    async def heard(self, text: str, *, audio_ms: int) -> None: ...

    async def stop(self) -> None: ...

    async def renew(self) -> None: ...

    async def close(self) -> None: ...


class Endpoint(Protocol):
    """Opens sessions with an address, model, voice and key."""

    def session(self, tools: Sequence[ToolSpec], on_ending: Callable[[], None]) -> SpeechSession:
        """Create a session of one NPC, not connected yet.

        Args:
            tools: Tools of the highest tier, for a session that is opened before the first question.
            on_ending: Called when its connection ends or soon will, without a request. Then call `renew`.
        """
        ...


def instructions_of(messages: Sequence[Message]) -> str:
    """Return the system messages of a prompt, because such services take instructions separately."""
    return COMMON.broken("\n\n".join(message.content for message in messages if message.role == "system"))


def message_of(raw: str | bytes) -> Mapping[str, Any]:
    """Parse a message of the server. Logs one that is not a JSON object and returns it as empty."""
    message = json_object(raw)
    if message is None:
        logger.warning("a speech-to-speech server sent {} bytes that are not a JSON object", len(raw))
        return {}
    return message


T = TypeVar("T")


def value_at(message: object, *path: str, kind: type[T]) -> T:
    """Return the value at that path of a message; an empty one of that kind if it is missing or of another kind."""
    for key in path:
        message = message.get(key) if isinstance(message, Mapping) else None
    return message if isinstance(message, kind) else kind()


def pcm_of(encoded: str) -> bytes:
    """Decode base64. Empty if it is invalid."""
    try:
        return base64.b64decode(encoded)
    except ValueError:
        return b""


def arguments_of(value: object) -> Mapping[str, object] | None:
    """Return a call's arguments, given as an object or as its JSON text. None if they are neither."""
    arguments = json_object(value or "{}") if isinstance(value, str) else value
    return arguments if isinstance(arguments, dict) else None


def text_of(error: Mapping[str, Any]) -> str:
    """Return the text of an error that the server reports in a message."""
    texts = (value_at(error, key, kind=str) for key in ("message", "status", "code", "type"))
    return next(filter(None, texts), "the server reports an error")


@contextmanager
def translated(*own: type[Exception]) -> Iterator[None]:
    """Raise errors of the connection, and the client's own, as `SessionFailed`."""
    failures: tuple[type[Exception], ...] = (*FAULTS, *own)
    try:
        yield
    except ConnectionClosed as error:
        raise SessionLost(reason(error)) from error
    except TimeoutError:
        raise SessionFailed(f"the server opened no session within {OPEN_WITHIN_S:g} s") from None
    except failures as error:
        raise SessionFailed(reason(error)) from error


def reason(error: BaseException) -> str:
    """Return the server's reason for an error, without anything of the key."""
    match error:
        case ConnectionClosed(rcvd=None):
            return "the connection to the server broke off"
        case ConnectionClosed(rcvd=close) if close is not None:
            return closed_because(close.code, close.reason)
        case InvalidStatus(response=response):
            told = None if response.status_code in _KEY_REFUSED else json_object(response.body or b"")
            why = value_at(told, "error", "message", kind=str) or value_at(told, "error", kind=str)
            return f"the server refuses the connection: HTTP {response.status_code}{why and f': {why}'}"
    return str(error) or type(error).__name__


_KEY_REFUSED = (401, 403)
"""Their messages may quote the key."""


def closed_because(code: int, why: str) -> str:
    return f"the server closed the session: {why or CLOSE_CODE_EXPLANATIONS.get(code, 'no reason given')} ({code})"
