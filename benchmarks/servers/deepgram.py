"""Speak Deepgram's WebSocket protocols: Nova (`/v1/listen`), Flux (`/v2/listen`) and Aura (`/v1/speak`).

The server cannot recognise speech. Its transcripts are scripted: it counts the audio it gets, so that a script's events
come at the same place of the stream in every run. Or it knows voices: audio whose samples all have one value is one
word, so lost or repeated audio is missing from, or repeated in, the transcript.

Key terms work: a connection without the key term of a word gets the word's wrong form.
"""

from __future__ import annotations

import asyncio
import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from aiohttp import WSMsgType, web

from benchmarks.servers.local import LocalServer, hang_up, tone, wait_ms

KEYTERM_TOKENS = 500


@dataclass(frozen=True, slots=True)
class Word:
    """`unexpected`: the wrong form for a connection that has no key term for the word (without its punctuation)."""

    word: str
    confidence: float = 0.98
    unexpected: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of the recogniser after `after_ms` of audio.

    Attributes:
        kind: Nova: "interim" or "final". Flux: "StartOfTurn", "Update", "EagerEndOfTurn", "TurnResumed" or "EndOfTurn".
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
    keyterms: list[str] = field(default_factory=list)
    """The present ones."""
    bytes_per_ms: int = 32

    @property
    def heard_ms(self) -> int:
        return self.audio_bytes // self.bytes_per_ms

    def spelled(self, word: Word) -> Word:
        if not word.unexpected or word.word.strip(".,!?") in self.keyterms:
            return word
        return replace(word, word=word.unexpected)


OnConfigure = Literal["taken", "refused", "ignored", "hangs_up"]


@dataclass(frozen=True, slots=True)
class Close:
    """A closing handshake."""

    code: int
    reason: str = ""


Wire = dict[str, Any] | str | bytes | Close
OnWire = Callable[[Connection, dict[str, Any]], Iterable[Wire]]
"""Returns what really goes over the wire, instead of a message."""


