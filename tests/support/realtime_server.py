"""OpenAI's Realtime protocol (GA) for text in, speech out: one conversation a WebSocket, one response at a time."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from benchmarks.servers.local import LocalServer, hang_up, tone, wait_ms
from benchmarks.servers.openai import SPEECH_RATE_HZ, ToolCall, tokens


@dataclass(frozen=True, slots=True)
class Close:
    """Ends the connection with this close code."""

    code: int
    why: str = ""


Sent = Mapping[str, Any] | str | Close
"""A message, raw text, or the end of the connection. "$response" in a message stands for the response's id."""


@dataclass(frozen=True, slots=True)
class SpokenReply:
    """One response.

    Attributes:
        holds_after: Send so many words and their sound, then nothing more until the response is cancelled.
        dies_after: Send so many words, then drop the connection.
        n_tokens: Tokens of the session after it.
        extras: Other messages: "first", before the first word; "amid", after it; "last"; "after" the end.
        ending: Fields of the response at its end that differ from a complete one's.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    holds_after: int | None = None
    dies_after: int | None = None
    n_tokens: int = 0
    extras: Mapping[str, Sequence[Sent]] = field(default_factory=dict)
    ending: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Conversation:
    """A session as the server has it."""

    session: dict[str, Any] = field(default_factory=dict)
    items: list[dict[str, Any]] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)
    """Every event of the client, in order."""
    asked: list[list[tuple[str, str]]] = field(default_factory=list)
    """At each response: (role or type, text) of every item the model saw."""


class SpeechServer(LocalServer):
    """Answers with its replies in turn, the last one again and again."""

    def __init__(
        self,
        replies: Iterable[SpokenReply] = (SpokenReply("Well met."),),
        *,
        first_sound_ms: float = 0,
        ms_per_character: int = 60,
        key: str | None = None,
        refuse_with: int | None = None,
    ) -> None:
        super().__init__(key=key, refuse_with=refuse_with)
        self.first_sound_ms = first_sound_ms
        self.ms_per_character = ms_per_character
        self._replies = list(replies)
        self._n_answered = 0

    def next_reply(self) -> SpokenReply:
        reply = self._replies[min(self._n_answered, len(self._replies) - 1)]
        self._n_answered += 1
        return reply


class Session:
    """One WebSocket, and the answer that is being given on it."""

    def __init__(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        self._request = request
        self._socket = socket
        self._answering: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
            await asyncio.gather(self._answering, return_exceptions=True)

    async def send_extras(self, reply: SpokenReply, place: str, response_id: str = "") -> None:
        for each in reply.extras.get(place, ()):
            if self._socket.closed:
                return
            if isinstance(each, Close):
                await self._socket.close(code=each.code, message=each.why.encode())
            else:
                text = each if isinstance(each, str) else json.dumps(each)
                await self._socket.send_str(text.replace("$response", response_id))


class RealtimeServer(SpeechServer):
    """`conversations`: one a connection."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.conversations: list[Conversation] = []

    @property
    def base_url(self) -> str:
        return f"{self.http_url}/v1"

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v1/realtime", self._serve)]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if (status := self.refusal(request)) is not None:
            return web.json_response({"error": {"message": "refused", "code": status}}, status=status)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        conversation = Conversation(session={"type": "realtime", "model": request.query.get("model", "")})
        self.conversations.append(conversation)
        talk = _Talk(self, request, socket, conversation)
        await talk.send("session.created", session={**conversation.session, "id": "s1"})
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    event = json.loads(message.data)
                    conversation.received.append(event)
                    await talk.take(event)
                    self.noted()
        finally:
            await talk.stop()
        return socket


