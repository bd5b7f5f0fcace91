"""Readers of a cluster: several of them empty one queue over all campaigns, and mix no two campaigns."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial

import asyncpg
import pytest

from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import RULES
from glyphoxa.config.provider_sections import EmbeddingsSettings, ProvidersSettings
from glyphoxa.config.settings import MemorySettings, Settings, settings_type
from glyphoxa.domain.ids import CampaignId
from glyphoxa.domain.knowledge import DM
from glyphoxa.plugins.cluster.directory import Directory, queue_reading, raise_epoch
from glyphoxa.plugins.cluster.reading import CampaignReader, late_campaigns, open_campaign_reader, read_campaigns
from tests.support.builders import a_known_party, said
from tests.support.patience import DEADLINE_S
from tests.support.proof import proof_only

PROMISE = "I promise to bring you {} crowns from {}"
SQL = load_queries("cluster")
CAMPAIGNS = [CampaignId(f"c{n}") for n in (3, 1, 4, 0, 2)]
"""In the order in which something is said in them."""


@pytest.fixture
async def settings(dsn: str) -> Settings:
    return settings_for(dsn)


def settings_for(dsn: str) -> Settings:
    providers = ProvidersSettings(embeddings=EmbeddingsSettings(name="none"))
    return settings_type()(providers=providers, memory=MemorySettings(postgres_dsn=dsn))


@pytest.fixture
async def campaigns(store: Store) -> Store:
    """Several campaigns with a promise in each."""
    for campaign in CAMPAIGNS:
        await open_in_cluster(store, campaign)
        await promise(store, campaign)
    return store


async def open_in_cluster(store: Store, campaign: CampaignId) -> None:
    await store.campaigns.load(replace(a_known_party(), id=campaign))
    await raise_epoch(store.database, campaign, 1)
    await queue_reading(store.database, campaign)


async def promise(store: Store, campaign: CampaignId, *, n: int = 1) -> None:
    await store.log.append([said(n, f"{PROMISE.format(n, campaign)}.", campaign_id=campaign)])


@asynccontextmanager
async def a_reader(settings: Settings) -> AsyncIterator[CampaignReader]:
    async with open_campaign_reader(settings, None, RULES) as reader:
        yield reader


async def read_all(reader: CampaignReader) -> int:
    n = 0
    while await reader.read_next():
        n += 1
    return n


async def is_read(store: Store, campaign: CampaignId) -> bool:
    progress = await PostgresChronicleLog(store.database, store.world).progress(campaign)
    return not any(each.has_news for each in progress)


async def all_read(store: Store) -> bool:
    return all([await is_read(store, each) for each in CAMPAIGNS])


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not await check():  # noqa: ASYNC110 - other processes tell nothing
            await asyncio.sleep(0.05)


async def promised(store: Store, campaign: CampaignId) -> list[str]:
    facts = await PostgresInspection(store.database).current(campaign, DM, limit=1_000)
    return [str(each.claim.content) for each in facts if each.claim.predicate == "promise"]


async def test_the_campaign_that_has_waited_longest_is_read_first(campaigns: Store, settings: Settings) -> None:
    async with a_reader(settings) as reader:
        for n, _ in enumerate(CAMPAIGNS, start=1):
            assert await reader.read_next()
            assert [await is_read(campaigns, each) for each in CAMPAIGNS] == [
                place < n for place, _ in enumerate(CAMPAIGNS)
            ]
        assert not await reader.read_next()


async def test_two_readers_read_each_campaign_once_and_mix_none(campaigns: Store, settings: Settings) -> None:
    async with a_reader(settings) as one, a_reader(settings) as two:
        done = await asyncio.gather(read_all(one), read_all(two))
    assert sum(done) == len(CAMPAIGNS)
    for campaign in CAMPAIGNS:
        assert await promised(campaigns, campaign) == [PROMISE.format(1, campaign)]


async def test_a_campaign_is_read_after_the_reader_that_had_it_was_lost(
    campaigns: Store, settings: Settings, dsn: str
) -> None:
    lost = await asyncpg.connect(dsn)
    assert await lost.fetchval(SQL["take_reading"], 10) == CAMPAIGNS[0]
    async with a_reader(settings) as reader:
        assert await read_all(reader) == len(CAMPAIGNS) - 1
        assert not await is_read(campaigns, CAMPAIGNS[0])
        await lost.close()
        await until(reader.read_next)  # the server notices a moment later
        assert await is_read(campaigns, CAMPAIGNS[0])


async def test_what_is_said_while_a_campaign_is_read_is_not_forgotten(campaigns: Store, dsn: str) -> None:
    reader = await asyncpg.connect(dsn)
    taken = await reader.fetchrow(SQL["take_reading"], 10)
    assert taken is not None and tuple(taken) == (CAMPAIGNS[0], True)
    await promise(campaigns, CAMPAIGNS[0], n=2)
    await reader.execute(SQL["read_later"], CAMPAIGNS[0], None)
    waiting = [row["campaign"] for row in await reader.fetch("SELECT campaign FROM reading_queue ORDER BY due_at")]
    assert waiting == [*CAMPAIGNS[1:], CAMPAIGNS[0]]  # those that have waited longer come first
    assert await Directory(campaigns.database, lease_ms=1_000).unread() == len(CAMPAIGNS)
    await reader.close()


async def test_a_campaign_rests_once_nothing_of_it_is_left(campaigns: Store, settings: Settings, dsn: str) -> None:
    async with a_reader(settings) as reader:
        await read_all(reader)
        connection = await asyncpg.connect(dsn)
        # They wait for the end of their sessions, which are then judged again.
        await connection.execute("UPDATE reading_queue SET due_at = clock_timestamp()")
        assert await read_all(reader) == len(CAMPAIGNS)
        await connection.execute("UPDATE reading_queue SET due_at = clock_timestamp()")
        await read_all(reader)
        assert await connection.fetchval("SELECT count(*) FROM reading_queue WHERE due_at < 'infinity'") == 0
        await connection.close()


async def test_an_owner_without_special_rights_has_the_same_queue(owners_dsn: str) -> None:
    async with open_store(owners_dsn) as store:
        await open_in_cluster(store, CAMPAIGNS[0])
        await promise(store, CAMPAIGNS[0])
        async with a_reader(settings_for(owners_dsn)) as reader:
            assert await read_all(reader) == 1
        assert await is_read(store, CAMPAIGNS[0])


async def test_campaigns_that_wait_too_long_are_counted(campaigns: Store, settings: Settings, dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    async with aclosing(late_campaigns(settings)) as counts:
        assert await anext(counts) == 0
    await connection.execute("UPDATE reading_queue SET due_at = due_at - interval '1 min' WHERE campaign > 'c1'")
    async with aclosing(late_campaigns(settings)) as counts:
        assert await anext(counts) == len(CAMPAIGNS) - 2
    await connection.close()


async def test_a_machine_without_a_cluster_has_no_queue(store: Store, dsn: str) -> None:
    await store.campaigns.load(replace(a_known_party(), id=CAMPAIGNS[0]))
    await promise(store, CAMPAIGNS[0])
    connection = await asyncpg.connect(dsn)
    assert await connection.fetchval("SELECT count(*) FROM reading_queue") == 0
    await connection.close()


async def test_the_queue_is_served_by_its_index(store: Store, dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("INSERT INTO reading_queue (campaign) SELECT 'c' || n FROM generate_series(1, 20000) n")
    await connection.execute("ANALYZE reading_queue")
    for name, arguments in (("take_reading", "(1000)"), ("unread", "(0, 1000)")):
        await connection.execute(f"PREPARE {name} AS {SQL[name]}")
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE {name}{arguments}"))
        assert "using idx_reading_queue_due" in plan and "Index Cond: (due_at <=" in plan, plan
    await connection.close()


@asynccontextmanager
async def a_process(code: str, settings: Settings) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(f"{settings.model_dump_json()}\n".encode())
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@proof_only
async def test_readers_go_on_when_one_is_killed(store: Store, settings: Settings) -> None:
    """Real processes. The sessions that the killed one was reading are read when their leases run out."""
    n_lines = 60
    for campaign in CAMPAIGNS:
        await open_in_cluster(store, campaign)
        for n in range(1, n_lines + 1):
            await promise(store, campaign, n=n)
    code = (
        "import asyncio, sys\n"
        "from glyphoxa.config.settings import settings_type\n"
        "from glyphoxa.plugins.cluster.reading import read_campaigns\n"
        "asyncio.run(read_campaigns(settings_type().model_validate_json(sys.stdin.readline())))\n"
    )
    log = PostgresChronicleLog(store.database, store.world)

    async def has_begun() -> bool:
        return any([each.read_ordinal for c in CAMPAIGNS for each in await log.progress(c)])  # noqa: C419 - it awaits

    async with a_process(code, settings) as lost:
        await until(has_begun)
        async with a_process(code, settings):
            lost.kill()
            await until(partial(all_read, store))
    for campaign in CAMPAIGNS:
        found = await promised(store, campaign)
        assert sorted(found) == sorted(
            f"I promise to bring you {n} crowns from {campaign}" for n in range(1, n_lines + 1)
        )


async def test_a_reader_that_does_not_stay_ends_when_nothing_waits(campaigns: Store, settings: Settings) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await read_campaigns(settings, stays=False)
    assert await all_read(campaigns)
