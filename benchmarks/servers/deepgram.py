"""Deepgram's WebSocket protocols: Nova (`/v1/listen`), Flux (`/v2/listen`) and Aura (`/v1/speak`).

What is heard is scripted: the server cannot recognise speech. It counts the audio it gets, so that a script's
events come at the same place of the stream in every run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import WSMsgType, web

from benchmarks.servers.local import LocalServer, hang_up, tone, wait_ms

KEYTERM_TOKENS = 500


@dataclass(frozen=True, slots=True)
class Word:
    word: str
    confidence: float = 0.98


@dataclass(frozen=True, slots=True)
class Heard:
    """Something the recogniser says once `after_ms` of audio have come in.

    Attributes:
        kind: Nova: "interim" or "final". Flux: "StartOfTurn", "Update", "EagerEndOfTurn", "TurnResumed" or
            "EndOfTurn".
    """

    after_ms: int
    kind: str
    words: tuple[Word, ...]

    @property
    def transcript(self) -> str:
        return " ".join(word.word for word in self.words)


@dataclass(slots=True)
class Connection:
    """One WebSocket as the server saw it."""

    query: dict[str, list[str]]
    messages: list[dict[str, Any]] = field(default_factory=list)
    """The client's control messages, in order."""
    audio_bytes: int = 0


class DeepgramServer(LocalServer):
    """Args:
    script: What is heard, in order of `after_ms`, on each connection anew.
    on_finalize: What Nova still knew when the client asks for the final words; sent once.
    configurable: Whether Nova takes new key terms on the open connection; older models do not.
    hangs_up_after_ms: Drop the connection after so much audio.
    speech_ttfb_ms: Aura: to the first sound.
    """

    def __init__(
        self,
        script: Sequence[Heard] = (),
        *,
        on_finalize: tuple[Word, ...] = (),
        configurable: bool = True,
        hangs_up_after_ms: int | None = None,
        speech_ttfb_ms: float = 0,
        key: str | None = None,
        refuse_with: int | None = None,
    ) -> None:
        super().__init__(key=key, refuse_with=refuse_with)
        self.script = script
        self.on_finalize = on_finalize
        self.configurable = configurable
        self.hangs_up_after_ms = hangs_up_after_ms
        self.speech_ttfb_ms = speech_ttfb_ms
        self.connections: list[Connection] = []

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/listen", self._nova),
            web.get("/v2/listen", self._flux),
            web.get("/v1/speak", self._aura),
        ]

    async def _nova(self, request: web.Request) -> web.StreamResponse:
        return await self._listen(request, _NovaWords(self))

    async def _flux(self, request: web.Request) -> web.StreamResponse:
        return await self._listen(request, _FluxWords())

    async def _listen(self, request: web.Request, words: _NovaWords | _FluxWords) -> web.StreamResponse:
        if (status := self.refusal(request)) is not None:
            return _refused(status)
        connection = self._opened(request)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        for greeting in words.greeting():
            await socket.send_json(greeting)
        to_come = list(self.script)
        bytes_per_ms = int(connection.query.get("sample_rate", ["16000"])[0]) * 2 / 1_000
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                connection.audio_bytes += len(message.data)
                heard_ms = connection.audio_bytes / bytes_per_ms
                while to_come and to_come[0].after_ms <= heard_ms:
                    await socket.send_json(words.event(to_come.pop(0)))
                if self.hangs_up_after_ms is not None and heard_ms >= self.hangs_up_after_ms:
                    hang_up(request)
                    return socket
            elif message.type is WSMsgType.TEXT:
                control = json.loads(message.data)
                connection.messages.append(control)
                self.noted()
                if control["type"] == "CloseStream":
                    break
                for answer in words.answers(control):
                    await socket.send_json(answer)
        await socket.close()
        return socket

    async def _aura(self, request: web.Request) -> web.StreamResponse:
        if (status := self.refusal(request)) is not None:
            return _refused(status)
        connection = self._opened(request)
        rate_hz = int(connection.query.get("sample_rate", ["24000"])[0])
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        sequence = 0
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            control = json.loads(message.data)
            connection.messages.append(control)
            if control["type"] == "Close":
                break
            if control["type"] == "Speak":
                await wait_ms(self.speech_ttfb_ms)
                await socket.send_bytes(tone(control["text"].strip(), rate_hz=rate_hz))
            elif control["type"] in ("Flush", "Clear"):
                done = {"Flush": "Flushed", "Clear": "Cleared"}[control["type"]]
                await socket.send_json({"type": done, "sequence_id": sequence})
                sequence += 1
        await socket.close()
        return socket

    def _opened(self, request: web.Request) -> Connection:
        connection = Connection({key: request.query.getall(key) for key in request.query})
        self.connections.append(connection)
        self.noted()
        return connection


