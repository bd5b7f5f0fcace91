"""The door passes pages and messages to the node that has the table, and finds the table again after it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from glyphoxa.domain.errors import Unavailable
from glyphoxa.plugins.cluster import door as door_module
from glyphoxa.plugins.cluster.door import Door, Find

MOOR = {"glyphoxa_table": "moor"}


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


def a_node(name: str) -> web.Application:
    """A table's page: tells what it was asked, sets two cookies, echoes messages and closes when told to."""

    async def page(request: web.Request) -> web.Response:
        told = {"node": name, "path": request.raw_path, "body": await request.text()}
        told |= {each: request.headers.get(each, "") for each in ("Host", "X-Forwarded-For", "X-Forwarded-Proto")}
        answer = web.json_response(told, status=201)
        answer.set_cookie("one", "1")
        answer.set_cookie("two", "2")
        return answer

    async def socket(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for message in ws:
            if message.data == "close":
                await ws.close(code=4503, message=b"the table was closed")
            else:
                await ws.send_str(f"{name} heard {message.data}")
        return ws

    app = web.Application()
    app.router.add_get("/ws", socket)
    app.router.add_route("*", "/{path:.*}", page)
    return app


@asynccontextmanager
async def at_the_door(find: Find) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    async with served(Door(find).app()) as door, aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as browser:
        yield door, browser


def always(address: str) -> Callable[[str], Awaitable[str]]:
    async def find(_: str) -> str:
        return address

    return find


async def test_a_link_names_the_campaign_once() -> None:
    async with at_the_door(always("")) as (door, browser):
        answer = await browser.get(f"{door}t/moor/join", allow_redirects=False)
        assert (answer.status, answer.headers["Location"]) == (303, "/join")
        assert answer.cookies["glyphoxa_table"].value == "moor"


async def test_a_request_is_passed_on_whole_and_so_is_the_answer() -> None:
    async with served(a_node("a")) as node, at_the_door(always(node)) as (door, browser):
        answer = await browser.post(URL(f"{door}api/join?x=%2F", encoded=True), data="token", cookies=MOOR)
        told = await answer.json()
        assert (answer.status, answer.headers.getall("Set-Cookie")) == (201, ["one=1; Path=/", "two=2; Path=/"])
    assert told == {
        "node": "a",
        "path": "/api/join?x=%2F",
        "body": "token",
        "Host": door.removeprefix("http://").rstrip("/"),
        "X-Forwarded-For": "127.0.0.1",
        "X-Forwarded-Proto": "http",
    }


async def test_messages_go_both_ways_and_the_code_of_closing_reaches_the_page() -> None:
    async with served(a_node("a")) as node, at_the_door(always(node)) as (door, browser):
        page = await browser.ws_connect(f"{door}ws", headers={"Cookie": "glyphoxa_table=moor"})
        await page.send_str("hello")
        assert await page.receive_str() == "a heard hello"
        await page.send_str("close")
        await page.receive()
        assert page.close_code == 4503


async def test_after_a_node_is_lost_the_table_is_looked_up_again() -> None:
    addresses: list[str] = []

    async def find(_: str) -> str:
        return addresses[-1]

    async with at_the_door(find) as (door, browser):
        async with served(a_node("a")) as first:
            addresses.append(first)
            async with browser.get(door, cookies=MOOR) as answer:
                assert (await answer.json())["node"] == "a"
        async with served(a_node("b")) as second:
            addresses.append(second)
            async with browser.get(door, cookies=MOOR) as answer:
                assert (await answer.json())["node"] == "b"


async def test_a_table_that_is_still_being_opened_is_waited_for() -> None:
    async with served(a_node("a")) as node:
        answers = iter(["", "", node])

        async def find(_: str) -> str:
            return next(answers)

        async with at_the_door(find) as (door, browser), browser.get(door, cookies=MOOR) as answer:
            assert answer.status == 201


async def test_problems_are_plain_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(_: str) -> str:
        raise Unavailable("no node can take the table")

    monkeypatch.setattr(door_module, "OPENS_WITHIN_S", 0.01)
    for find, cookies, status, text in (
        (full, MOOR, 503, "The table cannot be opened now; try again soon."),
        (always(""), MOOR, 503, "The table is being opened; try again in a moment."),
        (always("http://127.0.0.1:9/"), MOOR, 502, "The table does not answer; try again in a moment."),
        (always(""), {}, 404, "Open the link that your game master sent you."),
        (always(""), {"glyphoxa_table": "../x"}, 404, "Open the link that your game master sent you."),
    ):
        async with at_the_door(find) as (door, browser), browser.get(door, cookies=cookies) as answer:
            assert (answer.status, await answer.text()) == (status, text)


async def test_what_a_node_may_have_taken_is_not_sent_twice() -> None:
    heads: list[bytes] = []

    async def breaks_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    server = await asyncio.start_server(breaks_off, "127.0.0.1", 0)
    node = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, at_the_door(always(node)) as (door, browser):
        answer = await browser.post(f"{door}api/join", data="token", cookies=MOOR)
        assert (answer.status, len(heads)) == (502, 1)