class _Talk(Session):
    def __init__(
        self, server: RealtimeServer, request: web.Request, socket: web.WebSocketResponse, conversation: Conversation
    ) -> None:
        super().__init__(request, socket)
        self._server = server
        self._conversation = conversation
        self._n = 0

    async def send(self, kind: str, **fields: Any) -> None:
        self._n += 1
        if not self._socket.closed:
            await self._socket.send_json({"type": kind, "event_id": f"event_{self._n}", **fields})

    async def take(self, event: dict[str, Any]) -> None:
        items = self._conversation.items
        match event["type"]:
            case "session.update":
                self._conversation.session |= event["session"]
                await self.send("session.updated", session={**self._conversation.session, "id": "s1"})
            case "conversation.item.create":
                await self._create(event)
            case "response.create" if self._is_answering():
                await self._error("conversation_already_has_active_response", "a response is being made", event)
            case "response.create":
                self._conversation.asked.append([_seen(item) for item in items])
                self._answering = asyncio.create_task(self._answer(self._server.next_reply()))
            case unknown:
                await self._error("invalid_value", f"unknown event {unknown}", event)

    async def _create(self, event: dict[str, Any]) -> None:
        item = {"id": f"item_{self._n}", "object": "realtime.item", "status": "completed", **event["item"]}
        after = event.get("previous_item_id")
        items = self._conversation.items
        if after is None:
            items.append(item)
        elif after == "root":
            items.insert(0, item)
        elif self._has(after):
            items.insert([known["id"] for known in items].index(after) + 1, item)
        else:
            await self._error("item_create_invalid_previous_item_id", f"no item {after}", event)
            return
        await self.send("conversation.item.added", previous_item_id=after, item=item)
        await self.send("conversation.item.done", previous_item_id=after, item=item)

    async def _answer(self, reply: SpokenReply) -> None:
        response_id = f"resp_{self._n}"
        output: list[dict[str, Any]] = []
        await self.send("response.created", response=_response(response_id, "in_progress", []))
        await self.send_extras(reply, "first", response_id)
        status = "cancelled"
        try:
            for n, call in enumerate(reply.tool_calls):
                await self._call(response_id, n, call, output)
            if reply.text:
                await self._speak(response_id, reply, output)
            await self.send_extras(reply, "last", response_id)
            status = "completed"
        finally:
            # The client may ask again as soon as it hears of the end.
            self._answering = None
            ended = {**_response(response_id, status, output, reply.n_tokens), **reply.ending}
            await self.send("response.done", response=ended)
            await self.send_extras(reply, "after", response_id)

    async def _call(self, response_id: str, n: int, call: ToolCall, output: list[dict[str, Any]]) -> None:
        item = {
            "id": f"{response_id}_call_{n}",
            "object": "realtime.item",
            "type": "function_call",
            "status": "completed",
            "name": call.name,
            "call_id": f"call_{self._n}_{n}",
            "arguments": call.arguments,
        }
        output.append(item)
        self._conversation.items.append(item)
        place = {"response_id": response_id, "output_index": n}
        await self.send("response.output_item.added", **place, item=item)
        await self.send("conversation.item.added", previous_item_id=None, item=item)
        done = {key: item[key] for key in ("call_id", "name", "arguments")}
        await self.send("response.function_call_arguments.done", **place, item_id=item["id"], **done)
        await self.send("response.output_item.done", **place, item=item)

    async def _speak(self, response_id: str, reply: SpokenReply, output: list[dict[str, Any]]) -> None:
        content = {"type": "output_audio", "transcript": ""}
        item = {
            "id": f"{response_id}_item",
            "object": "realtime.item",
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [content],
        }
        place = {"response_id": response_id, "output_index": 0}
        output.append(item)
        self._conversation.items.append(item)
        await self.send("response.output_item.added", **place, item={**item, "content": []})
        await self.send("conversation.item.added", previous_item_id=None, item={**item, "content": []})
        await wait_ms(self._server.first_sound_ms)
        part = {**place, "item_id": item["id"], "content_index": 0}
        for n, token in enumerate(tokens(reply.text)):
            if n == reply.dies_after:
                hang_up(self._request)
                return
            if n == reply.holds_after:
                await asyncio.Event().wait()
            content["transcript"] += token
            await self.send("response.output_audio_transcript.delta", **part, delta=token)
            sound = tone(token, rate_hz=SPEECH_RATE_HZ, ms_per_character=self._server.ms_per_character)
            await self.send("response.output_audio.delta", **part, delta=base64.b64encode(sound).decode())
            if n == 0:
                await self.send_extras(reply, "amid", response_id)
        await self.send("response.output_audio.done", **part)
        await self.send("response.output_audio_transcript.done", **part, transcript=reply.text)
        item["status"] = "completed"
        await self.send("response.output_item.done", **place, item=item)

    async def _error(self, code: str, message: str, event: dict[str, Any]) -> None:
        about = event.get("event_id")
        error = {"type": "invalid_request_error", "code": code, "message": message, "param": None, "event_id": about}
        await self.send("error", error=error)

    def _has(self, item_id: str) -> bool:
        return any(item["id"] == item_id for item in self._conversation.items)

    def _is_answering(self) -> bool:
        return self._answering is not None and not self._answering.done()


def _seen(item: dict[str, Any]) -> tuple[str, str]:
    if item["type"] == "message":
        return item["role"], "".join(part.get("text") or part.get("transcript") or "" for part in item["content"])
    return item["type"], item.get("output") or item.get("arguments") or ""


def _response(response_id: str, status: str, output: list[dict[str, Any]], n_tokens: int = 0) -> dict[str, Any]:
    return {
        "id": response_id,
        "object": "realtime.response",
        "status": status,
        "status_details": None,
        "output": output,
        "usage": {"total_tokens": n_tokens, "input_tokens": n_tokens, "output_tokens": 0},
    }
