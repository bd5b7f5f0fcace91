"""How the server finds what an event asks of the world, among 60,000 facts and under the rules that keep campaigns
apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.ids import CampaignId
from tests.support.plans import answered_by
from tests.support.postgres import TestServer

FILES = ("event_log", "tables", "retraction", "imports")
SQL = {name: query for file in FILES for name, query in load_queries(f"world/{file}").items()}
BIG, OTHER = CampaignId("big"), CampaignId("other")
_FILL = """
INSERT INTO campaigns (id, name, language) VALUES ('{0}', 'A world', 'en');
INSERT INTO world_events (campaign_id, seq, event_type, payload, at, by, session_id, ordinal, source_turn_id)
    SELECT '{0}', n, CASE n % 1000 WHEN 0 THEN 'undone' ELSE 'fact_confirmed' END,
           CASE n % 10 WHEN 9 THEN jsonb_build_object('attributes', jsonb_build_object('evidence', ARRAY['u' || n + 1]))
                       ELSE '{{}}' END,
           now(), 'talk', 's' || n / 1000, n % 1000, 'u' || n FROM generate_series(1, 30000) n;
INSERT INTO entities (campaign_id, id, type, name, origin)
    SELECT '{0}', 'e' || n, 'npc', 'Somebody', 'dm' FROM generate_series(0, 1999) n;
INSERT INTO relationships (campaign_id, fact_id, source_id, target_id, rel_type, origin, seq, disputes)
    SELECT '{0}', 'r' || n, 'e' || n % 2000, 'e' || n / 10 % 2000, 'TYPE_' || n % 7, 'dm', n,
           CASE n % 500 WHEN 0 THEN ARRAY['r' || n + 1] ELSE '{{}}' END
      FROM generate_series(1, 20000) n;
INSERT INTO attribute_facts (campaign_id, fact_id, entity_id, attribute, value, origin, seq, disputes)
    SELECT '{0}', 'a' || n, 'e' || n % 2000, 'attribute_' || n % 7, '1', 'dm', n,
           CASE n % 500 WHEN 0 THEN ARRAY['a' || n + 1] ELSE '{{}}' END
      FROM generate_series(1, 10000) n;
INSERT INTO fact_supports (campaign_id, support_id, fact_id)
    SELECT '{0}', 'r' || n, 'a' || n FROM generate_series(1, 10000) n;
INSERT INTO import_sources (campaign_id, source, name) VALUES ('{0}', 'foundry:big', 'Big');
INSERT INTO import_documents (campaign_id, source, key, name, type, kind, document, digest, decision, accepted, entity)
    SELECT '{0}', 'foundry:big', 'd' || n, 'Somebody', 'npc', 'Actor', '{{}}', '', 'accepted', '{{}}', 'e' || n
      FROM generate_series(1, 3000) n;
"""


@pytest.fixture(scope="module")
def many_facts(postgres: TestServer) -> Iterator[str]:
    name = asyncio.run(postgres.create())
    dsn = postgres.server.dsn(name)
    asyncio.run(_fill(dsn))
    yield dsn
    asyncio.run(postgres.drop(name))


async def _fill(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for campaign in (BIG, OTHER):
            await connection.execute(_FILL.format(campaign))
        await connection.execute("ANALYZE")
    finally:
        await connection.close()


@pytest.fixture
async def store(many_facts: str) -> AsyncIterator[Store]:
    async with open_store(many_facts) as opened:
        yield opened


async def rows_read(store: Store, query: str, *arguments: object) -> float:
    """Rows that were taken from tables, those that were looked at in vain among them."""
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in await answered_by(store, BIG, SQL[query], *arguments, table="relationships")
        if "Relation Name" in node or node["Node Type"] == "Bitmap Index Scan"
    )


async def test_documents_of_an_entity_read_a_few_rows(store: Store) -> None:
    assert await rows_read(store, "documents_of", "e5") < 10


async def test_facts_go_and_come_by_their_ids(store: Store) -> None:
    assert await rows_read(store, "remove_facts", ["r9", "a9"]) < 10


async def test_the_head_and_the_ends_of_a_log_are_read_from_its_key(store: Store) -> None:
    assert await rows_read(store, "head") < 5
    assert await rows_read(store, "events_last", 0, 10) < 20
    assert await rows_read(store, "events_first", 29_000, 10) < 20


async def test_events_that_speak_of_others_have_an_index(store: Store) -> None:
    assert await rows_read(store, "undoing_events") < 70


async def test_what_was_learned_from_an_utterance_has_an_index(store: Store) -> None:
    assert await rows_read(store, "learned_from", "u5010", "s5", 10) < 20
    assert await rows_read(store, "learned_from_any", ["u5010", "u7"]) < 20


async def test_what_was_learned_behind_an_ordinal_has_an_index(store: Store) -> None:
    assert await rows_read(store, "learned_behind", "s3", 990, []) < 30
