"""Sends table events to all pages, and earlier events to a page that connects later."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from glyphoxa.domain.events import Degraded, SceneChanged, TableEvent, UtteranceKept
from glyphoxa.domain.ids import PlayerId
from glyphoxa.npc.table import Table
from glyphoxa.web.events import Json, allowed, event_json, redacted, whole_scene_json

QUEUE_LENGTH = 512
"""A page that is this many messages behind is disconnected; it reconnects and gets the history."""


class CloseReason(Enum):
    """The close code and reason of a page's websocket.

    A page reconnects by itself, unless another page took over its seat.
    """

    TAKEN_OVER = (4410, "another page took over the seat")
    TOO_SLOW = (4408, "the page read too slowly, or not at all")
    CLOSED = (4503, "the table was closed")
    NOT_INVITED = (4401, "the page's link does not allow this, or was revoked")

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        self.reason = reason


class PageOutbox:
    """Messages for one page. Bounded, so that a page that stops reading does not delay others."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[str | None] = asyncio.Queue(QUEUE_LENGTH + 1)
        self.close_reason: CloseReason | None = None

    def put(self, message: str) -> None:
        if self.close_reason is not None:
            return
        if self._messages.qsize() >= QUEUE_LENGTH:
            self.close(CloseReason.TOO_SLOW)
        else:
            self._messages.put_nowait(message)

    def put_json(self, message: Json) -> None:
        self.put(json.dumps(message))

    def close(self, reason: CloseReason) -> None:
        """Discard all later messages. The first reason counts."""
        if self.close_reason is None:
            self.close_reason = reason
            self._messages.put_nowait(None)

    async def next(self) -> str | None:
        """Return the next message; None once the outbox is closed and empty."""
        return await self._messages.get()


@dataclass(frozen=True, slots=True)
class PageReader:
    """The reader of a page.

    Attributes:
        player: None for a spectator.
        is_dm: The page gets what only the game master may know.
    """

    player: PlayerId | None
    is_dm: bool = False


class Hub:
    """Sends table events to every page, and the history to a page that joins late."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._outboxes: dict[PageOutbox, PageReader] = {}
        self._history = {False: History(), True: History()}
        for utterance in table.earlier:
            self.on(UtteranceKept(utterance))

    def history(self, player: PlayerId | None, *, is_dm: bool = False) -> list[Json]:
        """Return the history for this player's page; None means a spectator's."""
        return self._history[is_dm].messages(player)

    def on(self, event: TableEvent) -> None:
        for is_dm in self._history:
            self._broadcast(event, is_dm=is_dm)

    def _broadcast(self, event: TableEvent, *, is_dm: bool) -> None:
        may_show, campaign = self._table.may_show, self._table.campaign
        message = event_json(redacted(event, may_show), campaign, may_show)
        match event:
            case SceneChanged(scene=scene) if is_dm:
                message["scene"] = whole_scene_json(scene, campaign)
            case Degraded(npc=str(npc)) if not is_dm and npc not in self._table.scene.npcs:
                message["npc"] = None  # players may not have met it yet, so they get the trouble without the name
            case _ if not is_dm:
                message = allowed(message, campaign)
        self._history[is_dm].take(message)
        # A whisper names its only reader.
        self.send(message, to=lambda who: who.is_dm is is_dm and message.get("to", who.player) == who.player)

    def send(self, message: Json, *, to: Callable[[PageReader], bool] = lambda _: True) -> None:
        """Send a message to the pages of these readers."""
        text = json.dumps(message)
        for outbox, reader in self._outboxes.items():
            if to(reader):
                outbox.put(text)

    @contextmanager
    def joined(self, outbox: PageOutbox, reader: PageReader) -> Iterator[None]:
        """Send all events during the block to `outbox`, and close it at the end."""
        self._outboxes[outbox] = reader
        try:
            yield
        finally:
            self._outboxes.pop(outbox, None)
            outbox.close(CloseReason.CLOSED)

    def close(self) -> None:
        for outbox in list(self._outboxes):
            outbox.close(CloseReason.CLOSED)


LENGTH = 240


class History:
    """Keeps the messages that a new page needs to show the same as earlier ones.

    The last `LENGTH` finished messages are kept. Messages about the present (who thinks, speech in progress) are kept
    until an utterance replaces them, or the turn ends without one.
    """

    def __init__(self) -> None:
        self._finished: deque[Json] = deque(maxlen=LENGTH)
        self._ongoing: list[Json] = []
        self._retracted: set[str] = set()

    def messages(self, player: PlayerId | None) -> list[Json]:
        """Return the messages for this player, without retracted utterances and whispers to others."""
        return [*(message for message in self._finished if self._is_for(message, player)), *self._ongoing]

    def _is_for(self, message: Json, player: PlayerId | None) -> bool:
        if message["type"] == "whisper":
            return bool(message["to"] == player)
        return message["type"] != "utterance" or message["id"] not in self._retracted

    def take(self, message: Json) -> None:
        match message:
            case {"type": "speech_started" | "partial" | "turn_ended" | "nothing_said", "player": player}:
                self._player_speaks(message, player)
            case {"type": "npc_thinks" | "npc_silent"}:
                self._ongoing.append(message)
            case {"type": "npc_speaks", "turn": turn}:
                self._drop("npc_thinks", turn=turn)
                self._ongoing.append(message)
            case {"type": "utterance", "speaker": {"id": speaker, "kind": kind}}:
                self._finished.append(message)
                if kind == "npc":
                    self._npc_was_heard(speaker)
                else:
                    self._drop("speech_started", "partial", "turn_ended", player=speaker)
            case {"type": "revised", "id": utterance}:
                self._revise(message, utterance)
            case {"type": "retracted", "id": utterance, "is_retracted": is_retracted}:
                (self._retracted.add if is_retracted else self._retracted.discard)(utterance)
            case {"type": "turn", "id": turn, "reply": reply}:
                self._finished.append(message)
                self._drop("npc_thinks", turn=turn)
                if reply is None:
                    self._drop("npc_speaks", "npc_silent", turn=turn)
            case {"type": "scene" | "whisper"}:
                self._finished.append(message)
            case {"type": "getting_ready", "npcs": npcs}:
                self._drop("getting_ready")
                self._ongoing += [message] if npcs else []

    def _player_speaks(self, message: Json, player: str) -> None:
        """Replace the player's speech in progress by the latest."""
        self._drop("partial", "turn_ended", player=player)
        if message["type"] in ("turn_ended", "nothing_said", "speech_started"):
            self._drop("speech_started", player=player)
        if message["type"] != "nothing_said":
            self._ongoing.append(message)

    def _npc_was_heard(self, npc: str) -> None:
        """Drop the first finished reply of this NPC, because an utterance contains its words now."""
        ended = [m["turn"] for m in self._ongoing if m["type"] == "npc_silent" and m["npc"] == npc]
        for turn in ended[:1]:
            self._drop("npc_speaks", "npc_silent", turn=turn)

    def _revise(self, message: Json, utterance: str) -> None:
        """Replace an utterance by its corrected words."""
        for at, earlier in enumerate(self._finished):
            if earlier["type"] == "utterance" and earlier["id"] == utterance:
                self._finished[at] = {**message, "type": "utterance"}

    def _drop(self, *types: str, player: str | None = None, turn: str | None = None) -> None:
        self._ongoing = [
            message
            for message in self._ongoing
            if message["type"] not in types
            or (player is not None and message["player"] != player)
            or (turn is not None and message["turn"] != turn)
        ]
