"""The seats of a table and the browsers that hold them.

A browser takes a seat with its websocket and holds it while the websocket is open. Its audio peer shows the ticket to
use the same seat. A client without a websocket holds the seat with its peer alone. The seat becomes free when its
websocket closes, or when the peer of such a client closes.

The ticket belongs to the browser. A seat taken with a ticket is held under this ticket, so a browser that lost its
network can take its seat back with the same ticket, even if it missed all answers meanwhile.

A player who opens their own link in another tab or on another device takes over the seat. The earlier page is notified
and its sound ends. Its ticket is rejected until the seat is free.

Each seat has a lock. It is held while an ear opens or closes, for at most the deadlines below. Peers connect and close
outside the lock, because that takes as long as the network does.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from loguru import logger

from glyphoxa.actors.deadline import in_time, within
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import PlayerId
from glyphoxa.npc.table_interface import ConnectPeer, Offer, Peer, Seat, Table
from glyphoxa.web.access.roles import Refusal
from glyphoxa.web.events import CloseReason, PageOutbox

SHORTEST_TICKET = 16
K = TypeVar("K")


class NotNow(Unavailable):
    """The table cannot do this now. Players see its message; the message of any other `Unavailable` is for the DM."""


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
    """A browser's request for a seat.

    Attributes:
        ticket: A secret that the browser generated or was given before; "" requests a new one.
        attempt: Increases with each connection under this ticket.
        is_owner: The browser uses the link of the seat's player, so it may take over the seat from another browser.
    """

    ticket: str = ""
    attempt: int = 0
    is_owner: bool = False


@dataclass(frozen=True, slots=True)
class Pulse:
    """The beats of a websocket.

    Attributes:
        every_ms: The server sends a beat at this interval.
        page_waits_ms: A page that receives nothing for this long reconnects.
        server_waits_ms: A page that answers beats, and then sends nothing for this long, is disconnected.
    """

    every_ms: int = 2_000
    page_waits_ms: int = 8_000
    server_waits_ms: int = 20_000


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Time limits of the operations on a seat, in milliseconds.

    Attributes:
        pulse: How a page and the server notice a lost connection.
        slow_ms: `/healthz` reports operations slower than this.
    """

    sit_ms: int = 30_000
    leave_ms: int = 10_000
    answer_ms: int = 30_000
    hang_up_ms: int = 10_000
    slow_ms: int = 3_000
    pulse: Pulse = Pulse()


DEADLINES: Final = Deadlines()


@dataclass(eq=False, slots=True)
class TakenSeat:
    """A taken seat with the connections that hold it.

    Attributes:
        n_offers: Number of offers so far; only the peer of the last one is kept.
        superseded: Tickets of browsers from which the seat was taken over.
    """

    player: Player
    seat: Seat
    ticket: str
    attempt: int = 0
    outbox: PageOutbox | None = None
    peer: Peer | None = None
    n_offers: int = 0
    superseded: set[str] = field(default_factory=set)


