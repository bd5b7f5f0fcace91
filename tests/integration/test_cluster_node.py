"""A node opens the tables that are placed on it, moves them when it is drained, and reopens those of a lost node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from glyphoxa.actors.deadline import ClosingStack, end_tasks
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.provider_sections import (
    EmbeddingsSettings,
    LlmSettings,
    ProvidersSettings,
    SttSettings,
    TtsSettings,
)
from glyphoxa.config.settings import MemorySettings, Settings, settings_type
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.events import Degraded, Trouble
from glyphoxa.domain.ids import CampaignId, PlayerId
from glyphoxa.npc.session import TableSession
from glyphoxa.plugins.cluster.node import TableHost
from glyphoxa.plugins.cluster.placement import Node
from glyphoxa.plugins.cluster.settings import ClusterSettings
from glyphoxa.plugins.cluster.table_directory import all_tables
from tests.support.live_table import write_campaign
from tests.support.patience import DEADLINE_S

TOWN = CampaignId("town")


@pytest.fixture
async def settings(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Those of a cluster with one stored campaign, whose leases run out after a second."""
    for key in ("OPENAI_API_KEY", "DEEPGRAM_API_KEY"):
        monkeypatch.setenv(key, "x")
    async with open_store(dsn) as store:
        await store.campaigns.load(read_campaign(write_campaign(tmp_path)).campaign)
    return settings_type()(
        providers=ProvidersSettings(
            stt=SttSettings(name="deepgram-nova"),
            llm=LlmSettings(name="openai"),
            tts=TtsSettings(name="openai"),
            embeddings=EmbeddingsSettings(name="none"),
        ),
        memory=MemorySettings(postgres_dsn=dsn),
        cluster=ClusterSettings(lease_ms=1_000),
    )


async def nobody(name: str) -> bool:
    raise Unavailable(f"{name} does not answer")


@asynccontextmanager
async def a_host(name: str, settings: Settings, directory: Path) -> AsyncIterator[tuple[TableHost, asyncio.Task[None]]]:
    async with ClosingStack() as stack:
        own = settings.model_copy(update={"data_dir": directory / name})
        host = TableHost(own, Node(name, "http://127.0.0.1/", 3), door="http://door.example/", ask_peer=nobody)
        await host.open(stack)
        running = asyncio.create_task(host.run())
        try:
            yield host, running
        finally:
            await end_tasks(running)
            await host.close()


async def until(found: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            if found():
                return
            await asyncio.sleep(0.02)


async def opened(host: TableHost) -> TableSession:
    await until(lambda: TOWN in host.tables and host.tables[TOWN].table is not None)
    table = host.tables[TOWN].table
    assert table is not None
    return table


async def placed_on(host: TableHost) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(Unavailable):
                await host.directory.place(TOWN)
                return
            await asyncio.sleep(0.02)


async def until_copied(host: TableHost, name: str) -> None:
    async with asyncio.timeout(DEADLINE_S), open_store(host._settings.memory.postgres_dsn) as store:
        while True:
            async with store.database.use(TOWN) as connection:
                if await connection.fetchval("SELECT count(*) FROM table_files WHERE name = $1", name):
                    return
            await asyncio.sleep(0.02)


async def test_a_placed_table_is_opened_and_its_links_lead_to_the_door(settings: Settings, tmp_path: Path) -> None:
    async with a_host("a", settings, tmp_path) as (host, _):
        await placed_on(host)
        await opened(host)
        assert any(line.startswith("for Tamsin: http://door.example/t/town/join#") for line in host.invitations(TOWN))
        await until(lambda: bool(host.tables[TOWN].lease.url))
        assert await host.find(TOWN) in ("", host.tables[TOWN].lease.url)  # known at the next report


async def test_a_node_reads_in_its_own_process_only_without_readers_of_the_cluster(
    settings: Settings, tmp_path: Path
) -> None:
    async with a_host("a", settings, tmp_path) as (host, _):
        assert host._shared[""].reader is not None
    with_readers = settings.model_copy(update={"cluster": ClusterSettings(readers=2)})
    async with a_host("b", with_readers, tmp_path) as (host, _):
        assert host._shared[""].reader is None


async def test_the_lease_of_a_closed_table_is_free_and_nothing_stays_on_the_disk(
    settings: Settings, tmp_path: Path
) -> None:
    async with a_host("a", settings, tmp_path) as (host, _):
        await placed_on(host)
        await opened(host)
        host.tables[TOWN].close()
        await until(lambda: TOWN not in host.tables)
        assert await host.directory.leases() == []
        assert [each.name for each in all_tables(host._settings).iterdir()] == ["town.lock"]


async def test_a_lost_node_s_table_continues_the_same_session_elsewhere(settings: Settings, tmp_path: Path) -> None:
    async with a_host("a", settings, tmp_path) as (lost, running):
        await placed_on(lost)
        before = await opened(lost)
        before.say(PlayerId("tamsin"), "The mill burns.")
        await until_copied(lost, "sessions.json")
        await end_tasks(running)  # it reports no more, and does not know
        async with a_host("b", settings, tmp_path) as (host, _):
            after = await opened(host)
            assert after.session == before.session
            assert host.tables[TOWN].lease.epoch > lost.tables[TOWN].lease.epoch


async def test_a_drained_node_tells_its_tables_and_hands_them_over(settings: Settings, tmp_path: Path) -> None:
    told: list[Trouble] = []
    async with a_host("a", settings, tmp_path) as (drained, _):
        await placed_on(drained)
        table = await opened(drained)
        table.say(PlayerId("tamsin"), "The mill burns.")
        await until_copied(drained, "sessions.json")
        table.subscribe(lambda event: told.append(event.trouble) if isinstance(event, Degraded) else None)
        async with a_host("b", settings, tmp_path) as (host, _):
            await until(lambda: len(drained._nodes) > 1)
            await drained.directory.drain("a")
            moved = await opened(host)
            assert (told, list(drained.tables), moved.session) == ([Trouble.MOVING], [], table.session)


async def test_a_table_that_ends_while_the_directory_is_away_stays_closed(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_host("a", settings, tmp_path) as (host, _):
        await placed_on(host)
        await opened(host)

        async def away(*_: object) -> None:
            raise Unavailable("the database is away")

        with monkeypatch.context() as outage:
            outage.setattr(host.directory, "report", away)
            outage.setattr(host.directory, "release", away)
            host.tables[TOWN].close()
            await until(lambda: TOWN not in host.tables)
            assert [each.campaign for each in await host.directory.leases()] == [TOWN]
        await until(lambda: not host._ended)
        assert (await host.directory.leases(), list(host.tables)) == ([], [])


async def test_a_node_that_is_cut_off_closes_its_tables(settings: Settings, tmp_path: Path) -> None:
    async with a_host("a", settings, tmp_path) as (host, _), a_host("b", settings, tmp_path):
        await until(lambda: len(host._nodes) > 1)
        await host.directory.drain("b")
        await placed_on(host)
        await opened(host)

        async def report(*_: object) -> None:
            raise Unavailable("the database is away")

        host.directory.report = report  # type: ignore[assignment, method-assign]
        await until(lambda: TOWN not in host.tables)
