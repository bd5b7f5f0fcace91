"""How a player talks and finds what was said: by holding the button, with a volume of their own, and by words."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.support.axe import violations
from tests.support.browser import Open, say, sit
from tests.support.web_table import REPLY, TwinTable, served

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SPEECH = Path(__file__).parents[2] / "demo" / "players" / "greeting.wav"


async def test_who_holds_the_button_or_the_space_bar_is_heard_only_meanwhile(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url, flags={"speech": SPEECH, "again": True}) as page:
        await sit(page, "tamsin")
        await page.check("#hold")
        talk = page.locator("#talk")
        await expect(talk).to_have_accessible_name("Hold to talk")
        await talk.hover()
        await page.mouse.down()
        await expect(talk).to_have_accessible_name("Talking")
        await expect(page.locator(".said.partial.mine .words")).to_contain_text("Good evening")
        await page.mouse.up()
        await expect(talk).to_have_accessible_name("Hold to talk")
        # The table hears silence from then on: the turn ends, though the microphone still has speech.
        await expect(page.locator("#log .said.npc .words").first).to_have_text(REPLY)
        await expect(page.locator(".said.partial.mine")).to_have_count(0)
        await page.locator("#campaign").click()
        await page.keyboard.down("Space")
        await expect(talk).to_have_accessible_name("Talking")
        await page.keyboard.up("Space")
        await expect(talk).to_have_accessible_name("Hold to talk")
        await page.click("#say-text")
        await page.keyboard.type("a b")
        assert await page.input_value("#say-text") == "a b", "where it writes, the space bar is a space"
        assert await page.get_attribute("#talk", "data-state") == "held"
        await page.uncheck("#hold")
        await expect(talk).to_have_accessible_name("Talk")


async def test_what_a_player_chose_is_there_the_next_time_and_lines_are_found_by_words(
    table: TwinTable, opened: Open
) -> None:
    table.reply_ms = 0
    async with served(table) as url, opened(url) as page:
        await sit(page, "tamsin")
        await page.check("#hold")
        await page.locator("#volume").fill("40")
        await say(page, "Is the bell found?")
        await say(page, "I have nothing more.")
        await expect(page.locator("#log .said.mine")).to_have_count(2)
        await page.fill("#search", "BELL")
        await expect(page.locator("#search-told")).to_have_text("1 line")
        await expect(page.locator("#log .said.mine").nth(1)).to_be_hidden()
        await page.press("#search", "Escape")
        await expect(page.locator("#log .said.mine").nth(1)).to_be_visible()
        assert await violations(page) == []
        await page.reload()
        await expect(page.locator("#hold")).to_be_checked()
        assert await page.evaluate("document.getElementById('voices').volume") == pytest.approx(0.4)
