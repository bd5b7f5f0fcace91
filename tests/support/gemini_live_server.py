"""Google's Gemini Live protocol (`BidiGenerateContent`) for text in, speech out."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from benchmarks.servers.local import hang_up, tone, wait_ms
from benchmarks.servers.openai import SPEECH_RATE_HZ, tokens
from tests.support.realtime_server import Session, SpeechServer, SpokenReply

_PATH = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"


@dataclass(slots=True)
class LiveConversation:
    """A session as the server has it.

    Attributes:
        setup: The client's first message.
        turns: (role, text) of everything it was told.
        received: Every message of the client, in order.
        asked: At each question: all turns that the model saw.
        is_over: The connection is closed.
    """

    setup: dict[str, Any] = field(default_factory=dict)
    turns: list[tuple[str, str]] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)
    asked: list[list[tuple[str, str]]] = field(default_factory=list)
    is_over: bool = False

    @property
    def instructions(self) -> str:
        return "".join(part["text"] for part in self.setup.get("systemInstruction", {}).get("parts", []))

    @property
    def tool_names(self) -> list[str]:
        return [each["name"] for tool in self.setup.get("tools", []) for each in tool["functionDeclarations"]]


class GeminiLiveServer(SpeechServer):
    """`conversations`: one a connection.

    Args:
        words_last: The transcript of the last word comes after the server said that all was generated.
    """

    def __init__(self, *given: Any, words_last: bool = False, **more: Any) -> None:
        super().__init__(*given, **more)
        self.words_last = words_last
        self.conversations: list[LiveConversation] = []
        self._talks: list[_Talk] = []

    @property
    def base_url(self) -> str:
        return self.http_url

    async def close_sessions(self) -> None:
        """End every open session, as one whose time is over."""
        for talk in list(self._talks):
            await talk.close(1011, b"the session has ended")

    def routes(self) -> list[web.RouteDef]:
        return [web.get(_PATH, self._serve)]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if (status := self.refusal(request)) is not None:
            return web.json_response({"error": {"message": "refused", "code": status}}, status=status)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        conversation = LiveConversation()
        self.conversations.append(conversation)
        talk = _Talk(self, request, socket, conversation)
        self._talks.append(talk)
        try:
            async for message in socket:
                if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    told = _camel_case(json.loads(message.data))
                    conversation.received.append(told)
                    await talk.take(told)
                    self.noted()
        finally:
            conversation.is_over = True
            self._talks.remove(talk)
            await talk.stop()
            self.noted()
        return socket


class _Talk(Session):
    def __init__(
        self,
        server: GeminiLiveServer,
        request: web.Request,
        socket: web.WebSocketResponse,
        conversation: LiveConversation,
    ) -> None:
        super().__init__(request, socket)
        self._server = server
        self._conversation = conversation
        self._n_calls = 0

    async def send(self, message: dict[str, Any]) -> None:
        if not self._socket.closed:
            # The service sends its JSON in binary frames.
            await self._socket.send_bytes(json.dumps(message).encode())

    async def close(self, code: int, why: bytes) -> None:
        await self._socket.close(code=code, message=why)

    async def take(self, told: dict[str, Any]) -> None:
        match told:
            case {"setup": setup}:
                self._conversation.setup = setup
                await self.send({"setupComplete": {}})
            case {"clientContent": content}:
                turns = self._conversation.turns
                turns += [(turn["role"], _text(turn)) for turn in content.get("turns", [])]
                # Told so at its setup, a session takes this as what was said before, and waits.
                waits = self._conversation.setup.get("historyConfig", {}).get("initialHistoryInClientContent")
                if content.get("turnComplete") and not waits:
                    self._ask()
            case {"realtimeInput": {"text": text}}:
                self._conversation.turns.append(("user", text))
                self._ask()
            case {"toolResponse": {"functionResponses": responses}}:
                self._conversation.turns += [("tool", json.dumps(each["response"])) for each in responses]
                self._ask()
            case _:
                await self.close(1007, b"Request contains an invalid argument.")

    def _ask(self) -> None:
        self._conversation.asked.append(list(self._conversation.turns))
        self._answering = asyncio.create_task(self._answer(self._server.next_reply()))

    async def _answer(self, reply: SpokenReply) -> None:
        if reply.tool_calls:
            calls = []
            for call in reply.tool_calls:
                self._n_calls += 1
                calls.append({"id": f"call_{self._n_calls}", "name": call.name, "args": _arguments(call.arguments)})
            await self.send({"toolCall": {"functionCalls": calls}})
            await self.send_extras(reply, "after")
            return
        await self.send_extras(reply, "first")
        await wait_ms(self._server.first_sound_ms)
        late = ""
        words = list(tokens(reply.text))
        for n, token in enumerate(words):
            if n == reply.dies_after:
                hang_up(self._request)
                return
            if n == reply.holds_after:
                await asyncio.Event().wait()
            if self._server.words_last and n == len(words) - 1:
                late = token
            else:
                await self._content({"outputTranscription": {"text": token}})
            sound = tone(token, rate_hz=SPEECH_RATE_HZ, ms_per_character=self._server.ms_per_character)
            blob = {"mimeType": f"audio/pcm;rate={SPEECH_RATE_HZ}", "data": base64.b64encode(sound).decode()}
            await self._content({"modelTurn": {"role": "model", "parts": [{"inlineData": blob}]}})
            if n == 0:
                await self.send_extras(reply, "amid")
        await self.send_extras(reply, "last")
        await self._content({"generationComplete": True})
        if late:
            await self._content({"outputTranscription": {"text": late}})
        self._conversation.turns.append(("model", reply.text))
        usage = {"promptTokenCount": len(self._conversation.turns), "totalTokenCount": len(words)}
        await self.send({"serverContent": {"turnComplete": True, **reply.ending}, "usageMetadata": usage})
        await self.send_extras(reply, "after")

    async def _content(self, content: dict[str, Any]) -> None:
        await self.send({"serverContent": content})


def _camel_case(told: Any) -> Any:
    """Protocol buffers take both spellings of a field, and Google's client library mixes them."""
    if isinstance(told, list):
        return [_camel_case(each) for each in told]
    if not isinstance(told, dict):
        return told
    spelled = {}
    for key, value in told.items():
        first, *rest = key.split("_")
        spelled[first + "".join(word.capitalize() for word in rest)] = _camel_case(value)
    return spelled


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _text(turn: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in turn["parts"])
