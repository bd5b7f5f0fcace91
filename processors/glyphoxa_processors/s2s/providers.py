"""Speech-to-speech providers: their interface, and the protocols of OpenAI's Realtime and Google's Gemini Live.

Each question has a connection of its own, which is opened in advance and cut after the answer. A session thus knows
only the prompt, even after an interruption or a change by the DM. It stays below its limits of context and time, and a
lost connection loses nothing.

Protocol of use: send `SpeechWire.ask`, then read the `responses`. If the model made tool calls, send
`SpeechWire.answer` and read on. After a `SessionLost` another connection may succeed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

from loguru import logger
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import CLOSE_CODE_EXPLANATIONS

from glyphoxa.actors.clock import loop_ms
from glyphoxa.chat.dialect import Connection
from glyphoxa.chat.marks import COMMON
from glyphoxa.chat.questions import json_object
from glyphoxa.domain.errors import Unavailable
from glyphoxa.npc.tool_spec import ToolSpec
from glyphoxa.prompt.prompt import Message
from glyphoxa_processors.sockets import FAULTS, OPEN_WITHIN_S, ProviderSocket, Wire, object_in, socket_url

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
            raise SessionLost(warned or _reason(error)) from error
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


def _value_at(message: object, *path: str, kind: type[T]) -> T:
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


def _text_of(error: Mapping[str, Any]) -> str:
    """Return the text of an error that the server reports in a message."""
    texts = (_value_at(error, key, kind=str) for key in ("message", "status", "code", "type"))
    return next(filter(None, texts), "the server reports an error")


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of the connection as `SessionFailed`."""
    try:
        yield
    except ConnectionClosed as error:
        raise SessionLost(_reason(error)) from error
    except TimeoutError:
        raise SessionFailed(f"the server opened no session within {OPEN_WITHIN_S:g} s") from None
    except FAULTS as error:
        raise SessionFailed(_reason(error)) from error


def _reason(error: BaseException) -> str:
    """Return the server's reason for an error, without anything of the key."""
    match error:
        case ConnectionClosed(rcvd=None):
            return "the connection to the server broke off"
        case ConnectionClosed(rcvd=close) if close is not None:
            why = close.reason or CLOSE_CODE_EXPLANATIONS.get(close.code, "no reason given")
            return f"the server closed the session: {why} ({close.code})"
        case InvalidStatus(response=response):
            told = None if response.status_code in _KEY_REFUSED else json_object(response.body or b"")
            why = _value_at(told, "error", "message", kind=str) or _value_at(told, "error", kind=str)
            return f"the server refuses the connection: HTTP {response.status_code}{why and f': {why}'}"
    return str(error) or type(error).__name__


_KEY_REFUSED = (401, 403)
"""Their messages may quote the key."""


# OpenAI's Realtime.


_OF_THE_SESSION = frozenset({"session_expired", "conversation_already_has_active_response", "server_error"})
"""Codes and types of errors that another session does not have."""


def openai_realtime(connection: Connection, *, voice: str | None = None) -> Endpoint:
    """Return the endpoint of OpenAI's Realtime protocol, or of a compatible service."""
    return Endpoint(partial(RealtimeWire, connection, voice or "cedar"))


