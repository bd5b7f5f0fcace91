"""The whole thing: a real microphone file in a real browser, real models, and sound that comes back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect
from playwright.async_api import TimeoutError as TookTooLong

from glyphoxa.app.table import open_table
from glyphoxa.config.provider_sections import LlmSettings, ProvidersSettings
from glyphoxa.config.sections import TurnsSettings
from glyphoxa.config.settings import Settings
from tests.support.browser import a_browser, a_page, heard, listen, say, sit
from tests.support.postgres import a_directory
from tests.support.web_table import served

pytestmark = [pytest.mark.browser, pytest.mark.models, pytest.mark.realtime]

DEMO = Path(__file__).parents[2] / "demo"
SPEECH = DEMO / "players" / "greeting.wav"  # "Good evening, Korvald. How is my blade?"
REPLY_DEADLINE_MS = 120_000
"""The longest that a table may be given: how fast an answer is, the benchmarks say."""
AGAIN_AFTER_MS = (30_000, 60_000, 120_000, 240_000)
"""How long a player waits for an answer before they say it again: longer each time, for a slow machine is late."""

NOT_SILENT_RMS = 0.01

SETTINGS = Settings(
    campaign=DEMO / "campaign.yaml",
    providers=ProvidersSettings(llm=LlmSettings(name="qwen-0.5b")),
    # What is heard is the answer.
    turns=TurnsSettings(reply_deadline_ms=REPLY_DEADLINE_MS, filler_after_ms=0),
)


async def test_players_speak_or_type_in_their_browsers_and_hear_the_npcs_answer(tmp_path: Path) -> None:
    with a_directory() as data_dir:
        table = (await open_table(SETTINGS.model_copy(update={"data_dir": data_dir}))).table
        try:
            async with (
                served(table) as url,
                a_browser(speech=SPEECH) as one,
                a_page(one) as hanna,
                a_browser() as another,
                a_page(another) as joss,
            ):
                await _sit(hanna, url, "hanna")
                await _sit(joss, url, "joss")

                await _listen(hanna, joss)
                await _speak_until_answered(hanna, "korvald", words=("Korvald", "blade"))
                for page in (hanna, joss):
                    for word in ("Korvald", "blade"):
                        await expect(_said_by_hanna(page, word)).to_be_visible()
                    await expect(_said_by_npc(page, "korvald")).to_be_visible()
                await _expect_heard(hanna, joss)
                await hanna.click("#talk")
                await expect(hanna.locator("#talk")).to_have_accessible_name("Talk")
                await table.wait_until_quiet()

                await _listen(hanna, joss)
                await _type_until_answered(joss, "marigund", "Marigund, what do people say about the Gloamfen?")
                for page in (hanna, joss):
                    await expect(_said_by_npc(page, "marigund")).to_be_visible()
                    answered = page.locator('.turn[data-outcome="answered"]', has_text="Joss → Marigund").first
                    await expect(answered.locator('i[data-stage="first_audio"]')).to_be_attached()
                await _expect_heard(hanna, joss)
        finally:
            await table.close()


async def _sit(page: Page, url: str, player: str) -> None:
    await page.goto(url)
    await sit(page, player)


def _said_by_hanna(page: Page, word: str) -> Locator:
    return page.locator('#log .said.player[data-speaker="hanna"]').filter(has_text=word).first


def _said_by_npc(page: Page, npc: str) -> Locator:
    return page.locator(f'#log .said.npc[data-speaker="{npc}"]').first


async def _speak_until_answered(hanna: Page, npc: str, *, words: Sequence[str]) -> None:
    """Open the microphone, which then says its words once; without all of `words` and an answer, repeat that.

    A browser without spare time drops sound, and a player whom nobody understood or answered says it again.
    """
    for again_after_ms in AGAIN_AFTER_MS:
        await hanna.click("#talk")
        await expect(hanna.locator("#talk")).to_have_accessible_name("Mute")
        try:
            for word in words:
                await _said_by_hanna(hanna, word).wait_for(timeout=again_after_ms)
            await _said_by_npc(hanna, npc).wait_for(timeout=again_after_ms)
        except TookTooLong:
            await hanna.click("#talk")
            await expect(hanna.locator("#talk")).to_have_accessible_name("Talk")
        else:
            return
    raise AssertionError(f"no answer, though it was said {len(AGAIN_AFTER_MS)} times")


async def _type_until_answered(joss: Page, npc: str, text: str) -> None:
    for again_after_ms in AGAIN_AFTER_MS:
        await say(joss, text)
        try:
            return await _said_by_npc(joss, npc).wait_for(timeout=again_after_ms)
        except TookTooLong:
            continue
    raise AssertionError(f"no answer, though it was typed {len(AGAIN_AFTER_MS)} times")


async def _listen(*pages: Page) -> None:
    for page in pages:
        await listen(page, ms=100, louder_than=NOT_SILENT_RMS)


async def _expect_heard(*pages: Page) -> None:
    """That each of `pages` has played speech since `_listen`."""
    for page in pages:
        assert (await heard(page))["rms"] > NOT_SILENT_RMS
