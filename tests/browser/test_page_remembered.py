"""A player sees what is remembered of them and withholds a line, in a real Chromium."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from playwright.async_api import expect

from glyphoxa.dm.ports import CitedUtterance
from glyphoxa.domain.ids import CampaignId, SpeakerId, UtteranceId
from glyphoxa.web.app import LINES_PER_PAGE, OwnLinesOfTable
from glyphoxa.world.event_log import Cause, WorldEvent
from glyphoxa.world.graph import ConsentChange
from tests.support.axe import violations
from tests.support.browser import Open, sit
from tests.support.web_table import SESSION, TwinTable, served
from tests.support.world_twin import WorldTwin

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@dataclass
class Words(WorldTwin):
    """Tamsin's utterances, in memory."""

    lines: list[CitedUtterance] = field(default_factory=list)

    async def own_lines(
        self, campaign: CampaignId, speaker: SpeakerId, *, before: UtteranceId | None = None, limit: int
    ) -> Sequence[CitedUtterance]:
        ids = [each.utterance_id for each in self.lines]
        end = len(ids) if before is None else ids.index(before)
        return self.lines[:end][::-1][:limit]

    async def consent(self, campaign: CampaignId, change: ConsentChange, cause: Cause) -> list[WorldEvent]:
        is_withheld = change.state == "withheld"
        self.lines = [
            replace(each, is_withheld=is_withheld, is_retracted=is_withheld)
            if each.utterance_id in change.utterances or change.session is not None
            else each
            for each in self.lines
        ]
        return []


async def test_player_withholds_a_line_and_the_session(table: TwinTable, opened: Open) -> None:
    texts = [f"I said {n}." for n in range(LINES_PER_PAGE + 1)]
    lines = [
        CitedUtterance(UtteranceId(f"u{n}"), SESSION, n, "Tamsin", text, 1_000 * n) for n, text in enumerate(texts)
    ]
    words = Words(lines=lines)
    remembered = OwnLinesOfTable(table.campaign.id, SESSION, words, words, lambda: 1_000)
    async with served(table, remembered=remembered) as url, opened(url, width=390, height=844) as page:
        await sit(page, "tamsin")
        await page.click("#side-toggle")
        await page.click("#remembered-open")
        items = page.locator("#remembered-lines > li")
        await expect(items).to_have_count(LINES_PER_PAGE)
        await expect(items.first).to_contain_text(texts[-1])
        assert await violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.click("#remembered-more")
        await expect(items).to_have_count(LINES_PER_PAGE + 1)
        await items.first.get_by_role("button", name="Do not remember").click()
        await expect(items.first).to_have_attribute("data-state", "withheld")
        await expect(items.nth(1)).to_have_attribute("data-state", "given")
        await items.first.get_by_role("button", name="Remember again").click()
        await expect(items.first).to_have_attribute("data-state", "given")
        await page.click("#remembered-forget")
        await expect(page.locator("#remembered-lines > li[data-state=withheld]")).to_have_count(LINES_PER_PAGE)
