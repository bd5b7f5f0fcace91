"""A live table knows what was said at it, and the next session recalls it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import CampaignId
from glyphoxa.domain.knowledge import DM, RecalledFact
from tests.support.live_table import an_evening, patient, settings_for, with_chronicle, write_campaign
from tests.support.patience import DEADLINE_S

TOWN = CampaignId("town")
PROMISE = "Grimjaw, I promise to bring you the six crowns and the silver ring."


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    settings = with_chronicle(settings_for(write_campaign(tmp_path), dsn, tmp_path))
    return patient(settings)


async def is_found(dsn: str, predicate: str) -> None:
    async with open_store(dsn) as store, asyncio.timeout(DEADLINE_S):
        inspection = PostgresInspection(store.database)
        while not any(  # noqa: ASYNC110 - the table is told nothing of what it learns
            fact.claim.predicate == predicate for fact in await inspection.current(TOWN, DM, limit=1_000)
        ):
            await asyncio.sleep(0.05)


async def test_promise_awaits_review_and_is_recalled_unasked_as_it_was_said(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch, session="first") as evening:
        assert PROMISE not in (await evening.asked("Grimjaw, good evening.")).prompt.text
        await evening.asked(PROMISE)
        await is_found(dsn, "promise")
    async with an_evening(settings, monkeypatch, session="second") as evening:
        turn = await evening.asked("Grimjaw, good evening.")
        assert PROMISE in turn.prompt.text
        facts = [each for each in turn.prompt.recalled if isinstance(each, RecalledFact) and not each.is_summary]
        assert not any("promise" in each.text for each in facts)
