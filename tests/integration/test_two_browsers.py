"""Two browsers at one address: the same player twice, and two players behind one router."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.web.events import CloseReason
from tests.support.patience import until
from tests.support.web_client import Browser, a_site, next_of
from tests.support.web_door import Door, Visitor, a_door
from tests.support.web_table import BRAN, TAMSIN

TAMSINS, BRANS, DMS = Grant(Role.PLAYER, TAMSIN.id), Grant(Role.PLAYER, BRAN.id), Grant(Role.DM)
LAPTOP, PHONE, TABLET = (f"{name}-with-a-ticket-of-its-own" for name in ("laptop", "phone", "tablet"))


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    async with a_door(tmp_path) as door:
        yield door


def seat(ticket: str, *, attempt: int = 1, player: str = "tamsin") -> str:
    return f"player={player}&ticket={ticket}&attempt={attempt}"


async def say(socket: ClientConnection, text: str) -> None:
    await socket.send(json.dumps({"say": text}))
    while (await next_of(socket, "utterance"))["spans"][0]["text"] != text:
        pass


async def code_of(socket: ClientConnection) -> int:
    """The close code of a socket that the server closes."""
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            await socket.recv()
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


async def test_newer_browser_of_a_player_takes_the_seat_over(door: Door) -> None:
    laptop, phone = await door.invited(TAMSINS), await door.invited(TAMSINS)
    async with laptop.opens(seat(LAPTOP)) as older:
        await next_of(older, "welcome")
        await say(older, "From the laptop.")
        async with phone.opens(seat(PHONE)) as newer:
            assert (await next_of(newer, "welcome"))["ticket"] == PHONE
            assert await code_of(older) == CloseReason.TAKEN_OVER.code
            await say(newer, "From the phone.")
            assert door.table.seats.keys() == {TAMSIN.id}
    # Nothing is lost, and each line is one player's, once.
    assert door.table.said == [(TAMSIN.id, "From the laptop."), (TAMSIN.id, "From the phone.")]
    await until(lambda: not door.table.seats)


@pytest.mark.parametrize("attempt", [1, 2, 99])
async def test_older_browser_that_reconnects_by_itself_is_told(door: Door, attempt: int) -> None:
    laptop, phone = await door.invited(TAMSINS), await door.invited(TAMSINS)
    async with laptop.opens(seat(LAPTOP)) as older, phone.opens(seat(PHONE)) as newer:
        await next_of(newer, "welcome")
        async with laptop.opens(seat(LAPTOP, attempt=attempt)) as again:
            refused = await next_of(again, "refused")
            assert (refused["code"], await code_of(again)) == ("superseded", CloseReason.TAKEN_OVER.code)
        await say(newer, "Still here.")
        await code_of(older)


async def test_player_may_go_from_browser_to_browser_and_back(door: Door) -> None:
    visitor = await door.invited(TAMSINS)
    async with visitor.opens(seat(LAPTOP)) as one, visitor.opens(seat(PHONE)) as two:
        await next_of(two, "welcome")
        await code_of(one)
        async with visitor.opens(seat(TABLET)) as three:
            await next_of(three, "welcome")
            assert await code_of(two) == CloseReason.TAKEN_OVER.code
    await until(lambda: not door.table.seats)
    async with visitor.opens(seat(LAPTOP)) as one:
        assert (await next_of(one, "welcome"))["ticket"] == LAPTOP


async def test_tab_that_reloads_keeps_its_seat_and_its_sound(door: Door) -> None:
    visitor = await door.invited(TAMSINS)
    async with visitor.opens(seat(LAPTOP)) as before, visitor.opens(seat(LAPTOP, attempt=2)) as after:
        await next_of(after, "welcome")
        assert await code_of(before) == CloseReason.TAKEN_OVER.code
        await say(after, "Reloaded.")
    assert door.table.said == [(TAMSIN.id, "Reloaded.")]


async def test_sound_of_the_older_browser_ends(door: Door) -> None:
    laptop, phone = await door.invited(TAMSINS), await door.invited(TAMSINS)
    async with laptop.opens(seat(LAPTOP)) as older:
        await next_of(older, "welcome")
        browser = Browser()
        await browser.accept(await offer(laptop, await browser.offer(), LAPTOP))
        await browser.wait_until_connected()
        async with phone.opens(seat(PHONE)) as newer:
            await next_of(newer, "welcome")
            await browser.wait_until_closed()
            other = Browser()
            sdp = await other.offer()
            assert (await offer(laptop, sdp, LAPTOP)).status_code == 409
            await other.accept(await offer(phone, sdp, PHONE))
            await other.wait_until_connected()
            await other.close()
        await browser.close()


async def offer(visitor: Visitor, sdp: str, ticket: str) -> httpx.Response:
    body = {"player": "tamsin", "sdp": sdp, "type": "offer", "ticket": ticket}
    return await visitor.http.post("/api/offer", json=body)


async def test_seat_is_not_taken_over_by_anyone_else(door: Door) -> None:
    player, stranger, dm = await door.invited(TAMSINS), await door.invited(BRANS), await door.invited(DMS)
    async with player.opens(seat(LAPTOP)) as seated:
        await next_of(seated, "welcome")
        async with dm.opens(seat(PHONE)) as refused:
            assert (await next_of(refused, "refused"))["code"] == "seat_taken"
        assert await stranger.offers("tamsin") == 403
        await say(seated, "Mine.")


async def test_open_table_gives_a_taken_seat_to_nobody() -> None:
    async with a_site() as site, site.sits("tamsin", ticket=LAPTOP) as seated:
        await next_of(seated, "welcome")
        async with site.sits("tamsin", ticket=PHONE) as refused:
            answer = await next_of(refused, "refused")
            assert (answer["code"], await code_of(refused)) == ("seat_taken", 4409)
            assert "free seats: bran" in answer["message"]
        await say(seated, "Mine.")