class Seats:
    """
    Args:
        on_change: Called after a seat was taken or left.
    """

    def __init__(
        self, table: Table, connect: ConnectPeer, *, on_change: Callable[[], None], deadlines: Deadlines = DEADLINES
    ) -> None:
        self._table = table
        self._connect = connect
        self._on_change = on_change
        self._deadlines = deadlines
        self._places: dict[PlayerId, TakenSeat] = {}
        self._locks = {player.id: asyncio.Lock() for player in table.campaign.players}
        self._background: set[asyncio.Task[object]] = set()
        # Since when, on the event loop's clock.
        self._locked_seats: dict[PlayerId, float] = {}
        self._closing_peers: dict[asyncio.Task[None], float] = {}
        self._is_closed = False

    @property
    def taken(self) -> frozenset[PlayerId]:
        return frozenset(self._places)

    @property
    def blocked(self) -> list[str]:
        """Return a message for each seat whose lock has been held too long, for the operator."""
        slow = self._slow(self._locked_seats)
        return [f"the seat of {player} has been taken or left for {seconds:.0f} s" for player, seconds in slow]

    @property
    def unclosed(self) -> list[str]:
        """Return a message for each audio connection that does not close."""
        slow = self._slow(self._closing_peers)
        return [f"a browser's sound has not hung up for {seconds:.0f} s" for _, seconds in slow]

    def _slow(self, since_s: Mapping[K, float]) -> list[tuple[K, float]]:
        """Return what has taken longer than `Deadlines.slow_ms`, with its seconds so far."""
        now_s = asyncio.get_running_loop().time()
        taken = ((what, now_s - at_s) for what, at_s in since_s.items())
        return [(what, seconds) for what, seconds in taken if seconds * 1_000 > self._deadlines.slow_ms]

    async def sit(self, player_id: PlayerId, claim: SeatClaim, *, outbox: PageOutbox) -> TakenSeat:
        """Take a seat with a websocket. Its ticket or its owner's link takes over from an earlier websocket.

        Raises:
            NotFound: The campaign has no such player.
            SeatTaken: Another browser holds the seat.
            Superseded: A newer connection under this ticket, or a newer browser of the owner, holds the seat.
            Unavailable: The seat cannot be taken now.
        """
        async with self._locked(player_id):
            place = await self._claim(player_id, claim)
            if claim.attempt < place.attempt:
                raise Superseded(place.player)
            place.attempt = claim.attempt
            if place.outbox is not None:
                place.outbox.close(CloseReason.TAKEN_OVER)
            place.outbox = outbox
        return place

    async def stand(self, place: TakenSeat, *, outbox: PageOutbox) -> None:
        """Leave a seat after its websocket closed, unless a newer websocket has taken it over."""
        async with self._locked(place.player.id):
            if place.outbox is outbox:
                await self._free(place)

    async def connect_peer(self, player_id: PlayerId, offer: Offer, *, ticket: str = "") -> tuple[TakenSeat, str]:
        """Connect a browser's audio, and close an earlier peer of the same seat.

        Returns: The seat and the answer's SDP.

        Raises:
            InvalidInput: The offer is unusable.
            NotFound: The campaign has no such player.
            SeatTaken: Another browser holds the seat.
            Unavailable: The offer was not answered in time, or a newer one replaced it.
        """
        async with self._locked(player_id):
            place = await self._claim(player_id, SeatClaim(ticket))
            place.n_offers += 1
            number = place.n_offers
            self._drop_peer(place)
        peer: Peer | None = None
        try:
            connecting = self._connect(place.seat, offer, on_closed=lambda: self._run(self._end_offer(place, number)))
            peer = await in_time(self._deadlines.answer_ms, connecting, if_late=self._hang_up)
        except TimeoutError as error:
            raise NotNow("the offer was not answered in time") from error
        finally:
            if peer is None:
                await self._end_offer(place, number)
        if self._places.get(player_id) is not place or place.n_offers != number:
            self._hang_up(peer)
            raise NotNow("a newer offer arrived, or the seat was left")
        place.peer = peer
        return place, peer.answer_sdp

    async def hang_up(self, player_id: PlayerId) -> None:
        """Close the audio of a seat, also while it connects. A seat that a websocket holds stays taken."""
        place = self._places.get(player_id)
        if place is None:
            return
        place.n_offers += 1
        self._drop_peer(place)
        if place.outbox is None:
            await self._leave(place)

    async def close(self) -> None:
        """Leave all seats. Connections that do not close in time are abandoned."""
        self._is_closed = True
        await asyncio.gather(*(self._leave(place) for place in list(self._places.values())))
        await asyncio.gather(*self._background)

    # -- one seat

    @asynccontextmanager
    async def _locked(self, player_id: PlayerId) -> AsyncIterator[None]:
        player = self._table.campaign.player(player_id).id
        async with self._locks[player]:
            self._locked_seats[player] = asyncio.get_running_loop().time()
            try:
                yield
            finally:
                del self._locked_seats[player]

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
            place.n_offers += 1  # discards an offer of the other browser that is still connecting
            self._drop_peer(place)
            return place
        if self._is_closed:
            raise NotNow("the table is closing")
        try:
            seat = await in_time(self._deadlines.sit_ms, self._table.seat(player), if_late=self._leave_unused)
        except TimeoutError as error:
            raise NotNow(f"the seat of {player.name} did not become ready in time; try again") from error
        except InvalidInput as error:
            # The details of a wrong setting are for the DM only.
            logger.error("the seat of {} cannot be opened: {}", player.name, error)
            raise NotNow(f"the seat of {player.name} cannot be opened; the DM's log says why") from error
        place = self._places[player_id] = TakenSeat(player, seat, _ticket_of(claim))
        self._on_change()
        return place

    async def _leave(self, place: TakenSeat) -> None:
        async with self._locked(place.player.id):
            await self._free(place)

    async def _free(self, place: TakenSeat) -> None:
        if self._places.get(place.player.id) is not place:
            return
        self._drop_peer(place)
        if place.outbox is not None:
            place.outbox.close(CloseReason.CLOSED)
        try:
            await within(self._deadlines.leave_ms, f"the seat of {place.player.id}", place.seat.leave())
        finally:
            del self._places[place.player.id]
            self._on_change()

    def _leave_unused(self, seat: Seat) -> None:
        """Leave a seat that opened after its request timed out."""
        self._run(within(self._deadlines.leave_ms, f"the seat of {seat.player.id}", seat.leave()))

    # -- peers

    def _drop_peer(self, place: TakenSeat) -> None:
        peer, place.peer = place.peer, None
        if peer is not None:
            self._hang_up(peer)

    def _hang_up(self, peer: Peer) -> None:
        closing = asyncio.create_task(peer.close())
        self._closing_peers[closing] = asyncio.get_running_loop().time()
        closing.add_done_callback(self._closing_peers.pop)
        self._run(within(self._deadlines.hang_up_ms, "a browser's sound", closing))

    async def _end_offer(self, place: TakenSeat, number: int) -> None:
        """Clean up an offer that failed or whose peer closed, unless a newer offer replaced it."""
        async with self._locked(place.player.id):
            if place.n_offers != number:
                return
            place.n_offers += 1
            self._drop_peer(place)
            if place.outbox is None:
                await self._free(place)

    def _run(self, work: Coroutine[None, None, object]) -> None:
        """Run in the background; `close` waits for it."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _ticket_of(claim: SeatClaim) -> str:
    return claim.ticket if len(claim.ticket) >= SHORTEST_TICKET else secrets.token_urlsafe(16)
