"""A speech-to-speech session with OpenAI's Realtime protocol.

One connection serves many turns. `RealtimeTalk` keeps its conversation equal to the prompt, item by item. Heard replies
stay in it with their sound, which costs tokens. A session that has grown large or old is therefore replaced between
turns by a new one, which gets the same conversation as text.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from loguru import logger
from openai import AsyncOpenAI, OpenAIError

from glyphoxa.actors.clock import loop_ms
from glyphoxa.actors.deadline import done_within, end_tasks
from glyphoxa.chat.dialect import Connection
from glyphoxa.npc.tool_spec import ToolSpec
from glyphoxa.prompt.prompt import Message
from glyphoxa_processors.s2s_session import (
    Call,
    Given,
    SessionFailed,
    SessionLost,
    SpokenSound,
    SpokenWords,
    Warned,
    arguments_of,
    instructions_of,
    message_of,
    pcm_of,
    reason,
    text_of,
    translated,
    value_at,
)
from glyphoxa_processors.s2s_voice import SESSION_RATE_HZ
from glyphoxa_processors.sockets import FAULTS, OPEN_WITHIN_S

if TYPE_CHECKING:
    from openai.resources.realtime.realtime import AsyncRealtimeConnection

_SETTLED_WITHIN_S = 3.0

_HARMLESS = frozenset({"response_cancel_not_active", "item_truncate_invalid_item_id", "item_delete_invalid_item_id"})
"""Errors of a cancellation that arrived after the end of its target."""

_OF_THE_SESSION = frozenset({"session_expired", "conversation_already_has_active_response", "server_error"})
"""Codes and types of errors that another session does not have."""

_CUT = "cut"
"""Event id of a truncation, which concerns no later reply."""


_MAX_TOKENS = 24_000
"""A larger session is replaced between turns: well below its limit of 32,000, because tool calls add thousands."""

_MAX_AGE_MS = 50 * 60_000
"""An older session is replaced between turns: the server closes it after an hour."""


@dataclass(frozen=True, slots=True)
class RealtimeEndpoint:
    """OpenAI, or a compatible service."""

    connection: Connection
    voice: str
    clock: Callable[[], int] = loop_ms

    def session(self, tools: Sequence[ToolSpec], on_ending: Callable[[], None]) -> RealtimeSession:
        return RealtimeSession(self, tools, on_ending)


def endpoint(connection: Connection, *, voice: str | None = None) -> RealtimeEndpoint:
    return RealtimeEndpoint(connection, voice or "cedar")


class RealtimeSession:
    """A `SpeechSession` of the Realtime protocol.

    pipecat's own service does not fit: it takes only its first context, does not reconnect, and a reconnected session
    would know nothing.
    """

    def __init__(self, endpoint: RealtimeEndpoint, tools: Sequence[ToolSpec], on_ending: Callable[[], None]) -> None:
        self._endpoint = endpoint
        self._tools = tools
        self._on_ending = on_ending
        self._client = AsyncOpenAI(api_key=endpoint.connection.key, base_url=endpoint.connection.base_url)
        self._connection: AsyncRealtimeConnection | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._talk = RealtimeTalk(_new_id)
        self._events: asyncio.Queue[Any] = asyncio.Queue()  # server events and SessionFailed
        self._idle = asyncio.Event()
        self._over: set[str] = set()  # ids of ended responses, whose late and repeated events are ignored
        self._is_outdated = False
        self._item_id = ""
        self._n_tokens = 0
        self._opened_ms = 0

    async def open(self) -> None:
        if self._connection is None:
            await self._connect()

    async def expect(self, instructions: str) -> None:
        """Do nothing: instructions are sent with the question."""

    async def ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> None:
        self._tools = tools  # for the next connection; `respond` declares them again
        if self._is_outdated:
            await self._connect()
        await self.open()
        while not self._events.empty():
            self._events.get_nowait()
        for event in self._talk.ask(messages):
            await self._send(event)

    async def respond(self, tools: Sequence[ToolSpec]) -> AsyncIterator[Given]:
        if not await done_within(_SETTLED_WITHIN_S * 1_000, self._idle.wait()):
            raise SessionLost(f"the server did not end a cancelled response within {_SETTLED_WITHIN_S:g} s")
        while not self._events.empty():
            # Events of a cancelled response. An error concerns this question.
            if isinstance(event := self._events.get_nowait(), SessionFailed):
                raise event
        self._idle.clear()
        offered: dict[str, Any] = {"tool_choice": "auto", "tools": _declared(tools)} if tools else {}
        await self._send({"type": "response.create", "response": offered or {"tool_choice": "none"}})
        reply = _Reply()
        while True:
            event = await self._events.get()
            if isinstance(event, SessionLost) or (isinstance(event, SessionFailed) and not reply.has_begun):
                raise event
            if isinstance(event, SessionFailed):
                yield Warned(str(event))
                continue
            if event["type"] == "response.output_item.added":
                self._note(value_at(event, "item", kind=dict))
            for given in reply.take(event):
                yield given
            if event["type"] == "response.done":
                self._n_tokens = value_at(event, "response", "usage", "total_tokens", kind=int) or self._n_tokens
                return

    def _note(self, item: dict[str, Any]) -> None:
        item_id = value_at(item, "id", kind=str)
        self._talk.noted(item_id)
        if item.get("type") == "message":
            self._item_id = item_id

    async def answer(self, answers: Sequence[tuple[Call, Any]]) -> None:
        for call, found in answers:
            item_id = _new_id()
            self._talk.noted(item_id)
            output = json.dumps(found, ensure_ascii=False)
            item = {"id": item_id, "type": "function_call_output", "call_id": call.id, "output": output}
            await self._send({"type": "conversation.item.create", "item": item})

    def replied(self, text: str) -> None:
        self._talk.replied(self._item_id, text)

    async def heard(self, text: str, *, audio_ms: int) -> None:
        for event in self._talk.heard(self._item_id, text, audio_ms=audio_ms):
            await self._send(event)

    async def stop(self) -> None:
        if self._connection is not None and not self._idle.is_set():
            await self._send({"type": "response.cancel"})

    async def renew(self) -> None:
        age_ms = self._endpoint.clock() - self._opened_ms
        is_full = self._n_tokens > _MAX_TOKENS or age_ms > _MAX_AGE_MS
        if self._connection is None or self._is_outdated or is_full:
            await self._connect()

    async def close(self) -> None:
        await self._end(self._connection, self._receiving)
        self._connection = self._receiving = None

    async def _connect(self) -> None:
        """Open a new connection, then close the old one."""
        with translated(OpenAIError):
            async with asyncio.timeout(OPEN_WITHIN_S):
                connection = await self._client.realtime.connect(model=self._endpoint.connection.model).enter()
                await connection.send(cast("Any", {"type": "session.update", "session": self._configuration()}))
        old, receiving = self._connection, self._receiving
        self._connection = connection
        # A new session is empty, so the next question sends everything.
        self._talk = RealtimeTalk(_new_id)
        self._events = asyncio.Queue()
        self._over = set()
        self._is_outdated = False
        self._idle.set()
        self._n_tokens, self._opened_ms = 0, self._endpoint.clock()
        self._receiving = asyncio.create_task(self._receive(connection, self._events), name="receive")
        await self._end(old, receiving)

    def _configuration(self) -> dict[str, Any]:
        return {
            "type": "realtime",
            "model": self._endpoint.connection.model,
            "output_modalities": ["audio"],
            # Ears hear the players, so there is no audio input and no turn detection.
            "audio": {
                "input": {"turn_detection": None},
                "output": {"format": {"type": "audio/pcm", "rate": SESSION_RATE_HZ}, "voice": self._endpoint.voice},
            },
            "tools": _declared(self._tools),
            "truncation": "auto",
        }

    async def _send(self, event: ClientEvent) -> None:
        if self._connection is None:
            raise SessionLost("the server closed the session")
        with translated(OpenAIError):
            # The SDK has a type for each event; these are plain mappings.
            await self._connection.send(cast("Any", event))

    async def _receive(self, connection: AsyncRealtimeConnection, events: asyncio.Queue[Any]) -> None:
        failed: SessionFailed | None = None
        try:
            while True:
                event = message_of(await connection.recv_bytes())
                kind = value_at(event, "type", kind=str)
                response = value_at(event, "response_id", kind=str) or value_at(event, "response", "id", kind=str)
                if not kind or response in self._over:
                    continue
                if kind == "error":
                    if (failure := self._failure(value_at(event, "error", kind=dict))) is not None:
                        failed = failure
                        events.put_nowait(failure)
                    continue
                events.put_nowait(event)
                if kind == "response.done" and self._connection is connection:
                    failed = None
                    if response:
                        self._over.add(response)
                    self._idle.set()
        except (OpenAIError, *FAULTS) as error:
            # A server states its reason in an error event before it closes the connection.
            ended = SessionLost(str(failed) if failed is not None else reason(error))
        if self._connection is connection:
            self._connection = None
            self._idle.set()
            self._on_ending()
        events.put_nowait(ended)

    def _failure(self, error: dict[str, Any]) -> SessionFailed | None:
        """Return what an error event means for the reply; None if nothing."""
        code, kind = value_at(error, "code", kind=str), value_at(error, "type", kind=str)
        if code in _HARMLESS:
            return None
        why = "the server refuses the key" if code == "invalid_api_key" else text_of(error)
        if error.get("event_id") == _CUT:
            logger.warning("a speech-to-speech session is replaced, because it could not be cut: {}", why)
            self._is_outdated = True
            self._on_ending()
            return None
        return SessionLost(why) if {code, kind} & _OF_THE_SESSION else SessionFailed(why)

    async def _end(self, connection: AsyncRealtimeConnection | None, receiving: asyncio.Task[None] | None) -> None:
        if receiving is not None:
            await end_tasks(receiving)
        if connection is not None:
            await connection.close()


def _declared(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {"type": "function", "name": spec.wire_name, "description": spec.description, "parameters": spec.schema}
        for spec in tools
    ]


def _new_id() -> str:
    return uuid.uuid4().hex


class _Reply:
    """Reads the events of one response."""

    def __init__(self) -> None:
        self.has_begun = False
        self._said: dict[str, str] = {}

    def take(self, event: Mapping[str, Any]) -> Iterator[Given]:
        """Yield what an event adds to the reply.

        Raises:
            SessionFailed: The response has ended without being complete.
        """
        self.has_begun = self.has_begun or event["type"].startswith("response.")
        item = value_at(event, "item_id", kind=str)
        match event["type"]:
            case "response.output_audio_transcript.delta":
                delta = value_at(event, "delta", kind=str)
                self._said[item] = self._said.get(item, "") + delta
                yield SpokenWords(delta)
            case "response.output_audio_transcript.done":
                # Some servers send the words at once, and a delta may have been unreadable.
                said, whole = self._said.get(item, ""), value_at(event, "transcript", kind=str)
                if len(whole) > len(said) and whole.startswith(said):
                    yield SpokenWords(whole[len(said) :])
            case "response.output_audio.delta":
                yield SpokenSound(pcm_of(value_at(event, "delta", kind=str)))
            case "response.done":
                yield from self._done(value_at(event, "response", kind=dict))

    def _done(self, response: dict[str, Any]) -> Iterator[Call]:
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


# The conversation of a speech-to-speech session, kept equal to the prompt.
#
# A session holds a conversation of items on the provider's side. Each prompt contains exactly what the NPC may know
# now. The items are made to match: outdated ones are deleted, missing ones created in place, and equal ones kept with
# their sound. So hot context is removed after its turn, a session never outgrows the prompt, and a new connection is
# filled by the same rule.


ClientEvent = Mapping[str, Any]
"""An event of the Realtime protocol."""


_OF_THIS_TURN = Message("system", "")
"""Equals no message of a prompt, so the next question deletes it."""


@dataclass(frozen=True, slots=True)
class _Item:
    id: str
    message: Message


class RealtimeTalk:
    """The conversation of one connection.

    Args:
        new_id: Returns a new item id of at most 32 characters.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._instructions: str | None = None
        self._items: list[_Item] = []

    def ask(self, messages: Sequence[Message]) -> list[ClientEvent]:
        """Return the events that make the session equal these messages. The last one is the question."""
        instructions = instructions_of(messages)
        events: list[ClientEvent] = []
        if instructions != self._instructions:
            self._instructions = instructions
            events.append({"type": "session.update", "session": {"type": "realtime", "instructions": instructions}})
        return events + self._match([message for message in messages if message.role != "system"])

    def noted(self, item_id: str) -> None:
        """Note an item of this turn (a tool call, its result, or a reply in progress)."""
        self._items.append(_Item(item_id, _OF_THIS_TURN))

    def replied(self, item_id: str, text: str) -> None:
        """Note a spoken reply as an item of the session, until it is cut."""
        item = _Item(item_id, Message("assistant", text))
        ids = [known.id for known in self._items]
        if item_id in ids:
            self._items[ids.index(item_id)] = item
        else:
            self._items.append(item)

    def heard(self, item_id: str, text: str, *, audio_ms: int) -> list[ClientEvent]:
        """Replace a reply that was only partly heard, so that the NPC does not believe it said more."""
        item = next((item for item in self._items if item.id == item_id), None)
        if item is None or item.message.content == text:
            return []
        if not text:
            self._items.remove(item)
            return [{"type": "conversation.item.delete", "item_id": item_id}]
        at = self._items.index(item)
        self._items[at] = replace(item, message=Message("assistant", text))
        return [
            {
                "type": "conversation.item.truncate",
                "event_id": _CUT,
                "item_id": item_id,
                "content_index": 0,
                "audio_end_ms": audio_ms,
            }
        ]

    def _match(self, wanted: Sequence[Message]) -> list[ClientEvent]:
        deleted: list[ClientEvent] = []
        created: list[ClientEvent] = []
        there = self._items
        now: list[_Item] = []
        for message in wanted:
            at = next((n for n, item in enumerate(there) if item.message == message), None)
            if at is None:
                item = _Item(self._new_id(), message)
                created.append(_creation(item, after=now[-1].id if now else "root"))
                now.append(item)
                continue
            deleted += [_deletion(item) for item in there[:at]]
            now.append(there[at])
            there = there[at + 1 :]
        deleted += [_deletion(item) for item in there]
        self._items = now
        return deleted + created


def _creation(item: _Item, *, after: str) -> ClientEvent:
    kind = "output_text" if item.message.role == "assistant" else "input_text"
    return {
        "type": "conversation.item.create",
        "previous_item_id": after,
        "item": {
            "id": item.id,
            "type": "message",
            "role": item.message.role,
            "content": [{"type": kind, "text": item.message.content}],
        },
    }


def _deletion(item: _Item) -> ClientEvent:
    return {"type": "conversation.item.delete", "item_id": item.id}
