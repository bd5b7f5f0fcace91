"""OpenAI's Realtime protocol for text in, speech out."""

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


def endpoint(connection: Connection, *, voice: str | None = None) -> Endpoint:
    """Return the endpoint of OpenAI, or of a compatible service."""
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
        items = (_message(message) for message in messages if message.role != "system")
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


def _message(message: Message) -> dict[str, Any]:
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
