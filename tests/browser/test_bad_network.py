"""The page in a real Chromium while its network freezes, and what became of the words that were typed meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect
from websockets.asyncio.client import connect

from glyphoxa.web.seats import Pulse
from tests.support.browser import a_page
from tests.support.patience import DEADLINE_MS, until
from tests.support.web_client import next_of
from tests.support.web_table import PATIENT, TAMSIN, TwinTable, served

Way = Literal["both", "to_page"]


class FrozenNetwork:
    """A proxy on a port of its own.

    Attributes:
        server: The server's own address.
        url: The server, by this way.
    """

    def __init__(self, server: str) -> None:
        self.server = server
        self.url = ""
        self._port = int(server.rpartition(":")[2])
        self._frozen: frozenset[str] = frozenset()
        self._late = False
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._ways: set[asyncio.Task[None]] = set()

    @contextmanager
    def frozen(self, way: Way = "both", *, late: bool = False) -> Iterator[None]:
        """Nothing comes through.

        Args:
            way: Which direction is frozen.
            late: Messages of that time arrive afterwards; else they never do, and nothing more on that connection.
        """
        self._frozen = frozenset({"to_page"} if way == "to_page" else {"to_page", "to_server"})
        self._late = late
        self._thawed.clear()
        try:
            yield
        finally:
            self._frozen = frozenset()
            self._thawed.set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._ways.add(task)
        try:
            there, to_server = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                await asyncio.gather(self._pass(reader, to_server, "to_server"), self._pass(there, writer, "to_page"))
            finally:
                to_server.transport.abort()
        except OSError:
            pass
        finally:
            writer.transport.abort()
            self._ways.discard(task)

    async def _pass(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, way: str) -> None:
        is_swallowed = False
        with contextlib.suppress(OSError):
            while sent := await source.read(65_536):
                if way in self._frozen:
                    is_swallowed = is_swallowed or not self._late
                    if self._late:
                        await self._thawed.wait()
                if not is_swallowed:
                    to.write(sent)
                    await to.drain()
        # A frozen network does not tell that the other side has closed, either.
        if way in self._frozen or is_swallowed:
            if not self._late:
                return
            await self._thawed.wait()
        to.close()

    async def close(self) -> None:
        for task in self._ways:
            task.cancel()
        await asyncio.gather(*self._ways, return_exceptions=True)


@asynccontextmanager
async def a_frozen_network(url: str) -> AsyncIterator[FrozenNetwork]:
    """A way to the server at this address."""
    network = FrozenNetwork(url)
    server = await asyncio.start_server(network.connect, "127.0.0.1", 0)
    network.url = f"http://localhost:{server.sockets[0].getsockname()[1]}"
    try:
        yield network
    finally:
        server.close()
        await network.close()


pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

QUICK = Pulse(every_ms=200, page_waits_ms=3_000, server_waits_ms=DEADLINE_MS)
"""The page notices; the server keeps the ghost."""
BOTH_QUICK = Pulse(every_ms=200, page_waits_ms=3_000, server_waits_ms=3_000)


@pytest_asyncio.fixture(loop_scope="session")
async def table() -> AsyncIterator[TwinTable]:
    table = TwinTable(reply_ms=100)
    yield table
    await table.close()


@asynccontextmanager
async def at_the_table(
    table: TwinTable, chromium: Browser, *, pulse: Pulse = QUICK
) -> AsyncIterator[tuple[Page, FrozenNetwork]]:
    """Tamsin's page, on a network that can freeze."""
    async with (
        served(table, pulse=pulse) as url,
        a_frozen_network(url) as network,
        a_page(chromium) as page,
    ):
        await page.goto(network.url)
        await page.click('.seat[data-player="tamsin"]')
        await expect(page.locator("#voice-state")).to_have_attribute("data-state", "on")
        yield page, network


async def say(page: Page, text: str) -> None:
    await page.fill("#say-text", text)
    await page.press("#say-text", "Enter")


