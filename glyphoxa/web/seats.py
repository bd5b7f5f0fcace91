"""Who sits where, seen from the web.

A browser takes a seat with its websocket and keeps it as long as that is open; its audio peer belongs to the
same seat and proves it with the ticket. A client without a websocket may connect a peer alone and then holds
the seat by it. When the last of the two goes, or the websocket goes, the seat is free again.

The ticket is the browser's: whoever sits down on a free seat with a ticket holds the seat under it. So a browser
whose network froze has its seat again with the ticket it came with, whatever became of the answers meanwhile.

A player who opens their own link again, in another tab or on another device, takes the seat over: the page before is
told, its sound ends, and its ticket is worth nothing until the seat is free.

Each seat has a lock of its own, held while an ear is opened or closed and never longer than the deadlines say. A
peer is answered and hung up outside of it: how long that takes is up to a network.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from loguru import logger

from glyphoxa.actors.deadline import in_time, within
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import PlayerId
from glyphoxa.npc.table import Seat, Table
from glyphoxa.web.access.roles import Refusal
from glyphoxa.web.hub import PageOutbox, Shut
from glyphoxa.web.sound import ConnectPeer, Offer, Peer

SHORTEST_TICKET = 16


class NotNow(Unavailable):
    """The table cannot do this now. The message is for players; that of any other `Unavailable` is for the DM."""


class SeatTaken(Refusal):
    code = "seat_taken"
    status = 409

    def __init__(self, player: Player, *, free: list[Player]) -> None:
        names = ", ".join(p.id for p in free) or "none"
        super().__init__(
            f"{player.name} ({player.id}) is already at the table; free seats: {names}", player=player.name
        )


class Superseded(Refusal):
    """A newer connection of the same browser holds the seat."""

    code = "superseded"
    status = 409

    def __init__(self, player: Player) -> None:
        super().__init__(f"a newer connection of this page holds the seat of {player.name} ({player.id})")


@dataclass(frozen=True, slots=True)
class SeatClaim:
    """What a browser shows to take a seat.

    Attributes:
        ticket: A secret of its own, or the one it was given; "" asks for one.
        attempt: Grows with every connection it makes under this ticket.
        is_owner: It was opened by the link of the seat's player, and so may take the seat over from another browser.
    """

    ticket: str = ""
    attempt: int = 0
    is_owner: bool = False


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long each step with a seat may take, in milliseconds.

    Attributes:
        slow_ms: `/healthz` reports operations slower than this.
    """

    sit_ms: int = 30_000
    leave_ms: int = 10_000
    answer_ms: int = 30_000
    hang_up_ms: int = 10_000
    slow_ms: int = 3_000


