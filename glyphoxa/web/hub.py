from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from glyphoxa.domain.events import Degraded, SceneChanged, TableEvent, UtteranceKept, Whispered
from glyphoxa.domain.ids import PlayerId
from glyphoxa.npc.table import Table
from glyphoxa.web.events import Json, event_json, whole_scene_json
from glyphoxa.web.history import History
from glyphoxa.web.veil import veiled

QUEUE_LENGTH = 512
"""A page that is this many messages behind has stopped reading; it comes back and gets the history."""


class Shut(Enum):
    """Why a page is sent nothing more: the code its websocket is closed with, and words.

    A page comes back by itself, except when another one took over its seat.
    """

    TAKEN_OVER = (4410, "another page took over the seat")
    TOO_SLOW = (4408, "the page read too slowly, or not at all")
    CLOSED = (4503, "the table was closed")
    NOT_INVITED = (4401, "the link that opened the page does not allow this, or not any more")

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        self.reason = reason


class PageOutbox:
    """What one page is still to be sent. Bounded: a page that stops reading costs nobody else anything."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[str | None] = asyncio.Queue(QUEUE_LENGTH + 1)
        self.why_shut: Shut | None = None

    def put(self, message: str) -> None:
        if self.why_shut is not None:
            return
        if self._messages.qsize() >= QUEUE_LENGTH:
            self.shut(Shut.TOO_SLOW)
        else:
            self._messages.put_nowait(message)

    def put_json(self, message: Json) -> None:
        self.put(json.dumps(message))

    def shut(self, why: Shut) -> None:
        """Nothing more is taken; the first reason counts."""
        if self.why_shut is None:
            self.why_shut = why
            self._messages.put_nowait(None)

    async def next(self) -> str | None:
        """The next message; None once the outbox is shut and empty."""
        return await self._messages.get()


@dataclass(frozen=True, slots=True)
class PageReader:
    """Who sits before a page.

    Attributes:
        player: None: a spectator.
        is_dm: Whether the page is told what only the game master may know.
    """

    player: PlayerId | None
    is_dm: bool = False


class Hub:
    """Tells every page what happens at the table, and a page that comes late what has been said."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._outboxes: dict[PageOutbox, PageReader] = {}
        self._history = History()
        for utterance in table.earlier:
            self._history.take(self._told(UtteranceKept(utterance)))

    def history(self, player: PlayerId | None) -> list[Json]:
        """What this player's page is shown of what has happened; None is a spectator's."""
        return self._history.messages(player)

    def on(self, event: TableEvent) -> None:
        message = self._told(event)
        self._history.take(message)
        match event:
            case Whispered(player=player):
                self.tell(message, to=lambda reader: reader.player == player)
            case SceneChanged(scene=scene):
                self.tell(message, to=lambda reader: not reader.is_dm)
                whole = whole_scene_json(scene, self._table.campaign)
                self.tell({**message, "scene": whole}, to=lambda reader: reader.is_dm)
            case Degraded(npc=str(npc)) if npc not in self._table.scene.npcs:
                # Players may not have met it yet: what ails it is told, and whom it ails is not.
                self.tell({**message, "npc": None}, to=lambda reader: not reader.is_dm)
                self.tell(message, to=lambda reader: reader.is_dm)
            case _:
                self.tell(message)

    def _told(self, event: TableEvent) -> Json:
        may_show = self._table.may_show
        return event_json(veiled(event, may_show), self._table.campaign, may_show)

    def tell(self, message: Json, *, to: Callable[[PageReader], bool] = lambda _: True) -> None:
        """
        Args:
            to: Whose pages are told.
        """
        text = json.dumps(message)
        for outbox, reader in self._outboxes.items():
            if to(reader):
                outbox.put(text)

    @contextmanager
    def joined(self, outbox: PageOutbox, reader: PageReader) -> Iterator[None]:
        """Everything that happens inside goes to `outbox` of this reader's page, which is shut in the end."""
        self._outboxes[outbox] = reader
        try:
            yield
        finally:
            self._outboxes.pop(outbox, None)
            outbox.shut(Shut.CLOSED)

    def shut(self) -> None:
        for outbox in list(self._outboxes):
            outbox.shut(Shut.CLOSED)
