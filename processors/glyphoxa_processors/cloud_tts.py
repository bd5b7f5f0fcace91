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

import asyncio
import base64
import json
import uuid
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Protocol
from urllib.parse import urlencode

from loguru import logger
from openai import AsyncOpenAI, OpenAIError
from pipecat.frames.frames import ErrorFrame, Frame, TTSAudioRawFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessorSetup
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TTSService
from websockets.asyncio.client import ClientConnection
from websockets.protocol import State

from glyphoxa.chat.client import ConnectionWarmer, kept_open
from glyphoxa.chat.dialect import Connection
from glyphoxa.npc.table import OUTPUT_RATE_HZ
from glyphoxa_processors.frames import PrimeFrame
from glyphoxa_processors.sockets import FAULTS, fault_of, is_refusal, reason_in, socket_to, socket_url


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


class VoiceFailed(Exception):
    """A clause cannot be spoken. The message is for the DM."""


class StreamedVoice(TTSService):
    """A voice that returns the sound of one clause at a time, as a stream: mono s16le at `OUTPUT_RATE_HZ`."""

    def __init__(self, *, model: str, voice: str, push_text_frames: bool = True) -> None:
        super().__init__(
            push_start_frame=True,
            push_stop_frames=True,
            push_text_frames=push_text_frames,
            # A clause without sound does not mean that the service died.
            max_consecutive_zero_audio_contexts=0,
            sample_rate=OUTPUT_RATE_HZ,
            settings=TTSSettings(model=model, voice=voice, language=None),
        )

    def can_generate_metrics(self) -> bool:
        return True

    @abstractmethod
    def spoken(self, text: str) -> AsyncGenerator[bytes, None]:
        """Yield the sound of a clause, of any length each.

        Raises:
            VoiceFailed: The provider refuses it or fails.
        """

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        rest, has_sound = b"", False
        try:
            async with aclosing(self.spoken(text)) as parts:
                async for part in parts:
                    sound = rest + part if rest else part
                    rest = sound[len(sound) & ~1 :]  # half a sample
                    if len(sound) < 2:
                        continue
                    has_sound = True
                    await self.stop_ttfb_metrics()
                    yield TTSAudioRawFrame(sound[: len(sound) & ~1], self.sample_rate, 1, context_id=context_id)
                    await asyncio.sleep(0)  # let the player run first
        except VoiceFailed as error:
            # Without an exception: for some kinds of it, pipecat would never use the voice again.
            yield ErrorFrame(error=f"the voice failed: {error}")
        if not has_sound:
            # Otherwise pipecat would delay it and the next clause by three seconds.
            await self.remove_audio_context(context_id)


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


class VoiceWire(Protocol):
    """The protocol of one connection to a provider's voice."""

    name: str
    url: str
    headers: dict[str, str]

    def request(self, text: str, clause: str) -> list[str]:
        """Return the messages that request a clause. `clause`: a unique id."""
        ...

    def read(self, message: str | bytes, clause: str) -> tuple[bytes, bool]:
        """Return the sound in a message, and whether the clause is complete.

        Raises:
            VoiceFailed: The provider reports an error.
            ValueError, TypeError, LookupError: The message cannot be read.
        """
        ...


