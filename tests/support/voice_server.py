"""Speaks the socket protocols of three voices (Deepgram Aura, ElevenLabs, Cartesia), or what a test makes of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from benchmarks.servers.deepgram import Close, Wire
from benchmarks.servers.local import LocalServer, tone

RATE_HZ = 24_000
VOICES = ("deepgram", "elevenlabs", "cartesia")


@dataclass(frozen=True, slots=True)
class Clause:
    """A request for the sound of a text, and the messages that answer it: the sound in thirds, and its end."""

    name: str
    text: str
    id: str
    n: int
    """Its number on all connections, from 0."""
    answers: tuple[Wire, ...] = field(repr=False)

    @property
    def sounds(self) -> tuple[Wire, ...]:
        return self.answers[:3]

    @property
    def ends(self) -> tuple[Wire, ...]:
        return self.answers[3:]


class VoiceServer(LocalServer):
    """A server of one voice.

    Args:
        on_wire: Returns what is sent for a clause.
    """

    def __init__(
        self,
        name: str,
        *,
        on_wire: Callable[[Clause], Iterable[Wire]] = lambda clause: clause.answers,
        key: str | None = None,
        refuse_with: int | None = None,
    ) -> None:
        super().__init__(key=key, refuse_with=refuse_with)
        self.name = name
        self.on_wire = on_wire
        self.n_connections = 0
        self.texts: list[str] = []

    @property
    def address(self) -> str:
        return f"{self.http_url}/tts/websocket" if self.name == "cartesia" else self.http_url

    def routes(self) -> list[web.RouteDef]:
        paths = ("/v1/speak", "/v1/text-to-speech/{voice}/multi-stream-input", "/tts/websocket")
        return [web.get(path, self._serve) for path in paths]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if (status := self.refusal(request)) is not None:
            return web.json_response({"message": "this key has no access"}, status=status)
        self.n_connections += 1
        self.noted()
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        n_flushed, texts = 0, dict[str, str]()
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            told = json.loads(message.data)
            clause_id = told.get("context_id", "")
            texts[clause_id] = (texts.get(clause_id, "") + (told.get("transcript") or told.get("text") or "")).strip()
            if self._is_complete(told):
                text = texts.pop(clause_id)
                answers = tuple(self._answers(text, clause_id, n_flushed))
                clause = Clause(self.name, text, clause_id, len(self.texts), answers)
                self.texts.append(text)
                n_flushed += 1
                for wire in self.on_wire(clause):
                    await _send(socket, wire)
                self.noted()
        return socket

    def _is_complete(self, told: dict[str, Any]) -> bool:
        match self.name:
            case "deepgram":
                return told.get("type") == "Flush"
            case "elevenlabs":
                return bool(told.get("close_context"))
            case _:
                return told.get("continue") is False

    def _answers(self, text: str, clause: str, n_flushed: int) -> Iterator[Wire]:
        sound = tone(text, rate_hz=RATE_HZ)
        third = len(sound) // 3 | 1  # half a sample in each
        for piece in (sound[:third], sound[third : 2 * third], sound[2 * third :]):
            match self.name:
                case "deepgram":
                    yield piece
                case "elevenlabs":
                    yield {"audio": base64.b64encode(piece).decode(), "contextId": clause}
                case _:
                    yield {"type": "chunk", "data": base64.b64encode(piece).decode(), "context_id": clause}
        match self.name:
            case "deepgram":
                yield {"type": "Flushed", "sequence_id": n_flushed}
            case "elevenlabs":
                yield {"isFinal": True, "contextId": clause}
            case _:
                yield {"type": "done", "done": True, "context_id": clause}


async def _send(socket: web.WebSocketResponse, wire: Wire) -> None:
    match wire:
        case _ if socket.closed:
            return
        case Close(code, reason):
            await socket.close(code=code, message=reason.encode())
        case str():
            await socket.send_str(wire)
        case bytes():
            await socket.send_bytes(wire)
        case _:
            await socket.send_json(wire)
