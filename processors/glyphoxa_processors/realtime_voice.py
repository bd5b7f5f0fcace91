"""OpenAI Realtime as a mouth's model and voice in one."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from openai import AsyncOpenAI, OpenAIError
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from pipecat.frames.frames import Frame, InterruptionFrame, LLMContextFrame, SystemFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor, FrameProcessorSetup
from websockets.exceptions import WebSocketException

from glyphoxa.context.prompt import Message
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn import Stage, Unsaid
from glyphoxa.judgement.reply import Asked
from glyphoxa.npc.mouth import SentenceRejected
from glyphoxa.npc.realtime_talk import ClientEvent, RealtimeTalk
from glyphoxa.npc.toolbox import CallableTools
from glyphoxa_processors.frames import (
    FillerFrame,
    PieceFrame,
    PrimeFrame,
    ReplyBeginsFrame,
)
from glyphoxa_processors.realtime_pieces import SESSION_RATE_HZ, Pieces
from glyphoxa_processors.reports import MouthReports
from glyphoxa_processors.spoken_text import NewCheck, Splitter

_OPEN_WITHIN_S = 5.0
_SETTLED_WITHIN_S = 3.0
_MAX_TOOL_ROUNDS = 2

_HARMLESS = frozenset({"response_cancel_not_active", "item_truncate_invalid_item_id", "item_delete_invalid_item_id"})
"""Errors of a cancel that crossed the end of what it cancelled."""


@dataclass
class HeardFrame(SystemFrame):
    """How much of the latest reply was heard, once that is known: before the next question is asked."""

    text: str
    audio_ms: int


class RealtimeSession(Protocol):
    """Where a connection leads: address, model, voice and key."""

    @property
    def model(self) -> str: ...

    @property
    def voice(self) -> str: ...

    def client(self) -> AsyncOpenAI: ...


class RealtimeVoice(FrameProcessor):
    """Takes a context, gives words and sound in pieces, as a language model and a voice behind it would.

    One connection, opened at the start and again by the first turn that finds it closed (a server closes it after an
    hour at the latest). All frames of a turn come from one task, which an interruption ends.

    pipecat's own service for this protocol is not used: it takes only its first context, does not reconnect, and
    a reconnected session knows nothing.

    Args:
        tools: Declared to the session and performed here, by the NPC's tier.
        new_check: The sentence check of one reply. A clause that it withholds is neither said nor in the reply.
    """

    def __init__(
        self,
        session: RealtimeSession,
        reports: MouthReports,
        *,
        tools: CallableTools | None,
        new_splitter: Callable[[], Splitter],
        new_check: NewCheck,
    ) -> None:
        super().__init__(name=f"realtime-{reports.npc}")
        self._reports = reports
        self._session = session
        self._tools = tools
        self._new_splitter = new_splitter
        self._new_check = new_check
        self._asked = Asked()
        self._client = session.client()
        self._connection: AsyncRealtimeConnection | None = None
        self._talk = RealtimeTalk(_new_id)
        self._receiving: asyncio.Task[None] | None = None
        self._answering: asyncio.Task[None] | None = None
        self._events: asyncio.Queue[Any] = asyncio.Queue()
        self._idle = asyncio.Event()
        self._turn: TurnId | None = None
        self._item_id = ""

    async def setup(self, setup: FrameProcessorSetup) -> None:  # type: ignore[override]  # pipecat's own narrowing
        await super().setup(setup)
        try:
            await self._connected()
        except (OpenAIError, WebSocketException, OSError, TimeoutError) as error:
            # The next turn tries again; the DM should know before that.
            await self.push_error(f"no speech-to-speech session: {_reason(error)}", exception=error)

    async def cleanup(self) -> None:
        await self._stop_answering()
        await self._disconnect()
        await self._client.close()
        await super().cleanup()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case ReplyBeginsFrame(turn=turn, asked=asked):
                self._turn, self._asked = turn, asked
            case LLMContextFrame(context=context) if self._turn is not None:
                await self._stop_answering()
                turn = self._turn
                self._answering = self.create_task(self._answer(turn, _messages(context.get_messages())), "answer")
            case HeardFrame(text=text, audio_ms=audio_ms):
                await self._heard(text, audio_ms)
            case PrimeFrame() | FillerFrame():
                pass  # nothing to warm, and no second voice for a filler
            case InterruptionFrame():
                self._turn = None
                await self._stop_answering()
                await self.push_frame(frame, direction)
            case _:
                await self.push_frame(frame, direction)

    async def _heard(self, text: str, audio_ms: int) -> None:
        # What is still being made cannot be cut to length.
        await self._stop_answering()
        for event in self._talk.heard(self._item_id, text, audio_ms=audio_ms):
            await self._send(event)

    def _reject(self, turn: TurnId, unsaid: Unsaid) -> None:
        self._reports.listener(SentenceRejected(self._reports.npc, turn, unsaid))

    async def _answer(self, turn: TurnId, messages: list[Message]) -> None:
        pieces = Pieces(turn, splitter=self._new_splitter(), decide=self._new_check(self._asked), listen=self._reject)
        try:
            connection = await self._connected()
            for event in self._talk.ask(messages):
                await _tell(connection, event)
            may_call = True
            for n_round in range(_MAX_TOOL_ROUNDS + 1):
                may_call = n_round < _MAX_TOOL_ROUNDS
                calls = await self._respond(connection, turn, pieces, may_call=may_call)
                if not calls:
                    break
                await asyncio.gather(*(self._look_up(connection, call) for call in calls))
        except (OpenAIError, WebSocketException, OSError, TimeoutError, _Failed) as error:
            self._reports.on_failure(turn, f"speech-to-speech: {_reason(error)}")
            await self._disconnect()
        last = pieces.end()
        if pieces.text:
            self._talk.replied(self._item_id, pieces.text)
        for frame in last:
            self._mark_first_sentence(turn, frame, pieces)
            await self.push_frame(frame)

    async def _respond(
        self, connection: AsyncRealtimeConnection, turn: TurnId, pieces: Pieces, *, may_call: bool
    ) -> list[Any]:
        """One response of the session, pushed as it comes. Returns the tools it wants to call."""
        async with asyncio.timeout(_SETTLED_WITHIN_S):
            await self._idle.wait()
        while not self._events.empty():
            self._events.get_nowait()
        self._idle.clear()
        has_words = pieces.has_words
        choice = "auto" if may_call and self._tools is not None else "none"
        await _tell(connection, {"type": "response.create", "response": {"tool_choice": choice}})
        while True:
            event = await self._events.get()
            if isinstance(event, Exception):
                raise event
            match event.type:
                case "response.output_item.added":
                    self._talk.noted(event.item.id)
                    if event.item.type == "message":
                        self._item_id = event.item.id
                case "response.output_audio_transcript.delta":
                    pieces.take_words(event.delta)
                case "response.output_audio.delta":
                    for frame in pieces.take_sound(base64.b64decode(event.delta)):
                        self._mark_first_sentence(turn, frame, pieces)
                        await self.push_frame(frame)
                case "response.done":
                    if event.response.status in ("failed", "incomplete"):
                        raise _Failed(_why(event.response))
                    return [item for item in event.response.output or [] if item.type == "function_call"]
                case _:
                    pass
            if pieces.has_words and not has_words:
                has_words = True
                self._reports.mark(turn, Stage.FIRST_TOKEN)

    def _mark_first_sentence(self, turn: TurnId, frame: Frame, pieces: Pieces) -> None:
        if isinstance(frame, PieceFrame) and pieces.n_begun == 1:
            self._reports.mark(turn, Stage.FIRST_SENTENCE)

    async def _look_up(self, connection: AsyncRealtimeConnection, call: Any) -> None:
        try:
            arguments = json.loads(call.arguments or "{}")
        except json.JSONDecodeError:
            arguments = None
        if self._tools is None or not isinstance(arguments, dict):
            found: Any = {"found": [], "note": "the arguments are not a JSON object"}
        else:
            found = await self._tools.call(call.name, arguments)
        item_id = _new_id()
        self._talk.noted(item_id)
        item = {
            "id": item_id,
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": json.dumps(found, ensure_ascii=False),
        }
        await _tell(connection, {"type": "conversation.item.create", "item": item})

    async def _stop_answering(self) -> None:
        if self._answering is None:
            return
        answering, self._answering = self._answering, None
        if not answering.done():
            await self.cancel_task(answering)
            if not self._idle.is_set():
                await self._send({"type": "response.cancel"})

    async def _send(self, event: ClientEvent) -> None:
        if self._connection is None:
            return
        try:
            await _tell(self._connection, event)
        except (OpenAIError, WebSocketException, OSError):
            await self._disconnect()

    async def _connected(self) -> AsyncRealtimeConnection:
        if self._connection is not None:
            return self._connection
        async with asyncio.timeout(_OPEN_WITHIN_S):
            connection = await self._client.realtime.connect(model=self._session.model).enter()
        self._connection = connection
        # A new session knows nothing: the next question tells it everything.
        self._talk = RealtimeTalk(_new_id)
        self._idle.set()
        self._receiving = self.create_task(self._receive(connection), "receive")
        await _tell(connection, {"type": "session.update", "session": self._configuration()})
        return connection

    def _configuration(self) -> dict[str, Any]:
        declared = self._tools.declared if self._tools is not None else ()
        return {
            "type": "realtime",
            "model": self._session.model,
            "output_modalities": ["audio"],
            # Players are heard by the ears, so nothing is streamed in and nothing is detected there.
            "audio": {
                "input": {"turn_detection": None},
                "output": {"format": {"type": "audio/pcm", "rate": SESSION_RATE_HZ}, "voice": self._session.voice},
            },
            "tools": [
                {
                    "type": "function",
                    "name": spec.wire_name,
                    "description": spec.description,
                    "parameters": {
                        "type": "object",
                        "properties": {name: dict(schema) for name, schema in spec.parameters.items()},
                        "required": list(spec.required),
                    },
                }
                for spec in declared
            ],
            "truncation": "auto",
        }

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        receiving, self._receiving = self._receiving, None
        if receiving is not None and receiving is not asyncio.current_task():
            await self.cancel_task(receiving)
        if connection is not None:
            await connection.close()

    async def _receive(self, connection: AsyncRealtimeConnection) -> None:
        ended: Exception = _Failed("the session was closed by the server")
        try:
            async for event in connection:
                if event.type == "error":
                    if event.error.code in _HARMLESS:
                        continue
                    self._events.put_nowait(_Failed(event.error.message))
                else:
                    self._events.put_nowait(event)
                if event.type == "response.done":
                    self._idle.set()
        except (OpenAIError, WebSocketException, OSError) as error:
            ended = error
        if self._connection is connection:
            self._connection = None
        self._idle.set()
        self._events.put_nowait(ended)


async def _tell(connection: AsyncRealtimeConnection, event: ClientEvent) -> None:
    await connection.send(cast("Any", event))  # the SDK types every event of the protocol; ours are plain mappings


class _Failed(Exception):
    """The session cannot give this reply."""


def _messages(messages: list[Any]) -> list[Message]:
    return [Message(message["role"], message["content"]) for message in messages]


def _new_id() -> str:
    return uuid.uuid4().hex


def _why(response: Any) -> str:
    details = response.status_details
    error = getattr(details, "error", None)
    return getattr(error, "message", None) or getattr(details, "reason", None) or f"response {response.status}"


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