async def expect_gone(page: Page) -> None:
    await expect(page.locator("#wire-state")).to_have_text("reconnecting…")


async def expect_back(page: Page) -> None:
    await expect(page.locator("#wire-state")).to_have_attribute("data-state", "on")
    await expect(page.locator('.notice[data-topic="server"]')).to_have_count(0)


async def test_words_typed_into_a_frozen_network_are_pending_and_are_said_once_when_it_is_back(
    table: TwinTable, chromium: Browser
) -> None:
    async with at_the_table(table, chromium) as (page, network):
        with network.frozen():
            await say(page, "Grimjaw, hold the door!")
            await expect(page.locator(".said.pending .words")).to_have_text("Grimjaw, hold the door!")
            await expect(page.locator("#say-text")).to_have_value("")
            await expect_gone(page)
            assert table.said == []
        await expect_back(page)
        await expect(page.locator("#log .said.mine .words")).to_have_text("Grimjaw, hold the door!")
        await expect(page.locator(".said.pending")).to_have_count(0)
        assert table.said == [(TAMSIN.id, "Grimjaw, hold the door!")]
        assert table.seats.keys() == {TAMSIN.id}


async def test_words_that_arrived_and_whose_acknowledgement_was_lost_are_said_once(
    table: TwinTable, chromium: Browser
) -> None:
    async with at_the_table(table, chromium) as (page, network):
        with network.frozen("to_page"):
            await say(page, "Grimjaw, hold the door!")
            await expect(page.locator(".said.pending")).to_have_count(1)
            await until(lambda: bool(table.said))
            await expect_gone(page)
        await expect_back(page)
        await expect(page.locator("#log .said.mine")).to_have_count(1)
        await expect(page.locator(".said.pending")).to_have_count(0)
        assert table.said == [(TAMSIN.id, "Grimjaw, hold the door!")]


async def test_what_was_long_on_its_way_throws_nobody_out_and_says_nothing_twice(
    table: TwinTable, chromium: Browser
) -> None:
    async with at_the_table(table, chromium) as (page, network):
        with network.frozen(late=True):
            await say(page, "Grimjaw, hold the door!")
            await expect_gone(page)
        await expect_back(page)
        await expect(page.locator("#log .said.mine")).to_have_count(1)
        await say(page, "Still here.")
        await expect(page.locator("#log .said.mine .words").last).to_have_text("Still here.")
        await expect(page.locator("#lobby")).to_be_hidden()
        assert [text for _, text in table.said] == ["Grimjaw, hold the door!", "Still here."]


async def test_who_comes_back_has_the_seat_again_though_it_was_freed_meanwhile(
    table: TwinTable, chromium: Browser
) -> None:
    async with at_the_table(table, chromium, pulse=BOTH_QUICK) as (page, network):
        with network.frozen():
            await table.wait_until(lambda: not table.seats)
            await expect_gone(page)
        await expect_back(page)
        await expect(page.locator("#voice-state")).to_have_attribute("data-state", "on")
        assert table.seats.keys() == {TAMSIN.id}


async def test_a_seat_that_another_took_meanwhile_is_said_in_the_lobby_until_it_is_free(
    table: TwinTable, chromium: Browser
) -> None:
    async with at_the_table(table, chromium, pulse=BOTH_QUICK) as (page, network):
        origin = network.server
        with network.frozen():
            await table.wait_until(lambda: not table.seats)
            address = f"{origin.replace('http', 'ws')}/ws?player=tamsin"
            other = await connect(address, origin=origin)  # type: ignore[arg-type]
            await next_of(other, "welcome")
            await expect_gone(page)
        await expect(page.locator("#lobby")).to_be_visible()
        notice = page.locator('.notice[data-topic="seat"]')
        await expect(notice).to_contain_text("Tamsin is already at the table")
        await expect(page.locator('.notice[data-topic="server"]')).to_have_count(0)
        await other.close()
        await expect(notice).to_have_count(0)
        await page.click('.seat[data-player="tamsin"]')
        await expect_back(page)


