"""A campaign moves to another database while nobody plays it: all of it, and nothing of it stays behind."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.plugins.cluster.directory import Directory
from glyphoxa.plugins.cluster.moving import move_campaign
from glyphoxa.plugins.cluster.placement import Node
from tests.support.postgres import TestServer
from tests.support.random_graphs import a_world, put

MINE, YOURS = CampaignId("saltmere"), CampaignId("yours")


@pytest.fixture
async def here(evenings_dsn: str) -> AsyncIterator[Store]:
    """The directory's own database, with two campaigns; of one, two evenings were played."""
    async with open_store(evenings_dsn) as store:
        async with store.database.administer() as connection:
            await put(connection, YOURS, a_world(random.Random(1), graphs=3, turns=3))
        yield store


@pytest.fixture
async def there(postgres: TestServer) -> AsyncIterator[Store]:
    name = await postgres.create()
    async with open_store(postgres.server.dsn(name)) as store:
        await store.database.open()
        yield store
    await postgres.drop(name)


@pytest.fixture
def directory(here: Store) -> Directory:
    return Directory(here.database, lease_ms=60_000)


async def counts(store: Store, campaign: CampaignId) -> Mapping[str, int]:
    """Return the number of a campaign's rows in each table that has any."""
    async with store.database.use(campaign) as connection:
        tables = await connection.fetch(
            "SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
            "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition "
            "AND a.attname = 'campaign_id' AND c.relname <> 'table_epochs'"
        )
        found = {row["name"]: await connection.fetchval(f'SELECT count(*) FROM "{row["name"]}"') for row in tables}
    return {name: n for name, n in found.items() if n}


async def test_all_of_a_campaign_moves_and_others_stay(here: Store, there: Store, directory: Directory) -> None:
    mine, yours = await counts(here, MINE), await counts(here, YOURS)
    await move_campaign(directory, MINE, "second", source=here.database, target=there.database)
    assert (await counts(there, MINE), await counts(here, MINE)) == (mine, {})
    assert (await counts(here, YOURS), await counts(there, YOURS)) == (yours, {})
    assert await directory.server(MINE) == "second"
    await directory.report(Node("a", "http://a/", 3), ())
    assert (await directory.place(MINE)).server == "second"


async def test_a_campaign_whose_table_is_open_stays(here: Store, there: Store, directory: Directory) -> None:
    await directory.report(Node("a", "http://a/", 3), ())
    lease = await directory.place(MINE)
    with pytest.raises(InvalidInput, match="is open; end the session, then move the campaign"):
        await move_campaign(directory, MINE, "second", source=here.database, target=there.database)
    assert await directory.leases() == [lease]
    assert await counts(there, MINE) == {}


async def test_a_move_that_fails_changes_nothing(here: Store, there: Store, directory: Directory) -> None:
    mine = await counts(here, MINE)
    await there.database.close()
    with pytest.raises(Unavailable):
        await move_campaign(directory, MINE, "second", source=here.database, target=there.database)
    assert await counts(here, MINE) == mine
    assert (await directory.server(MINE), await directory.leases()) == ("", [])
