"""The page in a real Chromium, with a table that needs no models."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from glyphoxa.domain.events import (
    MemoryChanged,
    MemoryHealth,
    UtteranceKept,
    UtteranceRetracted,
    UtteranceRevised,
)
from glyphoxa.domain.heard import Correction
from glyphoxa.domain.ids import UtteranceId
from tests.support.browser import Open, heard, listen, say, sit
from tests.support.builders import an_utterance
from tests.support.patience import DEADLINE_MS, DEADLINE_S
from tests.support.web_table import BRAN, HEARD, RAW, REPLY, TAMSIN, TONE_HZ, TwinTable, served

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SPEECH = Path(__file__).parents[2] / "demo" / "players" / "greeting.wav"
LONG_REPLY_MS = 3_000
"""Length of the NPC's reply, for the player who hears it."""


async def test_a_player_types_reads_the_answer_and_hears_it(table: TwinTable, opened: Open) -> None:
    table.reply_ms = DEADLINE_MS
    async with served(table) as url, opened(url) as page:
        await expect(page).to_have_title(re.compile("Glyphoxa"))
        await sit(page, "tamsin")
        await listen(page, ms=1_000, louder_than=0.05)
        await say(page, "Grimjaw, is it done?")
        await expect(page.locator(".person.speaking")).to_have_attribute("data-id", "grimjaw")
        await expect(page.locator(".said.mine .words")).to_have_text("Grimjaw, is it done?")
        sound = await heard(page)
        assert sound["rms"] > 0.05
        assert sound["hz"] == pytest.approx(TONE_HZ, abs=15)
        table.reply_ms = 0  # He speaks until all of that was seen and heard.
        await expect(page.locator("#log .said.npc .words")).to_have_text(REPLY)
        await expect(page.locator(".person.speaking")).to_have_count(0)
        assert table.said == [(TAMSIN.id, "Grimjaw, is it done?")]


async def test_speech_is_captioned_as_it_comes_and_a_corrected_name_is_marked(table: TwinTable, opened: Open) -> None:
    # Over and over: a page without spare time may not show the beginning of what is over in three seconds.
    async with served(table) as url, opened(url, flags={"speech": SPEECH, "again": True}) as page:
        await sit(page, "tamsin")
        await page.click("#talk")
        await expect(page.locator(".said.partial.mine .words")).to_contain_text("Good evening")
        await expect(page.locator("#talk")).to_have_accessible_name("Mute")
        caption = page.locator("#log .said.mine .words").first
        await expect(caption).to_contain_text(HEARD[13:])
        await page.click("#talk")
        await expect(page.locator("#talk")).to_have_accessible_name("Talk")
        mark = caption.locator("mark")
        await expect(mark).to_have_attribute("data-raw", RAW[13:21])
        await expect(mark.locator(".tip")).to_be_hidden()
        # What is still said meanwhile moves the captions away from under the mouse.
        async with asyncio.timeout(DEADLINE_S):
            while not await mark.locator(".tip").is_visible():
                await mark.hover()


async def test_words_that_are_known_better_later_take_the_place_of_those_that_were_heard(
    table: TwinTable, opened: Open
) -> None:
    was = replace(an_utterance("Where is elder nacks?", id="late-1", speaker="Tamsin"), duration_ms=900)
    correction = Correction(9, 20, "elder nacks", "Eldrinax", 0.8, "llm", "sounds alike")
    now = replace(was, text="Where is Eldrinax?", corrections=(correction,))
    async with served(table) as url, opened(url) as page:
        await sit(page, "bran")
        table.tell(UtteranceKept(was))
        caption = page.locator("#log .said .words").first
        await expect(caption).to_have_text("Where is elder nacks?")
        table.tell(UtteranceRevised(now, was))
        await expect(caption.locator("mark")).to_have_attribute("data-raw", "elder nacks")
        await expect(caption).to_contain_text("Where is Eldrinax")
        # Who comes later reads the better words at once.
        await page.reload()
        await expect(page.locator("#log .said .words mark").first).to_have_attribute("data-raw", "elder nacks")


async def test_what_is_retracted_leaves_the_page_and_comes_back_with_its_undoing(
    table: TwinTable, opened: Open
) -> None:
    said = replace(an_utterance("It was Liora.", id="late-1", speaker="Tamsin"), duration_ms=900)
    async with served(table) as url, opened(url) as page:
        await sit(page, "bran")
        table.tell(UtteranceKept(said))
        line = page.locator("#log .said").filter(has_text="It was Liora.")
        await expect(line).to_be_visible()
        table.tell(UtteranceRetracted(said))
        await expect(line).to_be_hidden()
        table.tell(UtteranceRetracted(said, is_retracted=False))
        await expect(line).to_be_visible()
        table.tell(UtteranceRetracted(said))
        table.tell(UtteranceKept(replace(said, id=UtteranceId("late-2"), text="Who was it?")))
        await page.reload()
        await expect(page.locator("#log .said").filter(has_text="Who was it?")).to_be_visible()
        await expect(line).to_have_count(0)


