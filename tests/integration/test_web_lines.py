"""Typed lines over a bad network and from a hasty hand: kept once, refused with a word, and nobody else waits."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from glyphoxa.web.page_socket import MAX_TEXT_LENGTH
from glyphoxa.web.seats import Pulse
from tests.support.patience import DEADLINE_MS, DEADLINE_S
from tests.support.web_client import a_site, next_of
from tests.support.web_table import TAMSIN, TwinTable

LINE = "0123456789abcdefghijk"


def a_line(text: str, line: str = LINE) -> str:
    return json.dumps({"say": text, "id": line})


async def heard_of(socket: ClientConnection, kind: str, line: str) -> dict[str, object]:
    """The next message of a kind about a line."""
    while True:
        message = await next_of(socket, kind)
        if message["line"] == line:
            return message


# Once


async def test_a_line_that_is_sent_again_is_said_once_and_acknowledged_each_time() -> None:
    async with a_site() as site:
        async with site.sits("tamsin") as tamsin:
            await tamsin.send(a_line("Grimjaw?"))
            await heard_of(tamsin, "utterance", LINE)
            await tamsin.send(a_line("Grimjaw?"))
            await heard_of(tamsin, "kept", LINE)
        async with site.sits("tamsin") as tamsin, site.sits("bran") as bran:
            history = (await next_of(tamsin, "welcome"))["history"]
            assert [said["line"] for said in history if said["type"] == "utterance"][0] == LINE
            await tamsin.send(a_line("Grimjaw?"))
            await heard_of(tamsin, "kept", LINE)
            # Somebody else's id is not taken by it.
            await bran.send(a_line("It is mine too."))
            await heard_of(bran, "utterance", LINE)
        assert [text for _, text in site.table.said] == ["Grimjaw?", "It is mine too."]


async def test_an_id_that_is_none_is_refused() -> None:
    async with a_site() as site, site.sits("tamsin") as tamsin:
        for line in ("", "short", "UPPER" * 5, "a" * 33, "a~bcdefghijklmnopq", "../../../etc/passwd"):
            await tamsin.send(a_line("Grimjaw?", line))
            error = await next_of(tamsin, "error")
            assert (error["code"], error["line"]) == ("invalid", None), line
        assert site.table.said == []


# Refused


async def test_a_line_that_is_too_long_is_refused_by_its_id_and_nothing_of_it_is_said() -> None:
    async with a_site() as site, site.sits("tamsin") as tamsin:
        await tamsin.send(a_line("a" * (MAX_TEXT_LENGTH + 1)))
        error = await next_of(tamsin, "error")
        assert (error["code"], error["line"]) == ("too_long", LINE)
        assert str(MAX_TEXT_LENGTH + 1) in error["message"]
        assert site.table.said == []


async def test_who_types_faster_than_the_table_can_take_in_is_told_at_that_line() -> None:
    async with a_site() as site, site.sits("tamsin") as tamsin:
        lines = [f"line{n:020}" for n in range(30)]
        for n, line in enumerate(lines):
            await tamsin.send(a_line(f"Line {n}.", line))
        error = await next_of(tamsin, "error")
        assert error["code"] == "rationed"
        assert error["line"] in lines
        assert "too many" in error["message"]
        # It may be sent again as it is.
        answer = error
        async with asyncio.timeout(DEADLINE_S):
            while answer["type"] == "error":
                await asyncio.sleep(0.1)
                await tamsin.send(a_line("Again.", error["line"]))
                answer = await next_of(tamsin, "utterance", "error")
                while answer["line"] != error["line"]:
                    answer = await next_of(tamsin, "utterance", "error")


async def test_scenes_are_rationed_too() -> None:
    async with a_site() as site, site.sits("tamsin") as tamsin:
        for _ in range(30):
            await tamsin.send('{"move": "inn-night"}')
        assert (await next_of(tamsin, "error"))["code"] == "rationed"


async def test_two_hundred_lines_a_second_on_one_seat_hold_up_no_other() -> None:
    """Lines of another player are kept while the flood goes on, and most of the flood never becomes work."""
    table = TwinTable(reply_ms=20)
    async with a_site(table) as site, site.sits("tamsin") as tamsin, site.sits("bran") as bran:
        await next_of(bran, "welcome")

        async def flood() -> None:
            for n in range(1_000_000):
                await tamsin.send(a_line("Grimjaw, Grimjaw, Grimjaw! " * 20, f"flood{n:020}"))
                await asyncio.sleep(0.005)

        async def read() -> None:
            async for _ in tamsin:
                pass

        began = time.monotonic()
        flooding, reading = asyncio.create_task(flood()), asyncio.create_task(read())
        try:
            for n in range(5):
                line = f"calm{n:020}"
                await bran.send(a_line(f"Calm {n}.", line))
                await heard_of(bran, "utterance", line)
            assert not flooding.done()
        finally:
            for task in (flooding, reading):
                task.cancel()
            await asyncio.gather(flooding, reading, return_exceptions=True)
        of_the_flood = [text for player, text in table.said if player == TAMSIN.id]
        assert len(of_the_flood) <= 8 + 1 + (time.monotonic() - began)


# Beats


async def test_a_page_that_answered_a_beat_and_falls_silent_is_dropped_and_its_seat_is_free() -> None:
    pulse = Pulse(every_ms=20, page_waits_ms=DEADLINE_MS, server_waits_ms=200)
    async with a_site(pulse=pulse) as site, site.sits("tamsin") as tamsin:
        assert (await next_of(tamsin, "welcome"))["lost_after_ms"] == DEADLINE_MS
        await next_of(tamsin, "beat")
        await tamsin.send('{"beat": true}')
        await site.table.wait_until(lambda: not site.table.seats)
        with pytest.raises(ConnectionClosed):
            await next_of(tamsin, "nothing more")


async def test_a_client_that_knows_no_beats_stays() -> None:
    pulse = Pulse(every_ms=20, page_waits_ms=DEADLINE_MS, server_waits_ms=100)
    async with a_site(pulse=pulse) as site, site.sits("tamsin") as tamsin:
        for _ in range(10):
            await next_of(tamsin, "beat")
        await tamsin.send('{"say": "Still here."}')
        await next_of(tamsin, "utterance")


async def test_the_seats_of_an_endless_talker_are_left_when_the_server_stops() -> None:
    async with asyncio.timeout(DEADLINE_S), a_site() as site, site.sits("tamsin") as tamsin:
        for n in range(500):
            await tamsin.send(a_line("Grimjaw!", f"flood{n:020}"))
