"""The game master's desk in a real Chromium: what is live, the grip on NPCs, and every page on a phone and a screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from glyphoxa.domain.ids import UtteranceId
from glyphoxa.npc.commands import Mute, Readdress, SayAs, StopAll, SummariseEvery
from tests.support.axe import violations
from tests.support.browser import Open
from tests.support.web_door import Door, a_door
from tests.support.web_table import CORRECTION, GRIMJAW, HEARD, ODWINA, RAW, REPLY, TAMSIN, TwinTable

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def enter(page: Page, door: Door) -> None:
    await page.goto(door.links.dm_link())
    await expect(page.locator("#wire-state")).to_have_text("live")


async def test_live_page_shows_transcript_and_sends_commands(tmp_path: Path, table: TwinTable, opened: Open) -> None:
    table.reply_ms = 0
    async with a_door(tmp_path, table) as door, opened(door.origin, may_lose_server=True) as page:
        broken: list[str] = []
        page.on("pageerror", lambda error: broken.append(str(error)))
        await enter(page, door)
        await expect(page.locator(".npc-card[data-here]")).to_have_count(2)
        table.say(TAMSIN.id, "Grimjaw, is it done?")
        await expect(page.locator("#log .said .words").last).to_have_text(REPLY)
        await expect(page.locator("#log .note a")).to_have_attribute("href", "/desk/turns/turn-2")
        await page.get_by_role("button", name="Mute Grimjaw", exact=True).click()
        await expect(page.locator("#answer")).to_have_text("done: Mute")
        await page.get_by_label("Say as Grimjaw").fill("Out with you!")
        await page.get_by_label("Say as Grimjaw").press("Enter")
        await expect(page.locator("#answer")).to_have_text("done: SayAs")
        await expect(page.get_by_label("Say as Grimjaw")).to_have_value("")
        await page.keyboard.press("Alt+Shift+S")
        await expect(page.locator("#answer")).to_have_text("done: StopAll")
        await page.locator("#rounds").fill("50")
        await expect(page.locator("output")).to_have_text("50")
        await page.get_by_role("button", name="Set").click()
        await expect(page.locator("#answer")).to_have_text("done: SummariseEvery")
        assert table.obeyed.pop() == SummariseEvery(50)
        assert table.obeyed[-3:] == [Mute(GRIMJAW.id), SayAs(GRIMJAW.id, "Out with you!"), StopAll()]
        await page.get_by_label("Scene").select_option("inn-night")
        await page.get_by_role("button", name="Move the table").click()
        await expect(page.locator(".npc-card[data-here]")).to_have_count(1)
        assert table.scene.id == "inn-night"
        assert broken == []


async def test_one_key_says_who_a_line_was_for(tmp_path: Path, table: TwinTable, opened: Open) -> None:
    table.reply_ms = 0
    async with a_door(tmp_path, table) as door, opened(door.origin, may_lose_server=True) as page:
        await enter(page, door)
        await expect(page.locator(".npc-card kbd")).to_have_text(["1", "2"])
        table.hear_turn(TAMSIN, HEARD, raw=RAW, corrections=(CORRECTION,))
        await expect(page.locator("#log .said .words").last).to_have_text(REPLY)
        await page.keyboard.press("2")
        await expect(page.get_by_role("status").filter(has_text="done: Readdress")).to_be_visible()
        await page.keyboard.press("3")
        await page.get_by_label("Say as Grimjaw").press("1")
        await expect(page.get_by_label("Say as Grimjaw")).to_have_value("1")
        await page.locator("#log mark").focus()
        await page.keyboard.press("1")
        await page.get_by_role("button", name="Stop all NPCs").press("0")
        await page.get_by_role("button", name="That was for Odwina Vell").click()
        await table.wait_until(lambda: len(table.obeyed) == 4)
        last, line = (
            UtteranceId(""),
            UtteranceId(await page.locator("#log .player").get_attribute("data-utterance") or ""),
        )
        wanted = [(ODWINA.id, last), (GRIMJAW.id, line), (None, last), (ODWINA.id, last)]
        assert table.obeyed == [Readdress(*each) for each in wanted]
        await page.get_by_label("Scene").select_option("inn-night")
        await page.get_by_role("button", name="Move the table").click()
        await expect(page.locator(".npc-card kbd")).to_have_text(["", "1"])


@pytest.mark.parametrize("width", [390, 1_440])
async def test_desk_is_accessible_on_phone_and_screen(
    tmp_path: Path, table: TwinTable, opened: Open, width: int
) -> None:
    async with (
        a_door(tmp_path, table) as door,
        opened(door.origin, may_lose_server=True, width=width, height=900) as page,
    ):
        await enter(page, door)
        assert await violations(page) == []
        talk, grip = await page.locator(".talk").bounding_box(), await page.locator(".grip").bounding_box()
        assert talk is not None
        assert grip is not None
        assert talk["y"] < 300, "what is said is seen without scrolling"
        assert min(talk["width"], grip["width"]) > 300
        await page.get_by_role("link", name="Links").click()
        await expect(page.locator(".links img").first).to_be_visible()
        assert await violations(page) == []
        for path in ("/desk", "/desk/links"):
            await page.goto(f"{door.origin}{path}")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_palette_opens_pages_and_presses_buttons_by_keyboard(
    tmp_path: Path, table: TwinTable, opened: Open
) -> None:
    async with a_door(tmp_path, table) as door, opened(door.origin, may_lose_server=True) as page:
        await enter(page, door)
        await page.keyboard.press("Control+K")
        await page.keyboard.type("stop all")
        await expect(page.locator("#palette-list").get_by_role("option")).to_have_text(["Stop all NPCs"])
        assert await violations(page) == []
        await page.keyboard.press("Enter")
        await expect(page.locator("#answer")).to_have_text("done: StopAll")
        await page.keyboard.press("Control+K")
        await page.keyboard.type("lin")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Links to the table")
