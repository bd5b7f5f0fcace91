"""One campaign never sees another, even where a query forgets to say which it means."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId
from tests.support.patience import DEADLINE_MS
from tests.support.random_graphs import a_world, put

MINE, YOURS = CampaignId("mine"), CampaignId("yours")
STEPS = 400

WITH_A_CAMPAIGN = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = ANY ($1) AND NOT c.relispartition
   AND a.attname = ANY ('{campaign_id,world_id}') ORDER BY 1"""
"""Tables and views, whichever there are."""
ANYTHING_GOES = """
DO $$ DECLARE found RECORD; BEGIN
    FOR found IN SELECT conrelid::regclass AS name, conname FROM pg_constraint
                  WHERE contype = 'c' AND connamespace = 'public'::regnamespace AND coninhcount = 0 LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.name, found.conname);
    END LOOP;
END $$"""
"""Rows of this test have something in each column, not something sensible."""

WITHHELD = """
WITH said AS (UPDATE session_entries SET withheld = true
               WHERE id IN (SELECT max(id) FROM session_entries GROUP BY campaign_id)
              RETURNING campaign_id, utterance_id)
INSERT INTO world_events (campaign_id, seq, event_type, payload, at, by)
SELECT campaign_id, 90001, 'entity_added', '{"entity": "gone"}'::jsonb, now(), 'talk' FROM said
 UNION ALL
SELECT campaign_id, 90002, 'utterance_withheld',
       jsonb_build_object('utterance', utterance_id, 'events', '[90001]'::jsonb), now(), 'player' FROM said"""


MERGED = """
INSERT INTO world_events (campaign_id, seq, event_type, payload, at, by)
SELECT campaign_id, 90003, 'entity_added',
       jsonb_build_object('entity', gone_id, 'name', 'Vorlath', 'visibility', '{"scope": "hidden"}'::jsonb), now(), 'dm'
  FROM entity_merges"""


@pytest.fixture
async def two(dsn: str) -> AsyncIterator[Store]:
    """Memory with two campaigns, of which each has rows in every table."""
    async with open_store(dsn) as store:
        async with store.database.administer() as connection:
            await connection.execute(ANYTHING_GOES)
            for campaign in (MINE, YOURS):
                await put(connection, campaign, a_world(random.Random(campaign), graphs=3, turns=3))
                await connection.execute("SET session_replication_role = replica")
                for table in await tables(connection):
                    if not await connection.fetchval(f"SELECT count(*) FROM {table} WHERE campaign_id = $1", campaign):
                        await connection.execute(await an_insert(connection, table, campaign))
                await connection.execute("SET session_replication_role = DEFAULT")
            await connection.execute("UPDATE fact_history SET object_id = 'something'")
            await connection.execute(WITHHELD)
            await connection.execute(MERGED)
            await connection.execute(
                "UPDATE state_atoms a SET utterance_id = (SELECT min(utterance_id) FROM session_entries e "
                "WHERE e.campaign_id = a.campaign_id AND NOT e.retracted)"
            )
        yield store


async def tables(connection: asyncpg.Connection[asyncpg.Record]) -> list[str]:
    return [row["relname"] for row in await connection.fetch(WITH_A_CAMPAIGN, [b"r", b"p"])]


async def an_insert(connection: asyncpg.Connection[asyncpg.Record], table: str, campaign: str) -> str:
    """A statement that adds a row with something in each column that must have it."""
    rows = await connection.fetch(
        """SELECT a.attname, format_type(a.atttypid, NULL) AS type
             FROM pg_attribute a
            WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull
              AND NOT a.atthasdef AND a.attidentity = '' AND a.attgenerated = '' AND a.attname <> 'campaign_id'""",
        table,
    )
    names = ["campaign_id", *(row["attname"] for row in rows)]
    values = [f"'{campaign}'", *(SOMETHING[row["type"]] for row in rows)]
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(values)})"


