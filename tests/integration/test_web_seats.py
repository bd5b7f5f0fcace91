"""One browser's network is nobody else's trouble: seats while a connection hangs, breaks or comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from websockets.exceptions import ConnectionClosed

from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.npc.table_interface import Offer, Seat
from glyphoxa.web.seats import Deadlines, Pulse
from glyphoxa_pipelines.webrtc import WebRtcPeers
from tests.support.patience import DEADLINE_MS, DEADLINE_S, until
from tests.support.web_client import Browser, Site, a_site, next_of
from tests.support.web_table import TAMSIN, TwinSeat, TwinTable

SOON = Deadlines(sit_ms=300, leave_ms=300, answer_ms=300, hang_up_ms=300, slow_ms=0)
TICKET = "a-ticket-that-tamsin-made-herself"


async def told(site: Site, path: str, *, until: Callable[[dict[str, object]], bool]) -> dict[str, object]:
    """Return the first answer of the server that fulfils `until`."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            answer: dict[str, object] = (await site.http.get(path)).json()
            if until(answer):
                return answer
            await asyncio.sleep(0.01)


# Sound that does not connect, or does not end


async def test_a_browser_whose_sound_never_connects_locks_no_seat_and_loses_its_own() -> None:
    table = TwinTable()
    async with asyncio.timeout(DEADLINE_S), a_site(table, peers=WebRtcPeers(table, connect_within_ms=200)) as site:
        silent = Browser()
        response = await site.offer("tamsin", await silent.offer())
        assert response.status_code == 200, response.text
        await table.wait_until(lambda: not table.seats)
        for player in ("bran", "tamsin"):
            async with site.sits(player) as socket:
                assert (await next_of(socket, "welcome"))["player"]["id"] == player
        health = (await site.http.get("/healthz")).json()
        assert (health["ok"], health["trouble"]) == (True, [])
        await silent.close()


async def test_a_page_keeps_its_seat_when_its_sound_never_connects() -> None:
    table = TwinTable()
    async with a_site(table, peers=WebRtcPeers(table, connect_within_ms=200)) as site, site.sits("tamsin") as tamsin:
        ticket = (await next_of(tamsin, "welcome"))["ticket"]
        silent = Browser()
        assert (await site.offer("tamsin", await silent.offer(), ticket=ticket)).status_code == 200
        await until(lambda: not table.sinks)
        await tamsin.send('{"say": "Can you read me?"}')
        await next_of(tamsin, "utterance")
        assert table.seats.keys() == {TAMSIN.id}
        await silent.close()


@dataclass
class StuckPeer:
    answer_sdp: str = "v=0"
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def close(self) -> None:
        while not self.closed.is_set():
            try:
                await self.closed.wait()
            except asyncio.CancelledError:
                continue


@dataclass
class StuckPeers:
    """A transport whose connections do not close before they are told to, not even when they are cancelled."""

    peers: list[StuckPeer] = field(default_factory=list)

    async def start(self) -> None: ...

    async def connect(self, seat: Seat, offer: Offer, *, on_closed: Callable[[], None]) -> StuckPeer:
        self.peers.append(StuckPeer())
        return self.peers[-1]

    async def close(self) -> None: ...


async def test_a_connection_that_does_not_close_is_told_and_holds_up_nobody_not_even_the_end() -> None:
    stuck = StuckPeers()
    async with asyncio.timeout(DEADLINE_S), a_site(peers=stuck, deadlines=SOON) as site:
        async with site.sits("tamsin") as tamsin:
            ticket = (await next_of(tamsin, "welcome"))["ticket"]
            assert (await site.offer("tamsin", "v=0", ticket=ticket)).status_code == 200
        health = await told(site, "/healthz", until=lambda health: not health["ok"])
        assert "has not hung up" in str(health["trouble"])
        for player in ("tamsin", "bran"):
            async with site.sits(player) as socket:
                await next_of(socket, "welcome")
        assert (await site.http.get("/readyz")).status_code == 200
    assert len(stuck.peers) == 1
    stuck.peers[0].closed.set()


