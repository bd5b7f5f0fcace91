"""A player reads what happens with their voice, agrees, is heard, and withdraws it, in a real Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from glyphoxa.config.settings import Settings
from glyphoxa.web.access.links import Entrance
from glyphoxa.web.access.records import ConsentRegister, consent_text
from tests.support.axe import violations
from tests.support.browser import Open, sit
from tests.support.web_table import TAMSIN, TwinTable, served

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_player_agrees_before_talking_and_withdraws(tmp_path: Path, table: TwinTable, opened: Open) -> None:
    text = consent_text(Settings(), language="en")
    entrance = Entrance(consents=ConsentRegister(tmp_path / "consents", text))
    async with served(table, entrance=entrance) as url, opened(url, width=390, height=844) as page:
        await sit(page, "tamsin")
        dialog = page.locator("#consent-dialog")
        await page.click("#talk")
        await expect(dialog).to_be_visible()
        await expect(dialog).to_contain_text("Speech recognition (your voice): stays on the machine")
        assert await violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.screenshot(path=tmp_path / "consent.png")
        await page.click("#consent-decline")
        await expect(page.locator("#talk-label")).to_have_text("Talk")
        assert not table.seats[TAMSIN.id].heard
        await page.click("#talk")
        await page.click("#consent-agree")
        await expect(page.locator("#talk-label")).to_have_text("Mute")
        await table.wait_until(lambda: len(table.seats[TAMSIN.id].heard) > 0)
        await page.click("#side-toggle")
        await page.click("#withdraw")
        await expect(page.locator("[data-topic=consent]")).to_contain_text("The table no longer hears you.")
        await expect(page.locator("#talk-label")).to_have_text("Talk")
        await expect(page.locator("#voice-state")).to_have_attribute("data-state", "on")
        n_heard = len(table.seats[TAMSIN.id].heard)
        assert await violations(page) == []
        await page.click("#side-toggle")
        await page.click("#talk")
        await expect(dialog).to_be_visible()
        assert len(table.seats[TAMSIN.id].heard) == n_heard