@dataclass(eq=False, slots=True)
class TakenSeat:
    """A taken seat and what holds it.

    Attributes:
        n_offers: Offers so far; only the last one's peer may stay.
        superseded: Tickets of browsers from which it was taken over.
    """

    player: Player
    seat: Seat
    ticket: str
    attempt: int = 0
    outbox: PageOutbox | None = None
    peer: Peer | None = None
    n_offers: int = 0
    superseded: set[str] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class _Way:
    """Serialises access to one seat.

    Attributes:
        since_s: Since when somebody has been on it; None when it is free.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    since_s: float | None = None


class Seats:
    """
    Args:
        on_change: Called whenever a seat was taken or left.
    """

    def __init__(
        self, table: Table, connect: ConnectPeer, *, on_change: Callable[[], None], deadlines: Deadlines | None = None
    ) -> None:
        self._table = table
        self._connect = connect
        self._on_change = on_change
        self._within = deadlines or Deadlines()
        self._places: dict[PlayerId, TakenSeat] = {}
        self._ways = {player.id: _Way() for player in table.campaign.players}
        self._leaving: set[asyncio.Task[None]] = set()
        self._hanging: dict[asyncio.Task[None], float] = {}
        self._is_closed = False

    @property
    def taken(self) -> frozenset[PlayerId]:
        return frozenset(self._places)

    @property
    def blocked(self) -> list[str]:
        """Return seats that nobody can take or leave now, in words for whoever runs the table."""
        return [
            f"the seat of {player} has been taken or left for {seconds:.0f} s"
            for player, way in self._ways.items()
            if way.since_s is not None and (seconds := self._slow(way.since_s))
        ]

    @property
    def hanging(self) -> list[str]:
        """Return connections to browsers that do not close, in words."""
        slow = [seconds for since_s in self._hanging.values() if (seconds := self._slow(since_s))]
        return [f"a browser's sound has not hung up for {seconds:.0f} s" for seconds in slow]

    async def sit(self, player_id: PlayerId, claim: SeatClaim, *, outbox: PageOutbox) -> TakenSeat:
        """Take a seat with a websocket; with its ticket or as its owner, take over from the socket before.

        Raises:
            NotFound: The campaign has no such player.
            SeatTaken: Somebody else sits there.
            Superseded: A newer connection under this ticket, or a newer browser of its owner, sits there.
            Unavailable: The seat cannot be taken now.
        """
        async with self._at(player_id):
            place = await self._claim(player_id, claim)
            if claim.attempt < place.attempt:
                raise Superseded(place.player)
            place.attempt = claim.attempt
            if place.outbox is not None:
                place.outbox.shut(Shut.TAKEN_OVER)
            place.outbox = outbox
        return place

    async def stand(self, place: TakenSeat, *, outbox: PageOutbox) -> None:
        """Leave a seat whose websocket is gone. A seat that a newer one took over stays taken."""
        async with self._at(place.player.id):
            if place.outbox is outbox:
                await self._free(place)

    async def connect_peer(self, player_id: PlayerId, offer: Offer, *, ticket: str = "") -> tuple[TakenSeat, str]:
        """Connect a browser's audio. An earlier peer of the same seat is hung up.

        Returns: The place and the answer's SDP.

        Raises:
            InvalidInput: The offer is unusable.
            NotFound: The campaign has no such player.
            SeatTaken: Somebody else sits there.
            Unavailable: It was not answered in time, or is not wanted any more.
        """
        async with self._at(player_id):
            place = await self._claim(player_id, SeatClaim(ticket))
            place.n_offers += 1
            number = place.n_offers
            self._drop_peer(place)
        peer: Peer | None = None
        try:
            connecting = self._connect(place.seat, offer, on_closed=lambda: self._peer_closed(place, number))
            peer = await in_time(self._within.answer_ms, connecting, if_late=self._hang_up)
        except TimeoutError as error:
            raise NotNow("the offer was not answered in time") from error
        finally:
            if peer is None:
                await self._end_of(place, number)
        if self._places.get(player_id) is not place or place.n_offers != number:
            self._hang_up(peer)
            raise NotNow("a newer offer arrived, or the seat was left")
        place.peer = peer
        return place, peer.answer_sdp

    async def hang_up(self, player_id: PlayerId) -> None:
        """End the sound of a seat, including one that is connecting. A seat held by a websocket is kept."""
        place = self._places.get(player_id)
        if place is None:
            return
        place.n_offers += 1
        self._drop_peer(place)
        if place.outbox is None:
            await self._leave(place)

    async def close(self) -> None:
        """Leave all seats. What does not close in time is abandoned."""
        self._is_closed = True
        await asyncio.gather(*(self._leave(place) for place in list(self._places.values())))
        await asyncio.gather(*self._leaving)

    # -- one seat

    @asynccontextmanager
    async def _at(self, player_id: PlayerId) -> AsyncIterator[None]:
        player = self._table.campaign.player(player_id)
        way = self._ways[player.id]
        async with way.lock:
            way.since_s = asyncio.get_running_loop().time()
            try:
                yield
            finally:
                way.since_s = None

    async def _claim(self, player_id: PlayerId, claim: SeatClaim) -> TakenSeat:
        player = self._table.campaign.player(player_id)
        place = self._places.get(player_id)
        if place is not None:
            if secrets.compare_digest(claim.ticket.encode(), place.ticket.encode()):
                return place
            if claim.ticket in place.superseded:
                raise Superseded(player)
            if not claim.is_owner:
                raise SeatTaken(player, free=[p for p in self._table.campaign.players if p.id not in self._places])
            place.superseded.add(place.ticket)
            place.ticket, place.attempt = _ticket_of(claim), claim.attempt
            place.n_offers += 1  # also ends an offer of the other browser that is still connecting
            self._drop_peer(place)
            return place
        if self._is_closed:
            raise NotNow("the table is closing")
        try:
            seat = await in_time(self._within.sit_ms, self._table.seat(player), if_late=self._empty)
        except TimeoutError as error:
            raise NotNow(f"the seat of {player.name} did not become ready in time; try again") from error
        except InvalidInput as error:
            # What is wrong with a setting is for the DM; players read that something is.
            logger.error("nobody can sit down as {}: {}", player.name, error)
            raise NotNow(f"the seat of {player.name} cannot be opened; the DM's log says why") from error
        place = self._places[player_id] = TakenSeat(player, seat, _ticket_of(claim))
        self._on_change()
        return place

    async def _leave(self, place: TakenSeat) -> None:
        async with self._at(place.player.id):
            await self._free(place)

    async def _free(self, place: TakenSeat) -> None:
        if self._places.get(place.player.id) is not place:
            return
        self._drop_peer(place)
        if place.outbox is not None:
            place.outbox.shut(Shut.CLOSED)
        try:
            await within(self._within.leave_ms, f"the seat of {place.player.id}", place.seat.leave())
        finally:
            del self._places[place.player.id]
            self._on_change()

    def _empty(self, seat: Seat) -> None:
        """Leave a seat that opened after its request was refused."""
        self._do(self._leave_in_time(seat))

    async def _leave_in_time(self, seat: Seat) -> None:
        await within(self._within.leave_ms, f"the seat of {seat.player.id}", seat.leave())

    # -- peers

    def _drop_peer(self, place: TakenSeat) -> None:
        peer, place.peer = place.peer, None
        if peer is not None:
            self._hang_up(peer)

    def _hang_up(self, peer: Peer) -> None:
        self._do(self._hang_up_in_time(peer))

    async def _hang_up_in_time(self, peer: Peer) -> None:
        closing = asyncio.create_task(peer.close())
        self._hanging[closing] = asyncio.get_running_loop().time()
        closing.add_done_callback(self._hanging.pop)
        await within(self._within.hang_up_ms, "a browser's sound", closing)

    def _peer_closed(self, place: TakenSeat, number: int) -> None:
        self._do(self._end_of(place, number))

    async def _end_of(self, place: TakenSeat, number: int) -> None:
        """Clean up an offer that failed, or whose peer is gone. A newer one is not touched."""
        async with self._at(place.player.id):
            if place.n_offers != number:
                return
            place.n_offers += 1
            self._drop_peer(place)
            if place.outbox is None:
                await self._free(place)

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    def _slow(self, since_s: float) -> float:
        """Return for how many seconds something has been slow; 0 if it is not."""
        seconds = asyncio.get_running_loop().time() - since_s
        return seconds if seconds * 1_000 > self._within.slow_ms else 0.0


def _ticket_of(claim: SeatClaim) -> str:
    return claim.ticket if len(claim.ticket) >= SHORTEST_TICKET else secrets.token_urlsafe(16)
