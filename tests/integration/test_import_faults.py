"""Imports at the worst moment: two at once, a database that refuses, another campaign."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.commits import WorldWriting
from glyphoxa.adapters.postgres.world.imports import PostgresImports
from glyphoxa.dm.source_world import EVERYTHING
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import DM
from glyphoxa.world.event_kinds import EntityAdded
from glyphoxa.world.event_log import Cause
from tests.support.builders import CAMPAIGN, a_campaign
from tests.support.known_of import entities_of
from tests.support.patience import DEADLINE_MS, DEADLINE_S
from tests.support.source_worlds import MILL, MILLER, SPY, a_world

N_DOCUMENTS = 20
MANY = a_world(*(replace(SPY, key=f"Actor.{n}", name=f"Vask {n}") for n in range(N_DOCUMENTS)))


@pytest.fixture
async def desk(store: Store) -> PostgresImports:
    await store.campaigns.load(a_campaign())
    return store.imports(CAMPAIGN)


async def vasks(store: Store) -> set[str]:
    return {each.name for each in await entities_of(store, CAMPAIGN, DM) if each.name.startswith("Vask")}


async def test_second_import_of_a_source_is_refused_while_the_first_runs(store: Store, desk: PostgresImports) -> None:
    async with store.database.use(CAMPAIGN) as connection, connection.transaction():
        lock = "SELECT pg_advisory_xact_lock(hashtextextended('import ' || $1 || ' ' || $2, 0))"
        await connection.execute(lock, CAMPAIGN, "foundry:coast")
        with pytest.raises(InvalidInput, match="is being imported now"):
            await desk.take_in(a_world(MILL))
        await desk.take_in(replace(a_world(MILL), id="another"))
    assert (await desk.take_in(a_world(MILL))).n_new == 1


async def test_documents_accepted_twice_at_once_become_entities_once(store: Store, desk: PostgresImports) -> None:
    await desk.take_in(a_world(MILL, MILLER))
    done = await asyncio.gather(desk.accept(EVERYTHING), desk.accept(EVERYTHING), return_exceptions=True)
    assert sorted(type(each).__name__ for each in done) == ["CampaignChanges", "NotFound"]
    assert [each.name for each in await entities_of(store, CAMPAIGN, DM)].count("Berta Moor") == 1


async def test_world_is_written_while_an_accept_waits_for_an_import(store: Store, desk: PostgresImports) -> None:
    await desk.take_in(a_world(MILL))
    async with (
        asyncio.timeout(DEADLINE_S),
        store.database.use(CAMPAIGN, deadline_ms=DEADLINE_MS) as connection,
        connection.transaction(),
    ):
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('imports ' || $1, 0))", CAMPAIGN)
        accepting = asyncio.create_task(desk.accept(EVERYTHING))
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while not await connection.fetchval(waiting):  # noqa: ASYNC110 - a lock tells nobody
            await asyncio.sleep(0.01)
        added = EntityAdded(EntityId("vask"), "npc", "Vask")
        await store.world.commit(CAMPAIGN, [added], Cause("dm", 1))
        assert not accepting.done()
    await accepting
    assert "Salt Mill" in {each.name for each in await entities_of(store, CAMPAIGN, DM)}


async def test_failed_accept_leaves_world_and_decisions_as_they_were(
    store: Store, desk: PostgresImports, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.take_in(MANY)
    commit = WorldWriting.commit

    async def failing(self: WorldWriting, *arguments: object) -> None:
        await commit(self, *arguments)  # type: ignore[arg-type]
        raise Unavailable("the database is away")

    with monkeypatch.context() as patched:
        patched.setattr(WorldWriting, "commit", failing)
        with pytest.raises(Unavailable):
            await desk.accept(EVERYTHING)
    assert (await desk.waiting())[0] == N_DOCUMENTS
    assert not await vasks(store)
    await desk.accept(EVERYTHING)
    assert len(await vasks(store)) == N_DOCUMENTS


async def test_no_campaign_sees_the_imports_of_another(store: Store, desk: PostgresImports) -> None:
    other = store.imports(CampaignId("other"))
    await store.campaigns.load(replace(a_campaign(), id=CampaignId("other")))
    await desk.take_in(a_world(MILL, MILLER))
    assert (await other.waiting())[0] == 0
    assert not await other.groups()
    for refused in (other.accept, other.skip, other.preview):
        with pytest.raises(NotFound):
            await refused(EVERYTHING)
    await desk.accept(EVERYTHING)
    assert not await other.documents_of(EntityId("berta-moor"))
    assert (await other.take_in(a_world(MILL))).n_new == 1
    with pytest.raises(NotFound, match="no campaign"):
        await store.imports(CampaignId("third")).take_in(a_world(MILL))
