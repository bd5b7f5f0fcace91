"""The directory of a cluster: one live table of a campaign, and what happens when a node stops reporting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import NotFound, Unavailable
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.plugins.cluster.directory import Directory, Lease, raise_epoch
from glyphoxa.plugins.cluster.placement import Node
from tests.support.builders import an_utterance

MOOR, S = CampaignId("moor"), SessionId("s")
LONG_MS, SHORT_MS = 60_000, 1
NONE: tuple[Lease, ...] = ()


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[Store]:
    async with open_store(Database(dsn, max_connections=4)) as opened:
        yield opened


@pytest.fixture
def directory(store: Store) -> Directory:
    return Directory(store.database, lease_ms=LONG_MS)


def node(name: str, *, capacity: int = 3) -> Node:
    return Node(name, f"http://{name}.example", capacity)


async def test_racing_placers_agree_on_one_node(directory: Directory) -> None:
    for each in ("a", "b", "c"):
        await directory.report(node(each), NONE)
    leases = await asyncio.gather(*(directory.place(MOOR) for _ in range(12)))
    assert {(lease.node, lease.epoch) for lease in leases} == {(leases[0].node, leases[0].epoch)}


async def test_tables_are_spread_evenly_until_all_nodes_are_full(directory: Directory) -> None:
    for each in ("a", "b", "c"):
        await directory.report(node(each, capacity=2), NONE)
    placed = [(await directory.place(CampaignId(f"c{n}"))).node for n in range(6)]
    assert {each: placed.count(each) for each in "abc"} == {"a": 2, "b": 2, "c": 2}
    with pytest.raises(Unavailable, match="no node can take the table of 'c6': a holds 2 of 2 tables"):
        await directory.place(CampaignId("c6"))


async def test_a_node_learns_which_tables_were_placed_on_it(directory: Directory) -> None:
    await directory.report(node("a"), NONE)
    placed = await directory.place(MOOR)
    reported = await directory.report(node("a"), NONE)
    assert reported.leases[MOOR].epoch == placed.epoch
    assert [(each.name, each.tables) for each in await directory.nodes()] == [("a", 1)]


async def test_the_address_is_known_once_the_table_is_open(directory: Directory) -> None:
    await directory.report(node("a"), NONE)
    lease = await directory.place(MOOR)
    await directory.report(node("a"), [replace(lease, url="http://a.example:9000/")])
    assert (await directory.place(MOOR)).url == "http://a.example:9000/"


async def test_a_table_whose_node_stops_reporting_goes_to_another_with_a_later_epoch(store: Store) -> None:
    short = Directory(store.database, lease_ms=SHORT_MS)
    await short.report(node("a"), NONE)
    long = Directory(store.database, lease_ms=LONG_MS)
    first = await long.place(MOOR)
    await short.report(node("a"), [first])  # renewed for a millisecond
    await asyncio.sleep(0.01)
    assert (await long.report(node("b"), NONE)).lost == 1
    assert not (await long.place(MOOR)).is_valid  # the nodes see to it: this caller may have come right after an outage
    assert await long.adopt("b", most=5) == [MOOR]
    [second] = await long.leases()
    assert (second.node, second.epoch > first.epoch) == ("b", True)
    assert (await short.report(node("a"), [first])).leases == {}


async def test_two_nodes_take_over_different_tables(store: Store) -> None:
    short, long = (Directory(store.database, lease_ms=each) for each in (SHORT_MS, LONG_MS))
    await long.report(node("lost", capacity=20), NONE)
    campaigns = {CampaignId(f"c{n}") for n in range(20)}
    held = [await long.place(each) for each in campaigns]
    for each in ("a", "b"):
        await long.report(node(each, capacity=20), NONE)
    await short.report(node("lost", capacity=20), held)
    await asyncio.sleep(0.01)
    taken = await asyncio.gather(long.adopt("a", most=12), long.adopt("b", most=12))
    assert (sum(map(len, taken)), set().union(*taken)) == (20, campaigns)


async def test_a_released_lease_is_free_at_once_and_a_late_release_is_ignored(directory: Directory) -> None:
    await directory.report(node("a"), NONE)
    first = await directory.place(MOOR)
    await directory.release(MOOR, first.epoch)
    second = await directory.place(MOOR)
    await directory.release(MOOR, first.epoch)
    assert second.epoch > first.epoch
    assert (await directory.place(MOOR)).epoch == second.epoch


async def test_a_draining_node_takes_no_new_table(directory: Directory) -> None:
    await directory.report(node("a"), NONE)
    await directory.report(node("b"), NONE)
    await directory.drain("a")
    assert {(await directory.place(CampaignId(f"c{n}"))).node for n in range(3)} == {"b"}
    with pytest.raises(NotFound, match="there is no node 'z'; known: a, b"):
        await directory.drain("z")


async def test_a_table_of_an_earlier_epoch_writes_nothing_more(store: Store, dsn: str) -> None:
    said = an_utterance("The mill burns.", campaign_id=MOOR, session_id=S)
    async with open_store(dsn) as elsewhere:
        await raise_epoch(store.database, MOOR, 7)
        await store.log.append([said])
        await raise_epoch(elsewhere.database, MOOR, 8)
        late = an_utterance("I saw it.", id="u2", campaign_id=MOOR, session_id=S)
        with pytest.raises(Unavailable, match="the table was moved to another machine"):
            await store.log.append([late])
        await elsewhere.log.append([late])
        with pytest.raises(Unavailable, match="the table of 'moor' was moved to another node"):
            await raise_epoch(store.database, MOOR, 7)
        assert await elsewhere.log.count(MOOR, S) == 2


async def test_a_new_epoch_waits_for_a_write_under_way(store: Store, dsn: str) -> None:
    async with open_store(dsn) as elsewhere:
        await raise_epoch(store.database, MOOR, 7)
        async with store.database.use(MOOR) as connection, connection.transaction():
            await connection.execute("INSERT INTO sessions (campaign_id, id, started_at) VALUES ('moor', 's', now())")
            raising = asyncio.create_task(raise_epoch(elsewhere.database, MOOR, 8))
            while not await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                assert not raising.done()
                await asyncio.sleep(0.01)
        await raising


async def test_one_machine_alone_writes_without_an_epoch(store: Store) -> None:
    await store.log.append([an_utterance("The mill burns.", campaign_id=MOOR, session_id=S)])
    assert await store.log.count(MOOR, S) == 1


async def test_lost_tables_are_found_by_their_index(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "INSERT INTO table_leases SELECT n, '', n % 3000, 1, '', now() + interval '1 h' FROM generate_series(1, 9999) n"
    )
    await connection.execute("ANALYZE table_leases")
    for name, arguments in (("report", "('7', '', 3, 0, 0)"), ("adopt", "('7', 3, 4000)")):
        await connection.execute(f"PREPARE {name} AS {load_queries('cluster')[name]}")
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE {name}{arguments}"))
        assert "Index Cond: (until <" in plan and "Seq Scan" not in plan, plan
    await connection.close()