async def test_a_line_that_was_not_acknowledged_survives_a_reload_of_the_tab(
    table: TwinTable, chromium: Browser
) -> None:
    async with at_the_table(table, chromium) as (page, network):
        with network.frozen():
            await say(page, "Grimjaw, hold the door!")
            await expect_gone(page)
        await page.reload()
        await expect(page.locator("#log .said.mine .words")).to_have_text("Grimjaw, hold the door!")
        assert table.said == [(TAMSIN.id, "Grimjaw, hold the door!")]


async def test_a_line_that_is_refused_says_why_at_its_bubble_and_can_be_sent_again_or_discarded(
    table: TwinTable, chromium: Browser
) -> None:
    async with at_the_table(table, chromium, pulse=PATIENT) as (page, _):
        await page.evaluate(
            """() => {
              const form = document.getElementById('say'), box = document.getElementById('say-text');
              for (let n = 0; n < 11; n++) { box.value = `Line ${n}.`; form.requestSubmit(); }
            }"""
        )
        refused = page.locator(".said.refused")
        await expect(refused.first.locator("[role=alert]")).to_contain_text("You are sending too fast.")
        await expect(page.locator(".said.pending")).to_have_count(0)
        n_refused = await refused.count()
        text = await refused.first.locator(".words").inner_text()
        await refused.last.locator("button:has-text('Discard')").click()
        await expect(refused).to_have_count(n_refused - 1)
        while await refused.locator(f".words:text-is('{text}')").count():
            await refused.first.locator("button:has-text('Send again')").click()
            await expect(page.locator(".said.pending")).to_have_count(0)
        await expect(page.locator(f"#log .said.mine .words:text-is('{text}')")).to_have_count(1)


PATIENT_PAGE = Pulse(every_ms=200, page_waits_ms=3_600_000, server_waits_ms=DEADLINE_MS)
"""The page's clock leaps, and its connection is as good as before."""
WAITS_S = (1, 2, 4, 8, 16, 30, 30, 30, 30, 30)


async def test_sound_is_tried_again_after_longer_waits_ten_times_and_then_when_the_player_says_so(
    table: TwinTable, chromium: Browser
) -> None:
    offers: list[str] = []

    async def refuse(route: Route) -> None:
        offers.append(route.request.url)
        await route.fulfill(status=503, json={"error": {"message": "no sound today"}})

    async with served(table, pulse=PATIENT_PAGE) as url, a_page(chromium) as page:
        await page.clock.install()
        await page.route("**/api/offer", refuse)
        await page.goto(url)
        await expect(page.locator(".seat")).to_have_count(2)
        await page.clock.pause_at(await page.evaluate("Date.now() + 1000"))
        await page.click('.seat[data-player="tamsin"]')
        voice, left = page.locator("#voice-state"), page.locator('.notice[data-topic="voice"] .left')
        await expect(voice).to_have_attribute("title", "no sound today")
        for n, wait_s in enumerate(WAITS_S, start=1):
            assert len(offers) == n
            await expect(left).to_have_text(f"in {wait_s} s")
            await page.clock.fast_forward(wait_s * 1_000 - 1)
            await expect(left).to_have_text("in 1 s")
            assert len(offers) == n
            await page.clock.fast_forward(1)
            await until(lambda n=n: len(offers) == n + 1)  # type: ignore[misc]
            await expect(voice).to_have_attribute("title", "no sound today")
        await expect(voice).to_have_attribute("data-state", "bad")
        await page.clock.fast_forward(600_000)
        assert len(offers) == len(WAITS_S) + 1
        await page.unroute("**/api/offer")
        await page.get_by_role("button", name="Reconnect").click()
        await expect(voice).to_have_attribute("data-state", "on")
        await expect(page.locator('.notice[data-topic="voice"]')).to_have_count(0)
