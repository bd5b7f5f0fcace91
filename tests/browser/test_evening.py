"""The whole thing: a real microphone file in a real browser, real models, and sound that comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from glyphoxa.bootstrap.table import open_table
from glyphoxa.config.settings import LlmSettings, ProvidersSettings, Settings, TurnsSettings
from tests.support.browser import a_browser, a_page, heard, listen
from tests.support.postgres import a_directory
from tests.support.web_table import served

pytestmark = [pytest.mark.browser, pytest.mark.models]

DEMO = Path(__file__).parents[2] / "demo"
SPEECH = DEMO / "players" / "greeting.wav"  # "Good evening, Korvald. How is my blade?"
ANSWER_WITHIN_MS = 120_000
"""A machine that does much else at once is slow; how fast an answer is, the benchmarks say."""

NOT_SILENT_RMS = 0.01

SETTINGS = Settings(
    campaign=DEMO / "campaign.yaml",
    providers=ProvidersSettings(llm=LlmSettings(name="qwen-0.5b")),
    turns=TurnsSettings(reply_deadline_ms=ANSWER_WITHIN_MS),
)


async def test_players_speak_or_type_in_their_browsers_and_hear_the_npcs_answer(tmp_path: Path) -> None:
    with a_directory() as data_dir:
        table = await open_table(SETTINGS.model_copy(update={"data_dir": data_dir}))
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

                async with _heard_speaking(hanna, joss):
                    await hanna.click("#talk")
                for page in (hanna, joss):
                    said = page.locator('#log .said.player[data-speaker="hanna"]')
                    await expect(said.filter(has_text="Korvald").first).to_be_visible()
                    await expect(said.filter(has_text="blade").first).to_be_visible()
                    await expect(page.locator('#log .said.npc[data-speaker="korvald"]').first).to_be_visible()
                await table.wait_until_quiet()

                async with _heard_speaking(hanna, joss):
                    await joss.fill("#say-text", "Marigund, what do people say about the Gloamfen?")
                    await joss.press("#say-text", "Enter")
                for page in (hanna, joss):
                    await expect(page.locator('#log .said.npc[data-speaker="marigund"]').first).to_be_visible()
                    answered = page.locator('.turn[data-outcome="answered"]', has_text="Joss → Marigund")
                    await expect(answered.locator('i[data-stage="first_audio"]')).to_be_attached()
        finally:
            await table.close()


async def _sit(page: Page, url: str, player: str) -> None:
    await page.goto(url)
    await page.click(f'.seat[data-player="{player}"]')
    await expect(page.locator("#voice-state")).to_have_attribute("data-state", "on")


@asynccontextmanager
async def _heard_speaking(*pages: Page) -> AsyncIterator[None]:
    """By what is done in the block an NPC begins to speak, and every page shows and hears it."""
    for page in pages:
        await listen(page, ms=100, louder_than=NOT_SILENT_RMS)
    speaking = [
        asyncio.create_task(page.locator(".said.npc.speaking").wait_for(timeout=ANSWER_WITHIN_MS)) for page in pages
    ]
    yield
    await asyncio.gather(*speaking)
    for page in pages:
        assert (await heard(page))["rms"] > NOT_SILENT_RMS
