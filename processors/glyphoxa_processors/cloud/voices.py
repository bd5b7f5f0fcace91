"""Cloud voices for a mouth. Each clause arrives as its own `TTSSpeakFrame`.

Rules for the voices over a WebSocket:

- One connection for all clauses of a session, one clause at a time. It is opened in advance: at the start, and when a
  turn begins.
- An interrupted clause costs its connection, so that none of its sound can reach the next reply.
- A connection that is lost, or sends nothing for a while, within a clause: the clause is requested again on a new one,
  and what was said of it is skipped.
- An error of the provider, or a second loss, ends the clause with one error. The next clause starts afresh.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Protocol
from urllib.parse import urlencode

from loguru import logger
from openai import AsyncOpenAI, OpenAIError
from pipecat.frames.frames import Frame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessorSetup
from pipecat.services.tts_service import TTSService

from glyphoxa.chat.client import ConnectionWarmer, kept_open
from glyphoxa.chat.dialect import Connection
from glyphoxa.npc.table_interface import OUTPUT_RATE_HZ
from glyphoxa_processors.frames import PrimeFrame
from glyphoxa_processors.sockets import (
    FAULTS,
    Connections,
    Wire,
    fault_of,
    is_refusal,
    object_in,
    reason_in,
    socket_url,
)
from glyphoxa_processors.streamed_voice import StreamedVoice, VoiceFailed


def openai(connection: Connection, *, voice: str | None = None) -> TTSService:
    return OpenAiVoice(connection, voice=voice or "onyx")


def deepgram(connection: Connection, *, voice: str | None = None) -> TTSService:
    spoken_by = voice or "aura-2-draco-en"  # also the model name
    return SocketVoice(lambda: AuraWire(connection, spoken_by), voice=spoken_by)


def elevenlabs(connection: Connection, *, voice: str | None = None) -> TTSService:
    spoken_by = voice or "JBFqnCBsd6RMkjVDRZzb"
    return SocketVoice(lambda: ElevenLabsWire(connection, spoken_by), voice=spoken_by)


def cartesia(connection: Connection, *, voice: str | None = None) -> TTSService:
    spoken_by = voice or "a0e99841-438c-4a64-b679-ae501e7d6091"
    return SocketVoice(lambda: CartesiaWire(connection, spoken_by), voice=spoken_by)


# OpenAI's voice, played as soon as its first 100 ms are there.


_PIECE_MS = 100
"""The voice is faster than real time, so a short start does not run dry."""


class OpenAiVoice(StreamedVoice):
    """OpenAI's speech over a persistent connection, with an immediate start."""

    def __init__(self, connection: Connection, *, voice: str) -> None:
        super().__init__(model=connection.model, voice=voice)
        http = kept_open()
        # One retry, for a connection that went stale between two turns. More would keep the table waiting.
        self._openai = AsyncOpenAI(
            api_key=connection.key, base_url=connection.base_url, http_client=http, max_retries=1
        )
        self._request = {"model": connection.model, "voice": voice, "response_format": "pcm"}
        self._piece = OUTPUT_RATE_HZ * _PIECE_MS // 1_000 * 2
        self._warmer = ConnectionWarmer(http, str(self._openai.base_url))

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        if isinstance(frame, PrimeFrame):
            if not self._warmer.is_open:
                self.create_task(self._warmer.open(), "connection")
            return
        await super().process_frame(frame, direction)

    async def spoken(self, text: str) -> AsyncGenerator[bytes, None]:
        self._warmer.in_use()
        try:
            async with self._openai.audio.speech.with_streaming_response.create(
                input=text,
                **self._request,  # type: ignore[arg-type]  # its literals
            ) as answer:
                async for piece in answer.iter_bytes(self._piece):
                    yield piece
        except OpenAIError as error:
            raise VoiceFailed(str(error)) from error
        self._warmer.is_free()

    async def cleanup(self) -> None:
        await super().cleanup()
        await self._openai.close()


# Voices over a WebSocket.


STALLED_AFTER_S = 4.0
"""A voice without a message for this long within a clause is lost. Usual is a tenth of it."""


class VoiceWire(Wire, Protocol):
    """The messages of one connection to a provider's voice."""

    def request(self, text: str, clause: str) -> list[str]:
        """Return the messages that request a clause. `clause`: a unique id."""
        ...

    def read(self, message: str | bytes, /) -> tuple[bytes, bool]:
        """Return the sound in a message, and whether the requested clause is complete.

        Raises:
            VoiceFailed: The provider reports an error.
        """
        ...


