"""Google's Gemini Live protocol for text in, speech out.

No item of such a session can be deleted or cut, and a connection declares its instructions and tools once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from glyphoxa.chat.dialect import Connection
from glyphoxa.npc.tool_spec import ToolSpec
from glyphoxa.prompt.prompt import Message
from glyphoxa_processors.s2s.speech_wire import (
    Call,
    Endpoint,
    Ends,
    Given,
    SessionFailed,
    SessionLost,
    SpokenSound,
    SpokenWords,
    arguments_of,
    pcm_of,
    text_of,
    value_at,
)
from glyphoxa_processors.sockets import object_in, socket_url

_PATH = "ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
_LAST_WORDS_WITHIN_S = 0.5
"""The server ends a turn after playback and reports earlier that generation is complete. The transcript may arrive a
little later than that report."""


def endpoint(connection: Connection, *, voice: str | None = None) -> Endpoint:
    """Return the endpoint of Google, or of a compatible service."""
    return Endpoint(partial(LiveWire, connection, voice or "Charon"))


class LiveWire:
    """The messages of one connection."""

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