# Ears that do not open or close


class WrongTable(TwinTable):
    """Whose settings no ear can be built with."""

    async def seat(self, player: Player) -> TwinSeat:
        raise InvalidInput("deepgram needs DEEPGRAM_API_KEY")


async def test_what_is_wrong_with_the_settings_of_an_ear_is_not_for_players() -> None:
    async with a_site(WrongTable()) as site, site.sits("tamsin") as tamsin:
        refused = await next_of(tamsin, "refused")
    assert refused["code"] == "unavailable"
    assert "DEEPGRAM" not in refused["message"]
    assert "the DM's log says why" in refused["message"]


class SlowTable(TwinTable):
    """Tamsin's ear opens and closes when it is told to."""

    opens = True
    closes = True

    def __init__(self) -> None:
        super().__init__()
        self.opened = asyncio.Event()

    async def seat(self, player: Player) -> TwinSeat:
        if player is TAMSIN and not self.opens:
            await self.opened.wait()
        seat = await super().seat(player)
        if player is TAMSIN and not self.closes:
            leave = seat.leave

            async def never() -> None:
                try:
                    await asyncio.Event().wait()
                finally:
                    await leave()

            seat.leave = never  # type: ignore[method-assign]
        return seat


async def test_an_ear_that_does_not_open_is_told_refused_in_time_and_holds_up_no_other_seat() -> None:
    table = SlowTable()
    table.opens = False
    async with a_site(table, deadlines=SOON) as site, site.sits("tamsin") as tamsin:
        ready = await told(site, "/readyz", until=lambda answer: "error" in answer)
        assert ready["error"]["code"] == "not_ready"
        assert "the seat of tamsin" in str((await site.http.get("/healthz")).json()["trouble"])
        async with site.sits("bran") as bran:
            await next_of(bran, "welcome")
        refused = await next_of(tamsin, "refused")
        assert refused["code"] == "unavailable"
        with pytest.raises(ConnectionClosed):
            await tamsin.recv()
        assert tamsin.close_code == 4503
        table.opens = True
        async with site.sits("tamsin") as again:
            await next_of(again, "welcome")


async def test_a_page_hears_beats_while_its_ear_takes_long_to_open() -> None:
    """Or it would take the silence for a dead network, come again, and wait again, for ever."""
    table = SlowTable()
    table.opens = False
    pulse = Pulse(every_ms=20, page_waits_ms=DEADLINE_MS, server_waits_ms=DEADLINE_MS)
    async with a_site(table, pulse=pulse) as site, site.sits("tamsin") as tamsin:
        for _ in range(5):
            assert json.loads(await tamsin.recv()) == {"type": "beat"}
        table.opened.set()
        await next_of(tamsin, "welcome")


# Ghosts


async def test_a_seat_that_is_asked_for_without_end_is_refused_with_a_word_and_others_are_not_part_of_it() -> None:
    async with a_site() as site, site.sits("tamsin", ticket=TICKET) as tamsin:
        await next_of(tamsin, "welcome")
        codes = set()
        while "rationed" not in codes:
            async with site.sits("tamsin") as other:
                codes.add((await next_of(other, "refused"))["code"])
        assert codes == {"seat_taken", "rationed"}
        async with site.sits("bran") as bran:
            await next_of(bran, "welcome")


async def test_a_connection_that_was_long_on_its_way_throws_nobody_out() -> None:
    async with a_site() as site, site.sits("tamsin", ticket=TICKET, attempt=3) as back:
        await next_of(back, "welcome")
        async with site.sits("tamsin", ticket=TICKET, attempt=2) as late:
            assert (await next_of(late, "refused"))["code"] == "superseded"
        await back.send('{"say": "Still here."}')
        await next_of(back, "utterance")