class SocketVoice(StreamedVoice):
    """See the rules of this module."""

    def __init__(self, new_wire: Callable[[], VoiceWire], *, voice: str) -> None:
        super().__init__(model=new_wire().name, voice=voice)
        self._new_wire = new_wire
        self._sockets = Connections[VoiceWire]()

    async def setup(self, setup: FrameProcessorSetup) -> None:  # type: ignore[override]  # pipecat's own narrowing
        await super().setup(setup)
        self._sockets.prepare(self._new_wire())

    async def cleanup(self) -> None:
        await super().cleanup()
        await self._sockets.close()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        if isinstance(frame, PrimeFrame):
            self._sockets.prepare(self._new_wire())
            return
        await super().process_frame(frame, direction)

    async def spoken(self, text: str) -> AsyncGenerator[bytes, None]:
        n_said = 0
        for is_last in (False, True):
            try:
                async with aclosing(self._clause(text, skip=n_said)) as parts:
                    async for part in parts:
                        n_said += len(part)
                        yield part
                return
            except FAULTS as error:
                if is_last or is_refusal(error):
                    raise VoiceFailed(fault_of(error)) from error
                logger.warning("{}: requests a clause again: {}", self.name, fault_of(error))

    async def _clause(self, text: str, *, skip: int) -> AsyncGenerator[bytes, None]:
        socket = await self._sockets.take(self._new_wire())
        is_done = False
        try:
            await socket.send(*socket.wire.request(text, uuid.uuid4().hex))
            while not is_done:
                sound, is_done = await socket.receive(within_s=STALLED_AFTER_S)
                skipped, skip = sound[:skip], max(0, skip - len(sound))
                if len(sound) > len(skipped):
                    yield sound[len(skipped) :]
        except BaseException:  # including an interruption
            socket.cut()
            self._sockets.prepare(self._new_wire())
            raise
        self._sockets.give_back(socket)


class AuraWire:
    """Deepgram's voice. Its sound does not say to which text it belongs."""

    opening = ""

    def __init__(self, connection: Connection, voice: str) -> None:
        self.name = voice
        query = {"model": voice, "encoding": "linear16", "sample_rate": OUTPUT_RATE_HZ, "mip_opt_out": "true"}
        self.url = f"{socket_url(connection.base_url or 'wss://api.deepgram.com')}/v1/speak?{urlencode(query)}"
        self.headers = {"Authorization": f"Token {connection.key}"}
        self._sequence = -1

    def request(self, text: str, clause: str) -> list[str]:
        return [json.dumps({"type": "Speak", "text": text}), json.dumps({"type": "Flush"})]

    def read(self, message: str | bytes, /) -> tuple[bytes, bool]:
        if isinstance(message, bytes):
            return message, False
        told = object_in(message)
        kind = told.get("type")
        if kind == "Error":
            raise VoiceFailed(reason_in(told) or "the server reports an error")
        if kind == "Warning":
            # Its message may quote the text to be spoken.
            logger.bind(content=message).warning("{}: the voice service reports a warning", self.name)
        if kind != "Flushed":
            return b"", False
        sequence = told.get("sequence_id", self._sequence + 1)
        is_new, self._sequence = sequence > self._sequence, max(sequence, self._sequence)
        return b"", is_new


class ElevenLabsWire:
    """ElevenLabs. Each clause is a context of its own."""

    opening = ""

    def __init__(self, connection: Connection, voice: str) -> None:
        self.name = connection.model
        query = {
            "model_id": connection.model,
            "output_format": f"pcm_{OUTPUT_RATE_HZ}",
            "auto_mode": "true",
            "inactivity_timeout": 180,
        }
        base = socket_url(connection.base_url or "wss://api.elevenlabs.io")
        self.url = f"{base}/v1/text-to-speech/{voice}/multi-stream-input?{urlencode(query)}"
        self.headers = {"xi-api-key": connection.key}
        self._clause = ""

    def request(self, text: str, clause: str) -> list[str]:
        self._clause = clause
        parts: list[dict[str, Any]] = [{"text": " "}, {"text": f"{text} ", "flush": True}, {"close_context": True}]
        return [json.dumps({**part, "context_id": clause}) for part in parts]

    def read(self, message: str | bytes, /) -> tuple[bytes, bool]:
        told = object_in(message)
        if told.get("error"):
            raise VoiceFailed(reason_in(told))
        if told.get("contextId", self._clause) != self._clause:
            return b"", False
        return _decoded(told.get("audio")), told.get("isFinal") is True


class CartesiaWire:
    """Cartesia. Each clause is a context of its own."""

    opening = ""

    def __init__(self, connection: Connection, voice: str) -> None:
        self.name = connection.model
        self.url = socket_url(connection.base_url or "wss://api.cartesia.ai/tts/websocket")
        self.headers = {"X-API-Key": connection.key, "Cartesia-Version": "2026-03-01"}
        self._fixed = {
            "model_id": connection.model,
            "voice": {"mode": "id", "id": voice},
            "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": OUTPUT_RATE_HZ},
            "continue": False,
        }
        self._clause = ""

    def request(self, text: str, clause: str) -> list[str]:
        self._clause = clause
        return [json.dumps({**self._fixed, "transcript": text, "context_id": clause})]

    def read(self, message: str | bytes, /) -> tuple[bytes, bool]:
        told = object_in(message)
        if told.get("context_id", self._clause) != self._clause:
            return b"", False
        kind = told.get("type")
        if kind == "error":
            raise VoiceFailed(reason_in(told) or "the server reports an error")
        return _decoded(told.get("data")) if kind == "chunk" else b"", kind == "done"


def _decoded(sound: str | None) -> bytes:
    return base64.b64decode(sound, validate=True) if sound else b""