class _NovaWords:
    def __init__(self, server: DeepgramServer) -> None:
        self._finalize = server.on_finalize
        self._configurable = server.configurable

    def greeting(self) -> list[dict[str, Any]]:
        return []

    def event(self, heard: Heard) -> dict[str, Any]:
        return _results(heard.words, is_final=heard.kind == "final", from_finalize=False)

    def answers(self, control: dict[str, Any]) -> list[dict[str, Any]]:
        if control["type"] == "Finalize":
            words, self._finalize = self._finalize, ()
            return [_results(words, is_final=True, from_finalize=True)]
        if control["type"] == "Configure":
            if not self._configurable:
                return [_configure_failure("CONFIGURE_KEYTERMS_NOT_SUPPORTED", "this model takes no new keyterms")]
            if _too_many(control.get("keyterms") or []):
                return [_configure_failure("CONFIGURE_KEYTERM_LIMIT_EXCEEDED", f"more than {KEYTERM_TOKENS} tokens")]
            return [{"type": "ConfigureSuccess", "request_id": "r1", "keyterms": control.get("keyterms")}]
        return []


def _configure_failure(code: str, description: str) -> dict[str, Any]:
    return {"type": "ConfigureFailure", "request_id": "r1", "code": code, "description": description}


class _FluxWords:
    def __init__(self) -> None:
        self._turn = 0
        self._sequence = 0
        self._open: Heard | None = None

    def greeting(self) -> list[dict[str, Any]]:
        return [{"type": "Connected", "request_id": "r1", "sequence_id": 0}]

    def event(self, heard: Heard, *, trigger: str = "model") -> dict[str, Any]:
        self._sequence += 1
        turn = self._turn
        self._open = heard
        if heard.kind == "EndOfTurn":
            self._turn += 1
            self._open = None
        return {
            "type": "TurnInfo",
            "request_id": "r1",
            "sequence_id": self._sequence,
            "event": heard.kind,
            "turn_index": turn,
            "audio_window_start": 0.0,
            "audio_window_end": heard.after_ms / 1_000,
            "transcript": heard.transcript,
            "words": [{"word": word.word, "confidence": word.confidence} for word in heard.words],
            "end_of_turn_confidence": {"EagerEndOfTurn": 0.6, "EndOfTurn": 0.9}.get(heard.kind, 0.1),
            **({"trigger": trigger} if heard.kind == "EndOfTurn" else {}),
        }

    def answers(self, control: dict[str, Any]) -> list[dict[str, Any]]:
        if control["type"] == "ForceEndTurn" and self._open is not None:
            return [self.event(replace(self._open, kind="EndOfTurn"), trigger="manual")]
        if control["type"] != "Configure":
            return []
        if _too_many(control.get("keyterms") or []):
            description = f"more than {KEYTERM_TOKENS} tokens of keyterms"
            return [{"type": "ConfigureFailure", "request_id": "r1", "error_code": "LIMIT", "description": description}]
        return [{**control, "type": "ConfigureSuccess", "request_id": "r1"}]


def _too_many(keyterms: Sequence[str]) -> bool:
    # The real count is not published; a word is at least one token.
    return sum(len(term.split()) for term in keyterms) > KEYTERM_TOKENS


def _results(words: tuple[Word, ...], *, is_final: bool, from_finalize: bool) -> dict[str, Any]:
    transcript = " ".join(word.word for word in words)
    alternative = {
        "transcript": transcript,
        "confidence": min((word.confidence for word in words), default=0.0),
        "words": [
            {
                "word": word.word.casefold(),
                "punctuated_word": word.word,
                "start": 0.2 * n,
                "end": 0.2 * n + 0.2,
                "confidence": word.confidence,
            }
            for n, word in enumerate(words)
        ],
    }
    return {
        "type": "Results",
        "channel_index": [0, 1],
        "duration": 0.2 * len(words),
        "start": 0.0,
        "is_final": is_final,
        "speech_final": is_final,
        "from_finalize": from_finalize,
        "channel": {"alternatives": [alternative]},
        "metadata": {
            "request_id": "r1",
            "model_info": {"name": "nova-3-general", "version": "1", "arch": "nova-3"},
            "model_uuid": "m1",
        },
    }


def _refused(status: int) -> web.Response:
    code, message = {
        401: ("INVALID_AUTH", "Invalid credentials."),
        429: ("TOO_MANY_REQUESTS", "Too many requests. Please try again later."),
    }.get(status, ("INTERNAL_SERVER_ERROR", "An internal server error occurred."))
    return web.json_response({"err_code": code, "err_msg": message, "request_id": "r1"}, status=status)
