"""The interface of speech-to-speech providers.

Each question has a connection of its own, which is opened in advance and cut after the answer. A session thus knows
only the prompt, even after an interruption or a change by the DM. It stays below its limits of context and time, and a
lost connection loses nothing.

Protocol of use: send `SpeechWire.ask`, then read the `responses`. If the model made tool calls, send
`SpeechWire.answer` and read on. After a `SessionLost` another connection may succeed.
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

from glyphoxa.actors.clock import loop_ms
from glyphoxa.chat.marks import COMMON
from glyphoxa.chat.questions import json_object
from glyphoxa.domain.errors import Unavailable
from glyphoxa.npc.tool_spec import ToolSpec
from glyphoxa.prompt.prompt import Message
from glyphoxa_processors.sockets import FAULTS, OPEN_WITHIN_S, ProviderSocket, Wire

SESSION_RATE_HZ = 24_000


class SessionFailed(Unavailable):
    """The session cannot give this reply."""


class SessionLost(SessionFailed):
    """The connection is lost. Another one may succeed."""


@dataclass(frozen=True, slots=True)
class SpokenWords:
    """Words of the reply, a little before their sound."""

    text: str


@dataclass(frozen=True, slots=True)
class SpokenSound:
    """Mono s16le at `SESSION_RATE_HZ`."""

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


@dataclass(frozen=True, slots=True)
class Ends:
    """The response, or its tool calls, are complete, except for what arrives within this time."""

    within_s: float = 0.0


Given = SpokenWords | SpokenSound | Call | Warned | Ends
"""Content of a server's message."""


class SpeechWire(Wire, Protocol):
    """The messages of one connection, for one question."""

    def ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[str]:
        """Return the messages that ask for a reply to this prompt with these tools."""
        ...

    def answer(self, answers: Sequence[tuple[Call, Any]], *, may_call: bool) -> list[str]:
        """Return the messages with the results of all calls of a response, which ask for the rest of the reply."""
        ...

    def read(self, message: str | bytes, /) -> Sequence[Given]:
        """Return what a message adds to the reply, in order.

        Raises:
            SessionFailed: It reports that the reply failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider with an address, model, voice and key.

    Attributes:
        wire: Creates the wire of a connection from instructions and tools. If the protocol cannot change them later,
            they are part of its opening.
    """

    wire: Callable[[str, Sequence[ToolSpec]], SpeechWire]

    async def try_out(self, messages: Sequence[Message]) -> str:
        """Ask one question. Returns how long it took, in words.

        Raises:
            Unavailable: It fails, with its reason.
        """
        began_ms = loop_ms()
        with translated():
            line = await ProviderSocket(self.wire(instructions_of(messages), ())).open()
            opened_ms = loop_ms()
            try:
                await line.send(*line.wire.ask(messages, ()))
                async for given in responses(line, stalled_after_ms=None):
                    if isinstance(given, SpokenSound):
                        opened_after_ms, sound_ms = opened_ms - began_ms, loop_ms() - opened_ms
                        return f"session after {opened_after_ms} ms, first sound {sound_ms} ms after the question"
            finally:
                line.cut()
        raise Unavailable("the service returned no sound")


async def responses(
    line: ProviderSocket[SpeechWire], *, stalled_after_ms: int | None
) -> AsyncIterator[SpokenWords | SpokenSound | Call]:
    """Yield a response as it arrives.

    Raises:
        SessionFailed: It failed, or nothing arrived for this long.
    """
    within_s = None if stalled_after_ms is None else stalled_after_ms / 1_000
    ends, warned = False, ""
    while True:
        try:
            read: Sequence[Given] = await line.receive(within_s=within_s)
        except TimeoutError as error:
            if ends:
                return
            after = f" after the server's error: {warned}" if warned else ""
            raise SessionFailed(f"no data for {stalled_after_ms} ms{after}") from error
        except FAULTS as error:
            # A server states its reason in an error message before it closes the connection.
            raise SessionLost(warned or reason(error)) from error
        for given in read:
            if isinstance(given, Ends):
                if not given.within_s:
                    return
                ends, within_s = True, given.within_s
                continue
            if isinstance(given, Warned):
                warned = given.text
                logger.warning("{}: the server reports an error: {}", line.wire.name, warned)
                continue
            yield given


def instructions_of(messages: Sequence[Message]) -> str:
    """Return the system messages of a prompt, because such services take instructions separately."""
    return COMMON.broken("\n\n".join(message.content for message in messages if message.role == "system"))


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
def translated() -> Iterator[None]:
    """Raise errors of the connection as `SessionFailed`."""
    try:
        yield
    except ConnectionClosed as error:
        raise SessionLost(reason(error)) from error
    except TimeoutError:
        raise SessionFailed(f"the server opened no session within {OPEN_WITHIN_S:g} s") from None
    except FAULTS as error:
        raise SessionFailed(reason(error)) from error


def reason(error: BaseException) -> str:
    """Return the server's reason for an error, without anything of the key."""
    match error:
        case ConnectionClosed(rcvd=None):
            return "the connection to the server broke off"
        case ConnectionClosed(rcvd=close) if close is not None:
            why = close.reason or CLOSE_CODE_EXPLANATIONS.get(close.code, "no reason given")
            return f"the server closed the session: {why} ({close.code})"
        case InvalidStatus(response=response):
            told = None if response.status_code in _KEY_REFUSED else json_object(response.body or b"")
            why = value_at(told, "error", "message", kind=str) or value_at(told, "error", kind=str)
            return f"the server refuses the connection: HTTP {response.status_code}{why and f': {why}'}"
    return str(error) or type(error).__name__


_KEY_REFUSED = (401, 403)
"""Their messages may quote the key."""
