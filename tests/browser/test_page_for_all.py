"""The page works without a mouse, with a screen reader, and with large text and strong contrast."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Page, expect

from glyphoxa.domain.events import Degraded, NpcSpeaks, NpcThinks, Trouble, TurnFinished
from glyphoxa.domain.ids import SceneId, TurnId
from glyphoxa.domain.turn_record import Outcome, Unaddressed
from tests.support.axe import violations
from tests.support.browser import Open, say, sit
from tests.support.builders import a_turn_record
from tests.support.patience import DEADLINE_S
from tests.support.web_table import BRAN, CORRECTION, GRIMJAW, HEARD, ODWINA, RAW, TAMSIN, TwinTable, served

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LOOKS = [(width, scheme) for width in (390, 1440) for scheme in ("light", "dark")]
TWICE_THE_TEXT = {"standard": 32, "fixed": 26}

# A microphone whose opening the test decides, and that counts what is open of it.
MICROPHONE = """() => {
  window.open = [];
  const openReally = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (wish) => {
    await new Promise((allow) => { window.allow = allow; });
    const stream = await openReally(wish);
    window.open.push(...stream.getTracks());
    return stream;
  };
}"""
IS_ANY_OPEN = "window.open.some((track) => track.readyState === 'live')"


async def focused(page: Page) -> str:
    return str(await page.evaluate("document.activeElement.id || document.activeElement.tagName"))


async def until(page: Page, condition: str) -> None:
    """The page's content security policy forbids what Playwright's own way needs."""
    async with asyncio.timeout(DEADLINE_S):
        await page.evaluate(
            f"async () => {{ while (!({condition})) await new Promise((done) => setTimeout(done, 40)) }}"
        )


async def wrong_in_every_look(page: Page) -> list[str]:
    found = []
    for width, scheme in LOOKS:
        await page.set_viewport_size({"width": width, "height": 900})
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found += [f"{width} px, {scheme}: {violation}" for violation in await violations(page)]
    return found


async def test_nothing_serious_keeps_anybody_out_of_the_lobby_the_table_or_the_dialog(
    table: TwinTable, opened: Open
) -> None:
    async with served(table) as url, opened(url) as page, opened(url) as other:
        await sit(other, "bran")
        await expect(page.locator('.seat[data-player="bran"]')).to_be_disabled()
        assert await wrong_in_every_look(page) == []
        await sit(page, "tamsin")
        await page.click("#figures summary")
        table.hear_turn(BRAN, HEARD, raw=RAW, corrections=(CORRECTION,))
        await expect(page.locator(".turn .ms")).to_have_count(1)
        await table.move(SceneId("inn-night"))
        table.tell(TurnFinished(a_turn_record(Outcome.NOT_ADDRESSED, unaddressed=Unaddressed.NO_NAME)))
        table.tell(NpcThinks(ODWINA.id, ODWINA.name, TurnId("t9"), TAMSIN.id, 1))
        table.tell(NpcSpeaks(GRIMJAW.id, GRIMJAW.name, TurnId("t7"), "Aye.", 1))
        table.tell(Degraded("", 1, Trouble.OUT, GRIMJAW.id))
        await page.fill("#say-text", "a" * 612)
        await expect(page.locator(".said.speaking")).to_be_visible()
        assert await wrong_in_every_look(page) == []
        await page.select_option("#scene", "forge-evening")
        await page.set_viewport_size({"width": 1440, "height": 900})
        await page.click("#move-table")
        await expect(page.locator("#move-dialog")).to_be_visible()
        assert await wrong_in_every_look(page) == []


async def test_on_a_phone_the_panel_over_the_talk_keeps_nobody_out(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url, width=390, height=844) as page:
        await sit(page, "tamsin")
        await page.click("#side-toggle")
        await page.click("#figures summary")
        await expect(page.locator("#turns-empty")).to_be_visible()
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert await violations(page) == []


async def test_space_on_talk_mutes_again_and_keeps_the_focus(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await page.evaluate(MICROPHONE)
        await sit(page, "tamsin")
        await page.focus("#talk")
        await page.keyboard.press("Space")
        assert await focused(page) == "talk"
        await until(page, "!!window.allow")
        await page.evaluate("window.allow()")
        await expect(page.locator("#talk")).to_have_accessible_name("Mute")
        assert await focused(page) == "talk"
        assert await page.evaluate(IS_ANY_OPEN)
        await page.keyboard.press("Space")
        await expect(page.locator("#talk")).to_have_accessible_name("Talk")
        assert await focused(page) == "talk"
        assert not await page.evaluate(IS_ANY_OPEN)


async def test_a_microphone_that_is_open_can_be_closed_while_the_server_is_gone(table: TwinTable, opened: Open) -> None:
    async with served(table) as url:
        context = opened(url, may_lose_server=True)
        page = await context.__aenter__()
        await page.evaluate(MICROPHONE)
        await sit(page, "tamsin")
        await page.click("#talk")
        await until(page, "!!window.allow")
        await page.evaluate("window.allow()")
        await expect(page.locator("#talk")).to_have_accessible_name("Mute")
        await page.focus("#talk")
    try:
        await expect(page.locator('.notice[data-topic="server"]')).to_be_visible()
        assert await focused(page) == "talk"
        await page.keyboard.press("Space")
        await expect(page.locator("#talk")).to_have_accessible_name("Talk")
        assert not await page.evaluate(IS_ANY_OPEN)
    finally:
        await context.__aexit__(None, None, None)


async def test_the_focus_goes_along_when_one_sits_down_leaves_and_dismisses(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await page.focus('.seat[data-player="tamsin"]')
        await page.keyboard.press("Enter")
        await expect(page.locator("#say-text")).to_be_focused()
        table.tell(Degraded("", 1, Trouble.RESTARTED))
        await page.focus(".notice button")
        await page.keyboard.press("Enter")
        await expect(page.locator("#say-text")).to_be_focused()
        await page.focus("#leave")
        await page.keyboard.press("Enter")
        await expect(page.locator("#lobby-title")).to_be_focused()
        await page.keyboard.press("Tab")
        await expect(page.locator(".seat").first).to_be_focused()
        # Somebody else sits down: the seats are drawn again.
        async with opened(url) as other:
            await sit(other, "bran")
            await expect(page.locator('.seat[data-player="bran"]')).to_be_disabled()
            await expect(page.locator(".seat").first).to_be_focused()


async def test_choosing_a_scene_moves_nobody_until_it_is_confirmed(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page, opened(url) as other:
        await sit(page, "tamsin")
        await sit(other, "bran")
        dialog = page.locator("#move-dialog")
        await page.focus("#scene")
        await page.keyboard.press("ArrowDown")
        await expect(page.locator("#scene")).to_have_value("inn-night")
        await page.focus("#move-table")
        await page.keyboard.press("Enter")
        await expect(dialog).to_contain_text("Everybody at the table moves to The Drowned Lantern, night.")
        await expect(dialog.locator("button[value=stay]")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()
        await expect(page.locator("#move-table")).to_be_focused()
        assert table.scene.id == "forge-evening"
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        for one in (page, other):
            await expect(one.locator("#log .divider")).to_have_text("The table moves to The Drowned Lantern, night.")
        await expect(page.locator("#move-table")).to_have_attribute("aria-disabled", "true")
        await page.reload()
        await expect(page.locator("#log .divider")).to_have_text("The table moves to The Drowned Lantern, night.")


async def test_table_moves_once_when_a_dialog_closes_twice(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await sit(page, "tamsin")
        await page.locator("#scene").select_option("inn-night")
        await page.evaluate(
            """() => {
                const dialog = document.getElementById("move-dialog");
                dialog.showModal();
                dialog.close("stay");
                dialog.showModal();
                dialog.close("move");
            }"""
        )
        await expect(page.locator("#log .divider")).to_have_text("The table moves to The Drowned Lantern, night.")
        await page.reload()
        await expect(page.locator("#log .divider")).to_have_count(1)


async def test_with_twice_the_text_everything_is_twice_as_large_and_can_be_reached_on_a_phone(
    table: TwinTable, opened: Open
) -> None:
    async with served(table) as url, opened(url, width=390, height=844) as page:
        await sit(page, "tamsin")
        await say(page, "Grimjaw?")
        await expect(page.locator("#log .said.npc")).to_have_count(1)
        size = "(id) => parseFloat(getComputedStyle(document.querySelector(id)).fontSize)"
        names = ("body", "#talk", ".said .words", "#say-text", "#wire-state", ".said .who")
        before = [await page.evaluate(size, name) for name in names]
        client = await page.context.new_cdp_session(page)
        await client.send("Page.enable")
        await client.send("Page.setFontSizes", {"fontSizes": TWICE_THE_TEXT})
        await expect(page.locator("body")).to_have_css("font-size", "32px")
        assert [await page.evaluate(size, name) for name in names] == [2 * px for px in before]
        for control in ("#talk", "#say-text", "#send", "#side-toggle"):
            await page.locator(control).scroll_into_view_if_needed()
            await page.locator(control).click(trial=True)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