class RealtimeWire:
    """The events of one connection. Instructions and tools are sent with the question."""

    def __init__(self, connection: Connection, voice: str, _instructions: str, _tools: Sequence[ToolSpec]) -> None:
        self.name = connection.model
        base = socket_url(connection.base_url or "https://api.openai.com/v1")
        self.url = f"{base}/realtime?{urlencode({'model': connection.model})}"
        self.headers = {"Authorization": f"Bearer {connection.key}"}
        self.opening = _session(
            model=connection.model,
            output_modalities=["audio"],
            # Ears hear the players, so there is no audio input and no turn detection.
            audio={
                "input": {"turn_detection": None},
                "output": {"format": {"type": "audio/pcm", "rate": SESSION_RATE_HZ}, "voice": voice},
            },
            truncation="auto",
        )
        self._said: dict[str, str] = {}
        self._has_begun = False
        self._over: set[str] = set()
        """Ids of ended responses, whose late and repeated events are ignored."""

    def ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[str]:
        declared = [
            {"type": "function", "name": spec.wire_name, "description": spec.description, "parameters": spec.schema}
            for spec in tools
        ]
        items = (_openai_message(message) for message in messages if message.role != "system")
        return [
            _session(instructions=instructions_of(messages), tools=declared),
            *map(_creation, items),
            _response(may_call=bool(tools)),
        ]

    def answer(self, answers: Sequence[tuple[Call, Any]], *, may_call: bool) -> list[str]:
        self._has_begun = False
        items = (
            {"type": "function_call_output", "call_id": call.id, "output": json.dumps(found, ensure_ascii=False)}
            for call, found in answers
        )
        return [*map(_creation, items), _response(may_call=may_call)]

    def read(self, message: str | bytes, /) -> list[Given]:
        event = object_in(message)
        kind = _value_at(event, "type", kind=str)
        response = _value_at(event, "response_id", kind=str) or _value_at(event, "response", "id", kind=str)
        if response and response in self._over:
            return []
        if kind == "error":
            return [self._error(_value_at(event, "error", kind=dict))]
        self._has_begun = self._has_begun or kind.startswith("response.")
        item = _value_at(event, "item_id", kind=str)
        match kind:
            case "response.output_audio_transcript.delta":
                delta = _value_at(event, "delta", kind=str)
                self._said[item] = self._said.get(item, "") + delta
                return [SpokenWords(delta)]
            case "response.output_audio_transcript.done":
                # Some servers send the words at once, and a delta may have been unreadable.
                said, whole = self._said.get(item, ""), _value_at(event, "transcript", kind=str)
                return [SpokenWords(whole[len(said) :])] if whole.startswith(said) and whole != said else []
            case "response.output_audio.delta":
                return [SpokenSound(pcm_of(_value_at(event, "delta", kind=str)))]
            case "response.done":
                self._over.add(response)
                return [*_calls(_value_at(event, "response", kind=dict)), Ends()]
        return []

    def _error(self, error: dict[str, Any]) -> Warned:
        code = _value_at(error, "code", kind=str)
        why = "the server refuses the key" if code == "invalid_api_key" else _text_of(error)
        if {code, _value_at(error, "type", kind=str)} & _OF_THE_SESSION:
            raise SessionLost(why)
        if not self._has_begun:
            raise SessionFailed(why)
        return Warned(why)


def _session(**session: Any) -> str:
    return json.dumps({"type": "session.update", "session": {"type": "realtime", **session}})


def _creation(item: Mapping[str, Any]) -> str:
    return json.dumps({"type": "conversation.item.create", "item": item})


def _response(*, may_call: bool) -> str:
    return json.dumps({"type": "response.create", "response": {"tool_choice": "auto" if may_call else "none"}})


def _openai_message(message: Message) -> dict[str, Any]:
    kind = "output_text" if message.role == "assistant" else "input_text"
    return {"type": "message", "role": message.role, "content": [{"type": kind, "text": message.content}]}


def _calls(response: dict[str, Any]) -> Iterator[Call]:
    """Yield the tool calls of an ended response.

    Raises:
        SessionFailed: It is not complete.
    """
    status = _value_at(response, "status", kind=str)
    details = _value_at(response, "status_details", kind=dict)
    why = _value_at(details, "reason", kind=str)
    if error := _value_at(details, "error", kind=dict):
        why = _text_of(error)
    if status == "cancelled":
        raise SessionLost(f"the server cancelled the response: {why or 'no reason given'}")
    if status in ("failed", "incomplete"):
        raise SessionFailed(why or f"response {status}")
    for item in _value_at(response, "output", kind=list):
        if _value_at(item, "type", kind=str) == "function_call":
            call_id, name = _value_at(item, "call_id", kind=str), _value_at(item, "name", kind=str)
            yield Call(call_id, name, arguments_of(item.get("arguments") or ""))


# Google's Gemini Live.


_PATH = "ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
_LAST_WORDS_WITHIN_S = 0.5
"""The server ends a turn after playback and reports earlier that generation is complete. The transcript may arrive a
little later than that report."""