class DeepgramServer(LocalServer):
    """A scripted server.

    Args:
        script: The messages of each connection, in order of `after_ms`.
        on_finalize: The words that Nova still holds when the client asks for the final ones; sent once.
        voices: The word for samples of each value.
        on_configure: Nova's reaction to new key terms on the open connection. Older models refuse them; an endpoint
            that does not know the message does one of the others.
        max_keyterms: A connection with more is refused with HTTP 400, a Configure with more fails.
        hangs_up_after_ms: Drop the first connection after this much audio.
        stops_reading_after_ms: Keep the first connection open after this much audio, and read nothing more from it.
        tells_positions: False: every transcript claims to start where the connection did, as servers do that only speak
            the protocol.
        speech_ttfb_ms: Aura: to the first sound.
        on_wire: Spoils each message of Nova and Flux.
    """

    def __init__(  # noqa: PLR0913 - what a provider may do, each by itself
        self,
        script: Sequence[Heard] = (),
        *,
        on_finalize: tuple[Word, ...] = (),
        voices: Mapping[int, Word] | None = None,
        on_configure: OnConfigure = "taken",
        max_keyterms: int = KEYTERM_TOKENS,
        hangs_up_after_ms: int | None = None,
        stops_reading_after_ms: int | None = None,
        tells_positions: bool = True,
        speech_ttfb_ms: float = 0,
        on_wire: OnWire = lambda _, message: [message],
        key: str | None = None,
        refuse_with: int | None = None,
    ) -> None:
        super().__init__(key=key, refuse_with=refuse_with)
        self.script = script
        self.on_finalize = on_finalize
        self.voices = voices or {}
        self.on_configure = on_configure
        self.max_keyterms = max_keyterms
        self.hangs_up_after_ms = hangs_up_after_ms
        self.stops_reading_after_ms = stops_reading_after_ms
        self.tells_positions = tells_positions
        self.speech_ttfb_ms = speech_ttfb_ms
        self.on_wire = on_wire
        self.finals_may_go = asyncio.Event()
        """While it is not set, a connection that was asked for the final words waits."""
        self.finals_may_go.set()
        self.connections: list[Connection] = []
        self.refused: list[list[str]] = []
        """The key terms of each connection that had too many."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/listen", self._nova),
            web.get("/v2/listen", self._flux),
            web.get("/v1/speak", self._aura),
        ]

    async def _nova(self, request: web.Request) -> web.StreamResponse:
        return await self._listen(request, _NovaWords)

    async def _flux(self, request: web.Request) -> web.StreamResponse:
        return await self._listen(request, _FluxWords)

    def too_many(self, keyterms: Sequence[str]) -> bool:
        # The real count of tokens is not published; a word is at least one.
        n_tokens = sum(len(term.split()) for term in keyterms)
        return len(keyterms) > self.max_keyterms or n_tokens > KEYTERM_TOKENS

    async def _listen(self, request: web.Request, kind: type[_NovaWords | _FluxWords]) -> web.StreamResponse:
        if (status := self.refusal(request)) is not None:
            return _refused(status)
        if self.too_many(keyterms := request.query.getall("keyterm", [])):
            self.refused.append(keyterms)
            self.noted()
            return _refused(400)
        connection = self._opened(request)
        words = kind(self, connection)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        for greeting in words.greeting():
            await self._send(socket, connection, greeting)
        to_come = list(self.script)
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                connection.audio_bytes += len(message.data)
                while to_come and to_come[0].after_ms <= connection.heard_ms:
                    await self._send(socket, connection, words.event(to_come.pop(0)))
                for event in words.hear(message.data):
                    await self._send(socket, connection, event)
                self.noted()
                is_first = connection is self.connections[0]
                if is_first and self.hangs_up_after_ms is not None and connection.heard_ms >= self.hangs_up_after_ms:
                    hang_up(request)
                    return socket
                stops_ms = self.stops_reading_after_ms
                if is_first and stops_ms is not None and connection.heard_ms >= stops_ms:
                    await asyncio.Event().wait()
            elif message.type is WSMsgType.TEXT:
                control = json.loads(message.data)
                connection.messages.append(control)
                answers = words.answers(control)
                self.noted()
                if control["type"] == "CloseStream":
                    break
                if control["type"] == "Configure" and self.on_configure == "hangs_up":
                    hang_up(request)
                    return socket
                if control["type"] in ("Finalize", "ForceEndTurn"):
                    await self.finals_may_go.wait()
                for answer in answers:
                    await self._send(socket, connection, answer)
        await socket.close()
        return socket

    async def _send(self, socket: web.WebSocketResponse, connection: Connection, message: dict[str, Any]) -> None:
        for wire in self.on_wire(connection, message):
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
        connection.keyterms = connection.query.get("keyterm", [])
        connection.bytes_per_ms = int(connection.query.get("sample_rate", ["16000"])[0]) * 2 // 1_000
        self.connections.append(connection)
        self.noted()
        return connection


class _Voices:
    """Recognises the words of known voices, each when it is over."""

    def __init__(self, server: DeepgramServer, connection: Connection) -> None:
        self._voices = server.voices
        self._connection = connection
        self._voice = 0
        self.words: list[Word] = []

    def hear(self, pcm: bytes) -> bool:
        """Return whether a word was recognised."""
        before = len(self.words)
        for voice in array("h", pcm):
            if voice != self._voice:
                self.end_word()
                self._voice = voice
        return len(self.words) > before

    def end_word(self) -> None:
        if self._voice in self._voices:
            self.words.append(self._connection.spelled(self._voices[self._voice]))
        self._voice = 0


class _NovaWords:
    def __init__(self, server: DeepgramServer, connection: Connection) -> None:
        self._finalize = server.on_finalize
        self._server = server
        self._connection = connection
        self._voices = _Voices(server, connection)
        self._final_ms = 0

    def greeting(self) -> list[dict[str, Any]]:
        return []

    def event(self, heard: Heard) -> dict[str, Any]:
        return self._results(heard.words, is_final=heard.kind == "final", from_finalize=False)

    def hear(self, pcm: bytes) -> list[dict[str, Any]]:
        if not self._voices.hear(pcm):
            return []
        return [self._results(tuple(self._voices.words), is_final=False, from_finalize=False)]

    def answers(self, control: dict[str, Any]) -> list[dict[str, Any]]:
        if control["type"] == "Finalize":
            words, self._finalize = self._finalize, ()
            self._voices.end_word()
            words, self._voices.words = (*words, *self._voices.words), []
            return [self._results(words, is_final=True, from_finalize=True)]
        if control["type"] == "Configure":
            return self._configured(control.get("keyterms") or [])
        return []

    def _configured(self, keyterms: list[str]) -> list[dict[str, Any]]:
        if self._server.on_configure == "ignored":
            return []
        if self._server.on_configure == "refused":
            return [_configure_failure("CONFIGURE_KEYTERMS_NOT_SUPPORTED", "this model takes no new keyterms")]
        if self._server.too_many(keyterms):
            return [_configure_failure("CONFIGURE_KEYTERM_LIMIT_EXCEEDED", f"more than {KEYTERM_TOKENS} tokens")]
        self._connection.keyterms = keyterms
        return [{"type": "ConfigureSuccess", "request_id": "r1", "keyterms": keyterms}]

    def _results(self, words: tuple[Word, ...], *, is_final: bool, from_finalize: bool) -> dict[str, Any]:
        spelled = tuple(map(self._connection.spelled, words))
        from_ms, to_ms = self._final_ms, self._connection.heard_ms
        if is_final:
            self._final_ms = to_ms
        if not self._server.tells_positions:
            from_ms, to_ms = 0, to_ms - from_ms
        return results(spelled, is_final=is_final, from_finalize=from_finalize, heard_ms=(from_ms, to_ms))


def _configure_failure(code: str, description: str) -> dict[str, Any]:
    return {"type": "ConfigureFailure", "request_id": "r1", "code": code, "description": description}


class _FluxWords:
    def __init__(self, server: DeepgramServer, connection: Connection) -> None:
        self._server = server
        self._connection = connection
        self._voices = _Voices(server, connection)
        self._turn = 0
        self._turn_from_ms = 0
        self._sequence = 0
        self._open: Heard | None = None

    def greeting(self) -> list[dict[str, Any]]:
        return [{"type": "Connected", "request_id": "r1", "sequence_id": 0}]

    def hear(self, pcm: bytes) -> list[dict[str, Any]]:
        if not self._voices.hear(pcm):
            return []
        kind = "StartOfTurn" if self._open is None else "Update"
        return [self.event(Heard(self._connection.heard_ms, kind, tuple(self._voices.words)))]

    def event(self, heard: Heard, *, trigger: str = "model") -> dict[str, Any]:
        heard = replace(heard, words=tuple(map(self._connection.spelled, heard.words)))
        self._sequence += 1
        turn, from_ms, to_ms = self._turn, self._turn_from_ms, heard.after_ms
        self._open = heard
        if heard.kind == "EndOfTurn":
            self._turn += 1
            self._turn_from_ms = to_ms
            self._open = None
        if not self._server.tells_positions:
            from_ms, to_ms = 0, to_ms - from_ms
        return {
            "type": "TurnInfo",
            "request_id": "r1",
            "sequence_id": self._sequence,
            "event": heard.kind,
            "turn_index": turn,
            "audio_window_start": from_ms / 1_000,
            "audio_window_end": to_ms / 1_000,
            "transcript": heard.transcript,
            "words": [{"word": word.word, "confidence": word.confidence} for word in heard.words],
            "end_of_turn_confidence": {"EagerEndOfTurn": 0.6, "EndOfTurn": 0.9}.get(heard.kind, 0.1),
            **({"trigger": trigger} if heard.kind == "EndOfTurn" else {}),
        }

    def answers(self, control: dict[str, Any]) -> list[dict[str, Any]]:
        if control["type"] == "ForceEndTurn" and self._open is not None:
            if self._server.voices:
                self._voices.end_word()
                self._open = Heard(self._connection.heard_ms, "Update", tuple(self._voices.words))
                self._voices.words = []
            return [self.event(replace(self._open, kind="EndOfTurn"), trigger="manual")]
        if control["type"] != "Configure":
            return []
        if self._server.too_many(control.get("keyterms") or []):
            description = f"more than {KEYTERM_TOKENS} tokens of keyterms"
            return [{"type": "ConfigureFailure", "request_id": "r1", "error_code": "LIMIT", "description": description}]
        self._connection.keyterms = control.get("keyterms", self._connection.keyterms)
        return [{**control, "type": "ConfigureSuccess", "request_id": "r1"}]


def results(
    words: tuple[Word, ...], *, is_final: bool, from_finalize: bool, heard_ms: tuple[int, int], spoken_ms: int = 0
) -> dict[str, Any]:
    """Return a message of Nova's. Times count from the opening of the connection.

    Args:
        heard_ms: Where the audio starts and ends.
        spoken_ms: When the first word starts; each takes 200 ms.
    """
    from_ms, to_ms = heard_ms
    transcript = " ".join(word.word for word in words)
    alternative = {
        "transcript": transcript,
        "confidence": min((word.confidence for word in words), default=0.0),
        "words": [
            {
                "word": word.word.casefold(),
                "punctuated_word": word.word,
                "start": spoken_ms / 1_000 + 0.2 * n,
                "end": spoken_ms / 1_000 + 0.2 * n + 0.2,
                "confidence": word.confidence,
            }
            for n, word in enumerate(words)
        ],
    }
    return {
        "type": "Results",
        "channel_index": [0, 1],
        "duration": (to_ms - from_ms) / 1_000,
        "start": from_ms / 1_000,
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
        400: (
            "Bad Request",
            f"Keyterm limit exceeded. The maximum number of tokens across all keyterms is {KEYTERM_TOKENS}.",
        ),
        401: ("INVALID_AUTH", "Invalid credentials."),
        429: ("TOO_MANY_REQUESTS", "Too many requests. Please try again later."),
    }.get(status, ("INTERNAL_SERVER_ERROR", "An internal server error occurred."))
    return web.json_response({"err_code": code, "err_msg": message, "request_id": "r1"}, status=status)