SOMETHING = {
    "text": "'something'",
    "text[]": "'{}'",
    "bigint": "1",
    "integer": "1",
    "smallint": "1",
    "double precision": "1",
    "boolean": "false",
    "jsonb": "'{}'",
    "timestamp with time zone": "now()",
    "bytea": "''",
    "vector": "array_fill(1, ARRAY[384])::vector",
    "regconfig": "'simple'",
}


async def test_every_table_with_a_campaign_shows_only_that_of_the_connection(two: Store) -> None:
    """Tables that later migrations add are asked like the others."""
    async with two.database.administer() as connection:
        asked = [(r["relname"]) for r in await connection.fetch(WITH_A_CAMPAIGN, [b"r", b"p"])]
        views = [(r["relname"]) for r in await connection.fetch(WITH_A_CAMPAIGN, [b"v"])]
        assert {"session_entries", "chunks", "entities", "relationships", "world_events"} <= set(asked)
        assert {"facts", "relationship_history", "ontology_nodes", "ontology_edges"} <= set(views)
        for table in asked:
            assert await connection.fetchval(f"SELECT count(DISTINCT campaign_id) FROM {table}") == 2
    for campaign in (MINE, YOURS):
        async with two.database.use(campaign) as connection:
            for name in (*asked, *views):
                column = "world_id" if name.startswith("ontology_") else "campaign_id"
                seen = await connection.fetch(f"SELECT DISTINCT {column} AS campaign FROM {name}")
                assert [row["campaign"] for row in seen] == [campaign], name
    async with two.database.use(None) as connection:
        for name in (*asked, *views):
            assert await connection.fetchval(f"SELECT count(*) FROM {name}") == 0, name


async def test_partitions_are_no_way_around(two: Store) -> None:
    async with two.database.use(MINE) as connection:
        partitions = await connection.fetch("SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'")
        assert partitions
        seen = {
            row[0]
            for each in partitions
            for row in await connection.fetch(f"SELECT DISTINCT campaign_id FROM {each['relname']}")
        }
    assert seen == {MINE}


async def test_nothing_is_written_into_another_campaign(two: Store) -> None:
    async with two.database.administer() as admin:
        inserts = {table: await an_insert(admin, table, YOURS) for table in await tables(admin)}
    for table, insert in inserts.items():
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
            async with two.database.use(MINE) as connection:
                await connection.execute(insert)
        async with two.database.use(MINE) as connection, connection.transaction():
            yours = f"WHERE campaign_id = '{YOURS}'"
            assert await connection.execute(f"UPDATE {table} SET campaign_id = campaign_id {yours}") == "UPDATE 0"
            assert await connection.execute(f"DELETE FROM {table} {yours}") == "DELETE 0"


async def test_a_connection_that_was_used_for_another_campaign_shows_nothing_of_it(two: Store, dsn: str) -> None:
    """Whatever became of the uses before: done, failed, late, cancelled, all at the same time."""
    dice = random.Random(4)
    database = Database(dsn, max_connections=2)

    async def look(campaign: CampaignId | None) -> None:
        async with database.use(campaign, deadline_ms=DEADLINE_MS) as connection:
            for _ in range(2):
                seen = {row[0] for row in await connection.fetch("SELECT campaign_id FROM entities")}
                assert seen == ({campaign} if campaign else set())

    async def fail(campaign: CampaignId | None) -> None:
        with pytest.raises(asyncpg.PostgresError):
            async with database.use(campaign, deadline_ms=DEADLINE_MS) as connection, connection.transaction():
                await connection.execute("SELECT 1 / 0")

    async def be_late(campaign: CampaignId | None) -> None:
        with pytest.raises(Unavailable):
            async with database.use(campaign, deadline_ms=5) as connection:
                await connection.execute("SELECT pg_sleep(10)")

    async def be_cancelled(campaign: CampaignId | None) -> None:
        task = asyncio.create_task(look(campaign))
        for _ in range(dice.randrange(12)):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled() or task.exception() is None

    async def one_after_another() -> None:
        for _ in range(STEPS // 4):
            do = dice.choice((look, look, look, fail, be_late, be_cancelled))
            await do(dice.choice((MINE, YOURS, None)))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(one_after_another())
    finally:
        await database.close()
