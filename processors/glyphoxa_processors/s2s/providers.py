"""The protocols of speech-to-speech providers, for text in, speech out: OpenAI's Realtime and Google's Gemini Live."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

from glyphoxa.chat.dialect import Connection
from glyphoxa.npc.tool_spec import ToolSpec
from glyphoxa.prompt.prompt import Message
from glyphoxa_processors.s2s.speech_wire import (
    SESSION_RATE_HZ,
    Call,
    Endpoint,
    Ends,
    Given,
    SessionFailed,
    SessionLost,
    SpokenSound,
    SpokenWords,
    Warned,
    arguments_of,
    instructions_of,
    pcm_of,
    text_of,
    value_at,
)
from glyphoxa_processors.sockets import object_in, socket_url

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
        kind = value_at(event, "type", kind=str)
        response = value_at(event, "response_id", kind=str) or value_at(event, "response", "id", kind=str)
        if response and response in self._over:
            return []
        if kind == "error":
            return [self._error(value_at(event, "error", kind=dict))]
        self._has_begun = self._has_begun or kind.startswith("response.")
        item = value_at(event, "item_id", kind=str)
        match kind:
            case "response.output_audio_transcript.delta":
                delta = value_at(event, "delta", kind=str)
                self._said[item] = self._said.get(item, "") + delta
                return [SpokenWords(delta)]
            case "response.output_audio_transcript.done":
                # Some servers send the words at once, and a delta may have been unreadable.
                said, whole = self._said.get(item, ""), value_at(event, "transcript", kind=str)
                return [SpokenWords(whole[len(said) :])] if whole.startswith(said) and whole != said else []
            case "response.output_audio.delta":
                return [SpokenSound(pcm_of(value_at(event, "delta", kind=str)))]
            case "response.done":
                self._over.add(response)
                return [*_calls(value_at(event, "response", kind=dict)), Ends()]
        return []

    def _error(self, error: dict[str, Any]) -> Warned:
        code = value_at(error, "code", kind=str)
        why = "the server refuses the key" if code == "invalid_api_key" else text_of(error)
        if {code, value_at(error, "type", kind=str)} & _OF_THE_SESSION:
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
    status = value_at(response, "status", kind=str)
    details = value_at(response, "status_details", kind=dict)
    why = value_at(details, "reason", kind=str)
    if error := value_at(details, "error", kind=dict):
        why = text_of(error)
    if status == "cancelled":
        raise SessionLost(f"the server cancelled the response: {why or 'no reason given'}")
    if status in ("failed", "incomplete"):
        raise SessionFailed(why or f"response {status}")
    for item in value_at(response, "output", kind=list):
        if value_at(item, "type", kind=str) == "function_call":
            call_id, name = value_at(item, "call_id", kind=str), value_at(item, "name", kind=str)
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
        if error := value_at(told, "error", kind=dict):
            raise SessionFailed(text_of(error))
        given = list(_given(told))
        self._has_given = self._has_given or bool(given)
        content = value_at(told, "serverContent", kind=dict)
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
            if not self._has_given and (why := value_at(content, "turnCompleteReason", kind=str)):
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
    if words := value_at(message, "serverContent", "outputTranscription", "text", kind=str):
        yield SpokenWords(words)
    for part in value_at(message, "serverContent", "modelTurn", "parts", kind=list):
        if sound := pcm_of(value_at(part, "inlineData", "data", kind=str)):
            yield SpokenSound(sound)
    for call in value_at(message, "toolCall", "functionCalls", kind=list):
        arguments = arguments_of(value_at(call, kind=dict).get("args") or {})
        yield Call(value_at(call, "id", kind=str), value_at(call, "name", kind=str), arguments)
