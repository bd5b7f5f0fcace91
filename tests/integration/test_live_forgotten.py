"""A player who says "forget what I said" at an open table is obeyed at once, whatever the settings and the database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import chronicle_worker
from glyphoxa.config.settings import Settings
from glyphoxa.domain.events import MemoryChanged, TurnFinished, UtteranceRetracted
from glyphoxa.domain.ids import CampaignId, NpcId, PlayerId
from glyphoxa.web.app import OwnLinesOfTable, RememberBody
from tests.support.live_table import SESSION, Evening, an_evening, patient, settings_for, write_campaign
from tests.support.network import Network, a_network
from tests.support.patience import DEADLINE_MS

TOWN, GRIMJAW, TAMSIN = CampaignId("town"), NpcId("grimjaw"), PlayerId("tamsin")
SECRET, REQUEST = "Grimjaw, my name is really Quillon.", "Grimjaw, please don't remember that."
ANSWER = "Quillon is a fine name."
MODEL = {"name": "openai-compatible", "base_url": "http://127.0.0.1:9/v1", "model": "m"}


@pytest.fixture
async def network(dsn: str) -> AsyncIterator[Network]:
    async with a_network(dsn) as network:
        yield network


@pytest.fixture(autouse=True)
def without_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    use = Database.use

    def in_time(self: Database, campaign: CampaignId | None, *, deadline_ms: int = DEADLINE_MS) -> Any:
        return use(self, campaign, deadline_ms=max(deadline_ms, DEADLINE_MS))

    monkeypatch.setattr(Database, "use", in_time)
    monkeypatch.setattr("glyphoxa.app.memory.OPEN_MS", 2_000)
    monkeypatch.setattr("glyphoxa.transcript.delivery._FIRST_PAUSE_MS", 5)
    monkeypatch.setattr("glyphoxa.transcript.delivery._LONGEST_PAUSE_MS", 20)


def settings_at(directory: Path, dsn: str, **memory: object) -> Settings:
    settings = settings_for(write_campaign(directory), dsn, directory)
    asking = settings.model_dump() | {"chronicle": {"llm": MODEL}, "memory": settings.memory.model_dump() | memory}
    return patient(Settings.model_validate(asking))


async def heard(evening: Evening, text: str) -> str:
    """Say it, and wait until it and its answer are on disk. Returns the prompt."""
    n_kept = len(evening.kept_texts)
    (await evening.ear()).say(text)
    await evening.until(lambda: len(evening.kept_texts) >= n_kept + 2)
    return [each.turn for each in evening.told if isinstance(each, TurnFinished)][-1].prompt.text


def forgotten(evening: Evening) -> list[str]:
    return [each.utterance.text for each in evening.told if isinstance(each, UtteranceRetracted)]


async def asks_to_forget(evening: Evening) -> None:
    """Say something, have it answered, and ask that it be forgotten."""
    evening.mouths[GRIMJAW].reply = ANSWER
    await heard(evening, SECRET)
    evening.mouths[GRIMJAW].reply = "Aye."
    await heard(evening, REQUEST)
    await evening.until(lambda: {SECRET, ANSWER, REQUEST} <= set(forgotten(evening)))


async def withheld_lines(dsn: str) -> list[str]:
    async with open_store(dsn) as store, store.database.use(TOWN) as connection:
        rows = await connection.fetch("SELECT text FROM session_entries WHERE withheld ORDER BY ordinal")
    return [row["text"] for row in rows]


async def until_withheld(evening: Evening, dsn: str) -> None:
    await evening.table.kept()
    assert await withheld_lines(dsn) == [SECRET, ANSWER, REQUEST, "Aye."]


@pytest.mark.parametrize(
    "memory",
    [
        {"chronicle": "none"},
        {"chronicle": "rules"},
        {"chronicle": "rules", "judge": "llm"},
        {"chronicle": "llm", "judge": "llm", "summaries": "llm"},
    ],
    ids=lambda memory: "-".join(memory.values()),
)
async def test_spoken_request_acts_at_once_with_any_chronicle(
    memory: dict[str, str], tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_at(tmp_path, dsn, **memory)
    async with an_evening(settings, monkeypatch) as evening:
        await asks_to_forget(evening)
        await until_withheld(evening, dsn)
        assert "Quillon" not in await heard(evening, "Grimjaw, what do you know of me?")
        assert "Quillon" not in await heard(evening, "Grimjaw, what is my name really?")
    async with an_evening(settings, monkeypatch) as evening:
        assert "Quillon" not in await heard(evening, "Grimjaw, what is my name really?")


async def test_spoken_request_acts_without_long_term_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_at(tmp_path, "none")
    async with an_evening(settings, monkeypatch) as evening:
        await asks_to_forget(evening)
        assert "Quillon" not in await heard(evening, "Grimjaw, what is my name really?")
    async with an_evening(settings, monkeypatch) as evening:
        assert "Quillon" not in await heard(evening, "Grimjaw, what is my name really?")
        assert "Quillon" not in str([each.text for each in evening.table.earlier])


async def test_request_while_the_database_is_away_is_stored_when_it_is_back(
    tmp_path: Path, network: Network, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_at(tmp_path, network.dsn)
    async with an_evening(settings, monkeypatch) as evening:
        await heard(evening, "Grimjaw, is the forge hot?")
        await evening.table.kept()
        network.cut()
        await asks_to_forget(evening)
        assert "Quillon" not in await heard(evening, "Grimjaw, what is my name really?")
        network.well()
        await evening.until(
            lambda: [each for each in evening.told if isinstance(each, MemoryChanged) and each.health.state == "ok"]
        )
        await until_withheld(evening, dsn)


async def test_request_of_a_table_that_ended_offline_is_applied_by_the_next(
    tmp_path: Path, network: Network, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_at(tmp_path, network.dsn)
    with monkeypatch.context() as hasty:
        hasty.setattr("glyphoxa.app.memory.FLUSH_MS", 100)
        async with an_evening(settings, hasty) as evening:
            await evening.table.kept()
            network.cut()
            await asks_to_forget(evening)
        async with an_evening(settings, hasty) as evening:
            assert "Quillon" not in await heard(evening, "Grimjaw, what is my name really?")
    network.well()
    async with an_evening(settings, monkeypatch, session="another") as evening:
        await until_withheld(evening, dsn)


async def test_chronicle_does_not_decide_a_request_again(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings_at(tmp_path, dsn), monkeypatch) as evening:
        await heard(evening, "Grimjaw, you can remember that again.")
        await asks_to_forget(evening)
        await until_withheld(evening, dsn)
        async with open_store(dsn) as store:
            await chronicle_worker(store).read_new(TOWN)
            assert await withheld_lines(dsn) == [SECRET, ANSWER, REQUEST, "Aye."]
            page = OwnLinesOfTable(TOWN, SESSION, PostgresInspection(store.database), store.world, lambda: 10**13)
            shown = [(line["text"], line["state"]) for line in (await page.lines(TAMSIN, before=None))["lines"]]
            assert shown[:2] == [(REQUEST, "withheld"), (SECRET, "withheld")]
            await page.decide(TAMSIN, RememberBody(player=TAMSIN, remember=True, session=True))
            assert await withheld_lines(dsn) == []
            await chronicle_worker(store).read_new(TOWN)
            assert await withheld_lines(dsn) == []
