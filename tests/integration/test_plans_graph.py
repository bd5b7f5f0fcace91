"""How the server answers what is asked of the graph, at 2,000 entities, 10,000 relations and much talk, under the rules
that keep campaigns apart: with a plan for the values asked for, and with the one it keeps for any values.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.ids import CampaignId
from tests.support.patience import DEADLINE_MS
from tests.support.plans import nodes_of
from tests.support.postgres import TestServer, vacuum

RAG = load_queries("transcript/graph_rag")
BIG = CampaignId("big")
AN_NPC, AN_ENTITY, ANOTHER = "npc-1", "e1500", "e1700"
TALK = 20_000
FEW = ("campaigns", "sessions")
FILLED = (*FEW, "entities", "relationships", "attribute_facts", "session_entries", "chunks")
BOTH = pytest.mark.parametrize("kind", ["of these values", "of any values"])

# Entity 0 is an end of a tenth of all relations, entity 1 of a twentieth, and so on: everybody knows the king.
_FILL = (
    "INSERT INTO campaigns (id, name, language) VALUES ($1, $1, 'en')",
    """INSERT INTO entities (campaign_id, id, type, name, origin, scope, knowers)
       SELECT $1, 'e' || n, (ARRAY['npc', 'location', 'item'])[n % 3 + 1], 'Name' || n, 'dm',
              CASE WHEN n % 10 = 9 THEN 'secret' ELSE 'public' END, ARRAY['npc-' || n % 40]
         FROM generate_series(0, $2::int - 1) AS n""",
    """INSERT INTO relationships (campaign_id, source_id, target_id, rel_type, origin, fact_id, status, scope,
                                  knowers, seq)
       SELECT $1, 'e' || (n * 7919) % $2::int, 'e' || floor($2::int ^ random())::int % $2::int,
              (ARRAY['KNOWS', 'LOCATED_AT', 'OWNS', 'MEMBER_OF'])[n % 4 + 1] , 'dm', 'r' || n,
              CASE WHEN n % 9 = 8 THEN 'pending' ELSE 'accepted' END,
              CASE WHEN n % 20 = 3 THEN 'secret' ELSE 'public' END, ARRAY['npc-' || n % 40], n
         FROM generate_series(1, 5 * $2::int) AS n ON CONFLICT DO NOTHING""",
    """INSERT INTO attribute_facts (campaign_id, fact_id, entity_id, attribute, value, origin, scope, knowers, seq)
       SELECT $1, 'a' || n, 'e' || n % $2::int, 'note', to_jsonb('word' || n % 3000 || ' word' || n % 700), 'dm',
              CASE WHEN n % 20 = 3 THEN 'secret' ELSE 'public' END, ARRAY['npc-' || n % 40], n
         FROM generate_series(1, 4 * $2::int) AS n""",
)
_TALK = (
    "INSERT INTO sessions (campaign_id, id, started_at, last_ordinal) VALUES ($1, 's', now(), $2::int)",
    """INSERT INTO session_entries (campaign_id, session_id, ordinal, utterance_id, text, witnesses)
       SELECT $1, 's', n, 'u' || n, 'word' || n % 3000 || ' word' || n % 700, ARRAY['npc-' || n % 40, 'npc-' || n % 3]
         FROM generate_series(1, $2::int) AS n""",
    """INSERT INTO chunks (campaign_id, id, utterance_id, session_id, content, content_hash, embedding, model,
                           entity_ids, knowers)
       SELECT $1, 'u' || n, 'u' || n, 's', '', '', array_fill(n % 100 + 1, ARRAY[384])::vector, 'm',
              ARRAY['e' || n % 2000, 'e' || n % 50], ARRAY['npc-' || n % 40, 'npc-' || n % 3]
         FROM generate_series(1, $2::int) AS n""",
)


@pytest.fixture(scope="module")
def big(postgres: TestServer) -> Iterator[str]:
    name = asyncio.run(postgres.create())
    asyncio.run(fill(postgres.server.dsn(name)))
    yield postgres.server.dsn(name)
    asyncio.run(postgres.drop(name))


async def fill(dsn: str) -> None:
    database = Database(dsn)
    async with database.administer(deadline_ms=DEADLINE_MS) as connection:
        index = await connection.fetchval("SELECT indexdef FROM pg_indexes WHERE indexname = 'idx_chunks_embedding'")
        await connection.execute("DROP INDEX idx_chunks_embedding")
        await connection.execute("SET session_replication_role = replica")
        await connection.execute("SELECT setseed(0.5)")
        for campaign, n in [(BIG, 2_000), *((f"small-{i}", 200) for i in range(9))]:
            await connection.execute("SELECT set_config('glyphoxa.campaign', $1, false)", campaign)
            await connection.execute(_FILL[0], campaign)
            for statement in _FILL[1:]:
                await connection.execute(statement, campaign, n)
        for statement in _TALK:
            await connection.execute(statement, BIG, TALK)
        await connection.execute(index.replace(" ON ONLY ", " ON "))
        await vacuum(connection, *FILLED)
    await database.close()


@pytest.fixture
async def store(big: str) -> AsyncIterator[Store]:
    async with open_store(big) as opened:
        yield opened


async def indexes(store: Store, kind: str, query: str, *arguments: object) -> set[str]:
    """The indexes of the plan, named like those of whole tables; nothing may read all of a table."""
    async with store.database.use(BIG) as connection:
        assert await connection.fetchval("SELECT row_security_active('relationships')")
        if kind == "of any values":
            text = await plan_of_any_values(connection, query, len(arguments))
        else:
            [(text,)] = await connection.fetch(f"EXPLAIN (FORMAT JSON) {query}", BIG, *arguments)
        return await indexes_of([json.loads(text)[0]["Plan"]], connection)


async def indexes_of(plans: list[dict[str, Any]], connection: Any) -> set[str]:
    found = [node for plan in plans for node in nodes_of(plan)]
    assert [n["Relation Name"] for n in found if n["Node Type"] == "Seq Scan" and n["Relation Name"] not in FEW] == []
    names = {n["Index Name"] for n in found if "Index Name" in n}
    wholes = await connection.fetch(
        "SELECT c.relname AS part, p.relname AS whole FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
        "JOIN pg_class p ON p.oid = i.inhparent WHERE c.relname = ANY ($1)",
        list(names),
    )
    of = {row["part"]: row["whole"] for row in wholes}
    return {of.get(name, name) for name in names}


async def indexes_within(store: Store, query: str, *arguments: object) -> set[str]:
    """The same of what the functions of a query ask by themselves."""
    told: list[str] = []
    async with store.database.administer(deadline_ms=DEADLINE_MS) as connection:
        await connection.execute("LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0")
        await connection.execute("SET auto_explain.log_nested_statements = on; SET auto_explain.log_format = json")
        await connection.execute("SET auto_explain.log_level = notice; SET client_min_messages = notice")
        await connection.execute("SET ROLE glyphoxa_app")
        await connection.fetchval("SELECT set_config('glyphoxa.campaign', $1, false)", BIG)
        connection.add_log_listener(lambda _, message: told.append(message.message))
        await connection.fetch(query, BIG, *arguments)
        await asyncio.sleep(0)  # listeners are told one round later
        plans = [json.loads(text[text.index("{") :]) for text in told if "plan:" in text]
        return await indexes_of(
            [
                plan["Plan"]
                for plan in plans
                if "relationships" in plan["Query Text"] and "$1" not in plan["Query Text"]
            ],
            connection,
        )


async def plan_of_any_values(connection: Any, query: str, n_arguments: int) -> str:  # a pool's own kind of connection
    """Return the plan after a few executions; the campaign is given, so that other partitions are left out."""
    async with connection.transaction():
        await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        await connection.execute(f"PREPARE asked AS {query}")
        nulls = ", NULL" * n_arguments
        text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE asked ('{BIG}'{nulls})")
        await connection.execute("DEALLOCATE asked")
    return str(text)


@pytest.mark.parametrize("viewer", [None, AN_NPC])
async def test_a_walk_reads_relations_by_their_ends(store: Store, viewer: str | None) -> None:
    by = await indexes_within(store, "SELECT * FROM glyphoxa_walk($1, $2, $3, 3)", viewer, AN_ENTITY)
    assert by == {"idx_rel_source", "idx_rel_target", "idx_rel_source_restricted", "idx_rel_target_restricted"}


@BOTH
@pytest.mark.parametrize("viewer", [None, AN_NPC])
async def test_talk_around_an_entity(store: Store, kind: str, viewer: str | None) -> None:
    meaning = RAG["by_meaning"].replace("{{dimensions}}", "384")
    question = np.ones(384, dtype=np.float32)
    by = await indexes(store, kind, meaning, viewer, AN_ENTITY, 2, question, "m", 10)
    assert {"idx_chunks_entity_ids", "idx_chunks_embedding"} <= by
    by = await indexes(store, kind, RAG["by_words"], viewer, AN_ENTITY, 2, "word17 word18", "", 10)
    assert {"idx_chunks_entity_ids", "idx_session_entries_fts"} <= by


@BOTH
@pytest.mark.parametrize("viewer", [None, AN_NPC])
async def test_facts_of_a_page_of_entities_are_read_by_their_subjects(
    store: Store, kind: str, viewer: str | None
) -> None:
    query = load_queries("world/inspection")["of_subjects"]
    by = await indexes(store, kind, query, viewer, [f"e{n}" for n in range(1_000, 1_100)])
    assert "idx_attribute_facts_entity" in by
    assert by & {"relationships_pkey", "idx_rel_source"}, "both begin with the campaign and the subject"
