"""Who sits at a table, each with an ear of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from glyphoxa.actors.deadline import within
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import PlayerId
from glyphoxa.npc.table import Ear, TableState

CLOSE_MS = 5_000


class LiveSeat:
    """See `glyphoxa.npc.table.Seat`.

    Args:
        is_paused: Whether its ear hears silence in place of what is said.
        close_within_ms: An ear that has not closed by then is left behind, and the seat is left all the same.
    """

    def __init__(
        self,
        player: Player,
        ear: Ear,
        *,
        on_left: Callable[[Player], None],
        is_paused: Callable[[], bool] = lambda: False,
        close_within_ms: int = CLOSE_MS,
    ) -> None:
        self.player = player
        self._ear = ear
        self._on_left = on_left
        self._is_paused = is_paused
        self._close_within_ms = close_within_ms
        self._is_empty = False

    def hear(self, pcm: bytes) -> None:
        if not self._is_empty:
            self._ear.hear(bytes(len(pcm)) if self._is_paused() else pcm)

    async def leave(self) -> None:
        if self._is_empty:
            return
        self._is_empty = True
        try:
            await within(self._close_within_ms, f"the ear of {self.player.name}", self._ear.close())
        finally:
            self._on_left(self.player)


class TableSeats:
    """
    Args:
        open_ear: Builds an ear for a human; it does not listen yet.
        on_left: Told who has left.
        is_paused: Whether the table is: then no recogniser is given what is said.
    """

    def __init__(
        self,
        state: TableState,
        *,
        open_ear: Callable[[Player], Awaitable[Ear]],
        on_left: Callable[[PlayerId], None],
        is_paused: Callable[[], bool] = lambda: False,
    ) -> None:
        self._state = state
        self._open_ear = open_ear
        self._on_left = on_left
        self._is_paused = is_paused
        self._seats: dict[PlayerId, LiveSeat] = {}

    async def seat(self, player: Player) -> LiveSeat:
        """
        Raises:
            InvalidInput: Someone already sits there.
        """
        if self._state.is_seated(player.id):
            raise InvalidInput(f"{player.name} sits at the table already")
        self._state.sits_down(player)
        try:
            ear = await self._open_ear(player)
            seat = self._seats[player.id] = LiveSeat(player, ear, on_left=self._left, is_paused=self._is_paused)
            await ear.start()
        except BaseException:  # also of who is cancelled: the seat is free again
            self._seats.pop(player.id, None)
            self._state.stands_up(player.id)
            raise
        return seat

    async def leave_all(self, within_ms: int) -> None:
        seats = tuple(self._seats.values())
        await asyncio.gather(*(within(within_ms, f"the ear of {seat.player.name}", seat.leave()) for seat in seats))

    def _left(self, player: Player) -> None:
        self._seats.pop(player.id, None)
        self._state.stands_up(player.id)
        self._on_left(player.id)
