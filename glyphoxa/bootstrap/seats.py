from __future__ import annotations

from collections.abc import Awaitable, Callable

from glyphoxa.actors.deadline import within
from glyphoxa.domain.campaign import Player
from glyphoxa.npc.table import Ear

CLOSE_MS = 5_000


class LiveSeat:
    """See `glyphoxa.npc.table.Seat`.

    Args:
        close_within_ms: An ear that has not closed by then is left behind, and the seat is left all the same.
    """

    def __init__(
        self,
        player: Player,
        ear: Ear,
        *,
        on_left: Callable[[LiveSeat], Awaitable[None]],
        close_within_ms: int = CLOSE_MS,
    ) -> None:
        self.player = player
        self._ear = ear
        self._on_left = on_left
        self._close_within_ms = close_within_ms
        self._is_empty = False

    def hear(self, pcm: bytes) -> None:
        if not self._is_empty:
            self._ear.hear(pcm)

    async def leave(self) -> None:
        if self._is_empty:
            return
        self._is_empty = True
        try:
            await within(self._close_within_ms, f"the ear of {self.player.name}", self._ear.close())
        finally:
            await self._on_left(self)
