"""Every page of the desk with a campaign in it, in a real Chromium, on a phone and on a screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.app.background import timeline_writer
from glyphoxa.app.scope import Scope
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import SessionId
from glyphoxa.web.access.roles import Grant, Role
from tests.support.axe import violations
from tests.support.browser import a_browser, a_page
from tests.support.command_line import CAMPAIGN_FILE, SALTMERE
from tests.support.proof import IS_PROOF
from tests.support.web_door import a_door
from tests.support.web_table import TwinTable

PAGES = (
    "review",
    "knowledge",
    "knowledge?npc=grimjaw",
    "ask?say=Who+owes+you+money",
    "secrets",
    "world",
    "world/elowen?hops=3",
    "memory?npc=grimjaw",
    "memory?type=event",
    "memory/timeline?node=episode-s1%231",
    "memory/types",
    "sessions",
    "sessions/s1",
    "sessions/s1/recap",
    "sessions/s1/wrap-up",
    "sessions/s1/memory",
    "sessions/s1/line?line=2",
    "sessions/s1/back?line=1",
    "names",
    "campaign",
    "campaign?type=event",
    "import",
    "import?decision=skipped&type=npc",
    "turns",
    "links",
)


@pytest.mark.browser
async def test_desk_pages_fit_and_are_accessible(evenings_dsn: str, tmp_path: Path) -> None:
    campaign = read_campaign(CAMPAIGN_FILE).campaign
    table = TwinTable(campaign)
    async with (
        open_store(evenings_dsn) as store,
        a_door(tmp_path, table, desk=Scope(store, Settings(campaign=CAMPAIGN_FILE), SALTMERE)) as door,
        a_browser() as browser,
        a_page(browser, width=390, height=900) as page,
    ):
        await (await timeline_writer(store, SALTMERE)).write(SessionId("s1"), is_over=True)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        await page.goto(door.links.dm_link())
        await page.wait_for_url(f"{door.origin}/desk")
        for path in PAGES[:: None if IS_PROOF else 3]:
            await page.goto(f"{door.origin}/desk/{path}")
            assert await violations(page) == [], path
            for width in (390, 1_440):
                await page.set_viewport_size({"width": width, "height": 900})
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, width)
        assert errors == []
        assert door.links.link(Grant(Role.SPECTATOR)) in await page.content()


@pytest.mark.browser
async def test_single_keys_decide_on_facts(evenings_dsn: str, tmp_path: Path) -> None:
    campaign = read_campaign(CAMPAIGN_FILE).campaign
    table = TwinTable(campaign)
    async with (
        open_store(evenings_dsn) as store,
        a_door(tmp_path, table, desk=Scope(store, Settings(), SALTMERE)) as door,
        a_browser() as browser,
        a_page(browser, width=1_440, height=900) as page,
    ):
        await page.goto(door.links.dm_link())
        await page.wait_for_url(f"{door.origin}/desk")
        await page.goto(f"{door.origin}/desk/review")
        n = await page.locator(".fact").count()
        await page.keyboard.press("a")
        assert "done" not in page.url, "no fact has the focus"
        await page.keyboard.press("j")
        await page.keyboard.press("x")
        await expect(page.locator(".fact").first.get_by_role("checkbox")).to_be_checked()
        await page.keyboard.press("r")
        await expect(page.locator(".done")).to_contain_text("Rejected: ")
        await expect(page.locator(".fact")).to_have_count(n - 1)
        await expect(page.locator(".fact").first).to_be_focused()
