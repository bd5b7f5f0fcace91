"""A player's way from the link in a messenger to the table, in a real Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from glyphoxa.web.access.roles import Grant, Role
from tests.support.browser import Open, say, sit
from tests.support.web_door import a_door
from tests.support.web_table import TAMSIN, TwinTable

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_without_a_link_the_page_says_how_to_get_in_and_shows_nothing(
    tmp_path: Path, table: TwinTable, opened: Open
) -> None:
    async with a_door(tmp_path, table) as door, opened(door.origin, may_lose_server=True) as page:
        await expect(page.locator(".notice")).to_contain_text("Open the link that your game master sent you")
        await expect(page.locator(".seat")).to_have_count(0)
        assert "Thornwick" not in await page.content()


async def test_a_link_leads_to_ones_own_seat_and_leaves_the_address_bar(
    tmp_path: Path, table: TwinTable, opened: Open
) -> None:
    table.reply_ms = 0
    async with a_door(tmp_path, table) as door, opened(door.origin, may_lose_server=True) as page:
        await page.goto(door.links.link(Grant(Role.PLAYER, TAMSIN.id)))
        await expect(page.locator(".seat")).to_have_count(1)
        assert page.url == f"{door.origin}/"
        await sit(page, "tamsin")
        await expect(page.locator("#move")).to_be_hidden()
        await say(page, "Grimjaw, is it done?")
        await expect(page.locator(".said.mine .words")).to_have_text("Grimjaw, is it done?")
        door.links.revoke(Grant(Role.PLAYER, TAMSIN.id))
        await expect(page.locator("[data-topic=seat]")).to_contain_text("link is no longer valid for this seat")
        await expect(page.locator("[data-topic=invitation]")).to_contain_text("Open the link")


async def test_a_spectator_reads_along_without_a_seat(tmp_path: Path, table: TwinTable, opened: Open) -> None:
    table.reply_ms = 0
    async with a_door(tmp_path, table) as door, opened(door.origin, may_lose_server=True) as page:
        await page.goto(door.links.link(Grant(Role.SPECTATOR)))
        await page.get_by_role("button", name="Watch without a seat").click()
        await expect(page.locator("#table")).to_be_visible()
        await expect(page.locator("#say")).to_be_hidden()
        table.say(TAMSIN.id, "Good evening, Grimjaw.")
        await expect(page.locator("#log .said .words").first).to_have_text("Good evening, Grimjaw.")


async def test_the_game_masters_link_opens_every_seat_and_works_once(
    tmp_path: Path, table: TwinTable, opened: Open
) -> None:
    async with a_door(tmp_path, table) as door, opened(door.origin, may_lose_server=True) as page:
        link = door.links.dm_link()
        await page.goto(link)
        await expect(page).to_have_url(f"{door.origin}/desk")
        await page.get_by_role("link", name="The players' page").click()
        await expect(page.locator(".seat")).to_have_count(2)
        await sit(page, "tamsin")
        await expect(page.locator("#move")).to_be_visible()
        await page.context.clear_cookies()
        await page.goto(link)
        await expect(page.locator("#joining")).to_contain_text("This link is no longer valid.")