async def test_each_turn_shows_where_its_time_went(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await sit(page, "tamsin")
        await expect(page.locator("#turns")).to_be_hidden()
        await page.click("#figures summary")
        await say(page, "Grimjaw?")
        turn = page.locator(".turn").first
        await expect(turn.locator(".ms")).to_have_text("1.18 s")
        await expect(turn.locator(".track i")).to_have_count(8)
        widths = await turn.locator(".track i").evaluate_all("bars => bars.map(b => b.getBoundingClientRect().width)")
        assert max(widths) == widths[0]  # the transcript took longest
        assert min(widths) >= 2


async def test_without_the_microphone_a_player_is_told_and_can_type(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url, flags={"microphone": False}) as page:
        await sit(page, "tamsin")
        await page.click("#talk")
        await expect(page.locator('.notice[data-topic="microphone"]')).to_contain_text("not allowed")
        await expect(page.locator("#talk")).to_have_accessible_name("Talk")
        await expect(page.locator("#say-text")).to_be_focused()
        await say(page, "Grimjaw?")
        await expect(page.locator("#log .said.npc .words")).to_have_text(REPLY)


async def test_closing_the_page_and_leaving_free_the_seat(table: TwinTable, opened: Open) -> None:
    async with served(table) as url:
        async with opened(url) as page:
            await sit(page, "tamsin")
            await page.click("#leave")
            await expect(page.locator('.seat[data-player="tamsin"]')).to_be_enabled()
            await table.wait_until(lambda: not table.seats)
            await sit(page, "bran")
            assert table.seats.keys() == {BRAN.id}
        await table.wait_until(lambda: not table.seats)


async def test_a_page_says_that_the_server_is_gone_and_comes_back_by_itself(table: TwinTable, opened: Open) -> None:
    table.reply_ms = LONG_REPLY_MS
    async with served(table) as url:
        port = int(url.rpartition(":")[2])
        context = opened(url, may_lose_server=True)
        page = await context.__aenter__()
        await sit(page, "tamsin")
    try:
        await expect(page.locator('.notice[data-topic="server"]')).to_be_visible()
        await expect(page.locator("#talk")).to_have_attribute("aria-disabled", "true")
        async with served(table, port=port):
            await expect(page.locator("#wire-state")).to_have_attribute("data-state", "on")
            await expect(page.locator("#voice-state")).to_have_attribute("data-state", "on")
            await expect(page.locator('.notice[data-topic="server"]')).to_have_count(0)
            await listen(page, ms=1_000, louder_than=0.05)
            await say(page, "Grimjaw, are you still there?")
            assert (await heard(page))["rms"] > 0.05
    finally:
        await context.__aexit__(None, None, None)


async def test_words_are_never_markup(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await sit(page, "tamsin")
        await say(page, "<img src=x onerror=alert(1)> & <b>Grimjaw</b>")
        await expect(page.locator(".said.mine .words")).to_have_text("<img src=x onerror=alert(1)> & <b>Grimjaw</b>")


async def test_phone_installs_the_page_and_shows_it_without_scrolling_sideways(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url, width=360, height=700) as page:
        manifest = await page.evaluate("fetch('/static/app.webmanifest').then((found) => found.json())")
        assert manifest["display"] == "standalone"
        assert await page.evaluate(f"fetch('{manifest['icons'][0]['src']}').then((found) => found.status)") == 200
        await sit(page, "tamsin")
        await say(page, "Grimjaw, " + "is it really done and sharp " * 12)
        await expect(page.locator("#log .said.npc")).to_have_count(1)
        for control in ("#talk", "#say-text", "#send", "#side-toggle"):
            await expect(page.locator(control)).to_be_in_viewport()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.click("#side-toggle")
        await expect(page.locator("#scene")).to_be_in_viewport()
        await page.click("#figures summary")
        await expect(page.locator(".turn .track i").first).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_everything_can_be_done_from_the_keyboard(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await expect(page.locator(".seat").first).to_be_enabled()
        await tab_to(page, 'document.activeElement.dataset.player === "tamsin"')
        await page.keyboard.press("Enter")
        await expect(page.locator("#say-text")).to_be_enabled()
        await tab_to(page, 'document.activeElement.id === "scene"')
        await tab_to(page, 'document.activeElement.id === "talk"')
        await tab_to(page, 'document.activeElement.id === "say-text"')
        await page.keyboard.type("Grimjaw?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".said.mine .words")).to_have_text("Grimjaw?")


async def tab_to(page: Page, is_there: str) -> None:
    for _ in range(30):
        await page.keyboard.press("Tab")
        if await page.evaluate(is_there):
            return
    raise AssertionError(f"the Tab key never led to: {is_there}")


async def test_missing_memory_is_shown_to_all_until_it_returns(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await sit(page, "tamsin")
        notice = page.locator('.notice[data-topic="memory"]')
        await expect(notice).to_have_count(0)
        table.health = MemoryHealth("degraded", 1_794_000_000_000, "the database is away", 3)
        table.tell(MemoryChanged(table.health, at_ms=1))
        await expect(notice).to_contain_text("everything said is saved.")
        async with opened(url) as later:
            await sit(later, "bran")
            await expect(later.locator('.notice[data-topic="memory"]')).to_be_visible()
        table.health = MemoryHealth("ok")
        table.tell(MemoryChanged(table.health, at_ms=2))
        await expect(notice).to_have_count(0)