def gemini_live(connection: Connection, *, voice: str | None = None) -> Endpoint:
    """Return the endpoint of Google's Gemini Live protocol, or of a compatible service."""
    return Endpoint(partial(LiveWire, connection, voice or "Charon"))


class LiveWire:
    """The messages of one connection. No item can be deleted or cut; instructions and tools are declared once."""

    def __init__(self, connection: Connection, voice: str, instructions: str, tools: Sequence[ToolSpec]) -> None:
        self.name = connection.model
        self.url = f"{socket_url(connection.base_url or 'https://generativelanguage.googleapis.com')}/{_PATH}"
        self.headers = {"x-goog-api-key": connection.key}
        # Second-generation models answer once the conversation is complete; later ones wait for realtime input after
        # it.
        self._speaks_at_once = "gemini-2" in connection.model
        declared = [
            {"name": spec.wire_name, "description": spec.description, "parametersJsonSchema": spec.schema}
            for spec in tools
        ]
        setup: dict[str, Any] = {
            "model": connection.model if "/" in connection.model else f"models/{connection.model}",
            "generationConfig": {
                "responseModalities": ["AUDIO"],
                "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice}}},
            },
            "outputAudioTranscription": {},
            # Otherwise an audio session ends after 15 minutes, even if idle.
            "contextWindowCompression": {"slidingWindow": {}},
        }
        if instructions:
            setup["systemInstruction"] = {"role": "user", "parts": [{"text": instructions}]}
        if declared:
            setup["tools"] = [{"functionDeclarations": declared}]
        if not self._speaks_at_once:
            setup["historyConfig"] = {"initialHistoryInClientContent": True}
        self.opening = json.dumps({"setup": setup})
        self._has_given = False
        self._is_called = False

    def ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[str]:
        turns = [_content(message) for message in messages if message.role != "system"]
        if self._speaks_at_once:
            return [json.dumps({"clientContent": {"turns": turns, "turnComplete": True}})]
        return [
            json.dumps({"clientContent": {"turns": turns[:-1], "turnComplete": True}}),
            json.dumps({"realtimeInput": {"text": messages[-1].content}}),
        ]

    def answer(self, answers: Sequence[tuple[Call, Any]], *, may_call: bool) -> list[str]:
        self._has_given = False
        responses = [{"id": call.id, "name": call.name, "response": found} for call, found in answers]
        return [json.dumps({"toolResponse": {"functionResponses": responses}})]

    def read(self, message: str | bytes, /) -> list[Given]:
        told = object_in(message)
        if error := _value_at(told, "error", kind=dict):
            raise SessionFailed(_text_of(error))
        given = list(_given(told))
        self._has_given = self._has_given or bool(given)
        content = _value_at(told, "serverContent", kind=dict)
        if "toolCall" in told:
            self._is_called = True
            return [*given, Ends()]
        if content.get("interrupted"):
            raise SessionLost("the server interrupted the reply")
        if content.get("turnComplete"):
            if not self._has_given and self._is_called:
                # The end of the call's own turn, which may arrive after the answer to the call.
                self._is_called = False
                return []
            if not self._has_given and (why := _value_at(content, "turnCompleteReason", kind=str)):
                raise SessionFailed(f"the model gave no reply: {why}")
            return [*given, Ends()]
        if content.get("generationComplete") and self._has_given:
            return [*given, Ends(_LAST_WORDS_WITHIN_S)]
        return given


def _content(message: Message) -> dict[str, Any]:
    role = "model" if message.role == "assistant" else "user"
    return {"role": role, "parts": [{"text": message.content}]}


def _given(message: Mapping[str, Any]) -> Iterator[Given]:
    # Words first, because they identify the sound.
    if words := _value_at(message, "serverContent", "outputTranscription", "text", kind=str):
        yield SpokenWords(words)
    for part in _value_at(message, "serverContent", "modelTurn", "parts", kind=list):
        if sound := pcm_of(_value_at(part, "inlineData", "data", kind=str)):
            yield SpokenSound(sound)
    for call in _value_at(message, "toolCall", "functionCalls", kind=list):
        arguments = arguments_of(_value_at(call, kind=dict).get("args") or {})
        yield Call(_value_at(call, "id", kind=str), _value_at(call, "name", kind=str), arguments)
