"""Who sits where, seen from the web.

A browser takes a seat with its websocket and keeps it as long as that is open; its audio peer belongs to the
same seat and proves it with the ticket. A client without a websocket may connect a peer alone and then holds
the seat by it. When the last of the two goes, or the websocket goes, the seat is free again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import PlayerId
from glyphoxa.npc.table import Seat, Table
from glyphoxa.web.hub import Outbox
from glyphoxa.web.peer import ConnectPeer, Offer, Peer


class SeatTaken(InvalidInput):
    def __init__(self, player: Player, *, free: list[Player]) -> None:
        names = ", ".join(p.id for p in free) or "none"
        super().__init__(f"{player.name} ({player.id}) is already at the table; free seats: {names}")


@dataclass(eq=False, slots=True)
class Place:
    """A taken seat and what holds it."""

    player: Player
    seat: Seat
    ticket: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    outbox: Outbox | None = None
    peer: Peer | None = None


class Seats:
    """
    Args:
        on_change: Called whenever a seat was taken or left.
    """

    def __init__(self, table: Table, connect: ConnectPeer, *, on_change: Callable[[], None]) -> None:
        self._table = table
        self._connect = connect
        self._on_change = on_change
        self._places: dict[PlayerId, Place] = {}
        # Sitting down takes a while (an ear is started); two browsers must not get the same seat meanwhile.
        self._lock = asyncio.Lock()
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def taken(self) -> frozenset[PlayerId]:
        return frozenset(self._places)

    async def sit(self, player_id: PlayerId, *, ticket: str | None, outbox: Outbox) -> Place:
        """Take a seat with a websocket; with the ticket of a taken seat, take over from the socket before.

        Raises:
            NotFound: The campaign has no such player.
            SeatTaken: Somebody else sits there.
        """
        async with self._lock:
            place = await self._claim(player_id, ticket)
            if place.outbox is not None:
                place.outbox.shut()
            place.outbox = outbox
        return place

    async def stand(self, place: Place, *, outbox: Outbox) -> None:
        """The websocket is gone. A seat that was taken over by a newer one stays taken."""
        async with self._lock:
            if place.outbox is outbox:
                await self._free(place)

    async def connect_peer(self, player_id: PlayerId, offer: Offer, *, ticket: str | None) -> tuple[Place, str]:
        """Connect a browser's audio. A peer of the same seat that was there before is hung up.

        Returns: The place and the answer's SDP.

        Raises:
            InvalidInput: The offer is unusable.
            NotFound: The campaign has no such player.
            SeatTaken: Somebody else sits there.
        """
        async with self._lock:
            place = await self._claim(player_id, ticket)
            before, place.peer = place.peer, None
            if before is not None:
                await before.close()
            try:
                place.peer = peer = await self._connect(
                    place.seat, offer, on_closed=lambda: self._peer_closed(place, peer)
                )
            finally:
                if place.peer is None and place.outbox is None:
                    await self._free(place)
        return place, peer.answer_sdp

    async def close(self) -> None:
        """Everybody leaves."""
        async with self._lock:
            for place in list(self._places.values()):
                await self._free(place)
        await asyncio.gather(*self._leaving)

    async def _claim(self, player_id: PlayerId, ticket: str | None) -> Place:
        player = self._table.campaign.player(player_id)
        place = self._places.get(player_id)
        if place is None:
            place = self._places[player_id] = Place(player, await self._table.seat(player))
            self._on_change()
        elif ticket is None or not secrets.compare_digest(ticket.encode(), place.ticket.encode()):
            raise SeatTaken(player, free=[p for p in self._table.campaign.players if p.id not in self._places])
        return place

    async def _free(self, place: Place) -> None:
        if self._places.get(place.player.id) is not place:
            return
        peer, place.peer = place.peer, None
        if place.outbox is not None:
            place.outbox.shut()
        try:
            if peer is not None:
                await peer.close()
            await place.seat.leave()
        finally:
            del self._places[place.player.id]
            self._on_change()

    def _peer_closed(self, place: Place, peer: Peer) -> None:
        task = asyncio.create_task(self._after_peer_closed(place, peer))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _after_peer_closed(self, place: Place, peer: Peer) -> None:
        async with self._lock:
            if place.peer is not peer:
                return
            place.peer = None
            await peer.close()
            if place.outbox is None:
                await self._free(place)