class SocketVoice(StreamedVoice):
    """See the rules of this module."""

    def __init__(self, new_wire: Callable[[], VoiceWire], *, voice: str) -> None:
        wire = new_wire()
        super().__init__(model=wire.name, voice=voice)
        self._new_wire = new_wire
        self._idle: tuple[VoiceWire, ClientConnection] | None = None
        """The open connection, while no clause uses it."""
        self._opening: asyncio.Task[None] | None = None
        self._may_open = False

    async def setup(self, setup: FrameProcessorSetup) -> None:  # type: ignore[override]  # pipecat's own narrowing
        await super().setup(setup)
        self._may_open = True
        self._open_in_advance()

    async def cleanup(self) -> None:
        self._may_open = False
        if self._opening is not None:
            await self.cancel_task(self._opening)
        if self._idle is not None:
            await self._idle[1].close()
        await super().cleanup()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        if isinstance(frame, PrimeFrame):
            self._open_in_advance()
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
        wire, socket = await self._connected()
        clause = uuid.uuid4().hex
        is_done = False
        try:
            for message in wire.request(text, clause):
                await socket.send(message)
            while not is_done:
                async with asyncio.timeout(STALLED_AFTER_S):
                    answer = await socket.recv()
                try:
                    sound, is_done = wire.read(answer, clause)
                except (ValueError, TypeError, LookupError, AttributeError) as error:
                    logger.warning("{}: skips a message that it cannot read: {}", self.name, type(error).__name__)
                    continue
                skipped, skip = sound[:skip], max(0, skip - len(sound))
                if len(sound) > len(skipped):
                    yield sound[len(skipped) :]
            self._idle = wire, socket
        finally:
            if not is_done:
                socket.transport.abort()
                self._open_in_advance()

    async def _connected(self) -> tuple[VoiceWire, ClientConnection]:
        if self._opening is not None:
            await asyncio.wait({self._opening})
        idle, self._idle = self._idle, None
        if idle is not None and idle[1].state is State.OPEN:
            return idle
        wire = self._new_wire()
        return wire, await socket_to(wire.url, wire.headers)

    def _open_in_advance(self) -> None:
        is_there = self._idle is not None and self._idle[1].state is State.OPEN
        if self._may_open and not is_there and (self._opening is None or self._opening.done()):
            self._opening = self.create_task(self._open(), "connection")

    async def _open(self) -> None:
        wire = self._new_wire()
        try:
            self._idle = wire, await socket_to(wire.url, wire.headers)
        except FAULTS as error:
            # The clause itself will report it.
            logger.debug("{}: no connection in advance: {}", self.name, type(error).__name__)


class AuraWire:
    """Deepgram's voice. Its sound does not say to which text it belongs."""

    def __init__(self, connection: Connection, voice: str) -> None:
        self.name = voice
        query = {"model": voice, "encoding": "linear16", "sample_rate": OUTPUT_RATE_HZ, "mip_opt_out": "true"}
        self.url = f"{socket_url(connection.base_url or 'wss://api.deepgram.com')}/v1/speak?{urlencode(query)}"
        self.headers = {"Authorization": f"Token {connection.key}"}
        self._sequence = -1

    def request(self, text: str, clause: str) -> list[str]:
        return [json.dumps({"type": "Speak", "text": text}), json.dumps({"type": "Flush"})]

    def read(self, message: str | bytes, clause: str) -> tuple[bytes, bool]:
        if isinstance(message, bytes):
            return message, False
        told = _an_object(message)
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

    def request(self, text: str, clause: str) -> list[str]:
        parts: list[dict[str, Any]] = [{"text": " "}, {"text": f"{text} ", "flush": True}, {"close_context": True}]
        return [json.dumps({**part, "context_id": clause}) for part in parts]

    def read(self, message: str | bytes, clause: str) -> tuple[bytes, bool]:
        told = _an_object(message)
        if told.get("error"):
            raise VoiceFailed(reason_in(told))
        if told.get("contextId", clause) != clause:
            return b"", False
        return _decoded(told.get("audio")), told.get("isFinal") is True


class CartesiaWire:
    """Cartesia. Each clause is a context of its own."""

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

    def request(self, text: str, clause: str) -> list[str]:
        return [json.dumps({**self._fixed, "transcript": text, "context_id": clause})]

    def read(self, message: str | bytes, clause: str) -> tuple[bytes, bool]:
        told = _an_object(message)
        if told.get("context_id", clause) != clause:
            return b"", False
        kind = told.get("type")
        if kind == "error":
            raise VoiceFailed(reason_in(told) or "the server reports an error")
        return _decoded(told.get("data")) if kind == "chunk" else b"", kind == "done"


def _an_object(message: str | bytes) -> dict[str, Any]:
    told = json.loads(message)
    if not isinstance(told, dict):
        raise TypeError("not an object")
    return told


def _decoded(sound: str | None) -> bytes:
    return base64.b64decode(sound, validate=True) if sound else b""
