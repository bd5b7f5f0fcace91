from __future__ import annotations

from collections.abc import Awaitable, Callable

from glyphoxa.domain.campaign import Player
from glyphoxa.npc.table import Ear


class LiveSeat:
    """See `glyphoxa.npc.table.Seat`."""

    def __init__(self, player: Player, ear: Ear, *, on_left: Callable[[LiveSeat], Awaitable[None]]) -> None:
        self.player = player
        self._ear = ear
        self._on_left = on_left
        self._is_empty = False

    def hear(self, pcm: bytes) -> None:
        if not self._is_empty:
            self._ear.hear(pcm)

    async def leave(self) -> None:
        if self._is_empty:
            return
        self._is_empty = True
        try:
            await self._ear.close()
        finally:
            await self._on_left(self)
