"""The seat of a shared microphone in a real Chromium, at a table with a real database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import PlayerId
from glyphoxa.web.access.links import Entrance, Links
from glyphoxa.web.access.records import ConsentRegister, consent_text
from glyphoxa.web.access.roles import Grant, Role
from tests.support.axe import violations
from tests.support.browser import a_page, say, sit
from tests.support.live_table import an_evening, settings_for, write_campaign
from tests.support.postgres import TestServer, a_test_server
from tests.support.web_table import served

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
UNKNOWN = "somebody at the table"


@pytest.fixture(scope="module")
def postgres() -> Iterator[TestServer]:
    with a_test_server() as server:
        yield server


async def test_shared_seat_agrees_for_all_and_its_speaker_is_corrected(
    chromium: Browser, postgres: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = postgres.server.dsn(await postgres.create())
    campaign = write_campaign(tmp_path, players=[{"name": "Tamsin"}, {"name": "Bran"}, {"table": True}])
    async with an_evening(settings_for(campaign, dsn, tmp_path), monkeypatch) as evening:
        links = Links(evening.table.campaign, tmp_path)
        text = consent_text(Settings(), language="en", tables=[UNKNOWN])
        consents = ConsentRegister(tmp_path / "consents", text)
        entrance = Entrance(links, consents=consents)
        async with served(evening.table, entrance=entrance, desk=evening.desk) as url:
            links.served_at(f"{url}/")
            async with a_page(chromium, width=390, height=900) as page, a_page(chromium, width=1_440, height=900) as dm:
                await page.goto(links.link(Grant(Role.PLAYER, PlayerId("table"))))
                await sit(page, "table")
                await page.click("#talk")
                await expect(page.locator("#consent-dialog")).to_contain_text("you agree for all of them")
                assert await violations(page) == []
                await page.click("#consent-decline")
                await say(page, "Grimjaw, I lost my sword.")
                await expect(page.locator(".said.player .who b").last).to_have_text(UNKNOWN)
                await say(page, "This is Tamsin. Grimjaw, is mine done?")
                await expect(page.locator(".said.player .who b").last).to_have_text("Tamsin")
                await expect(page.locator("#partials .said.player")).to_have_count(0)

                await evening.table.kept()
                await dm.goto(links.dm_link())
                await expect(dm.locator("#wire-state")).to_have_text("live")
                await dm.goto(f"{url}/desk/sessions/evening/line?line=1")
                await dm.get_by_label("Speaker").select_option(label="Bran")
                assert await violations(dm) == []
                await dm.get_by_role("button", name="Save").click()
                await expect(dm.locator("#l1")).to_contain_text("Bran: Grimjaw, I lost my sword.")
                await expect(page.locator(".said.player .who b").first).to_have_text("Bran")
