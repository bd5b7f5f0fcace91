"""The page speaks the browser's language, or the one that its reader chose."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from glyphoxa.config.settings import Settings
from glyphoxa.web.access.links import Entrance
from glyphoxa.web.access.records import CONSENT_LANGUAGES, ConsentRegister, consent_text
from tests.support.axe import violations
from tests.support.browser import Open, say, sit
from tests.support.web_table import TAMSIN, TwinTable, served

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_page_uses_german_until_the_reader_chooses_english(
    tmp_path: Path, table: TwinTable, opened: Open
) -> None:
    english, german = (consent_text(Settings(), language=each) for each in CONSENT_LANGUAGES)
    consents = ConsentRegister(tmp_path / "consents", english, others=[german])
    async with (
        served(table, entrance=Entrance(consents=consents)) as url,
        opened(url, width=390, height=844, locale="de-AT") as page,
    ):
        await expect(page.locator("#lobby-title")).to_have_text("Wer bist du heute Abend?")
        await expect(page.locator("html")).to_have_attribute("lang", "de")
        await sit(page, "tamsin")
        await expect(page.locator("#talk")).to_have_accessible_name("Sprechen")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert await violations(page) == []
        await page.click("#talk")
        await expect(page.locator("#consent-title")).to_have_text(german.title)
        await page.click("#consent-agree")
        await expect(page.locator("#talk")).to_have_accessible_name("Stumm")
        assert [each.text for each in consents.current()] == [german.whole]
        await page.click("#talk")
        await say(page, "a" * 601)
        await expect(page.locator("#say-count")).to_have_text(
            "1 zu viel: kürze den Text, oder sende ihn in zwei Teilen"
        )
        await page.fill("#say-text", "")
        # The seat is kept, the choice is remembered, and what was agreed to in German holds.
        await page.click("#side-toggle")
        await page.get_by_role("button", name="English").click()
        await expect(page.locator("#talk")).to_have_accessible_name("Talk")
        await expect(page.locator("#withdraw")).to_have_text("Withdraw consent to be heard")
        assert consents.current()[0].agrees
        await page.reload()
        await expect(page.locator("#talk")).to_have_accessible_name("Talk")
        assert TAMSIN.id in table.seats
