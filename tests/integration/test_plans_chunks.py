"""How the server answers what is asked of chunks, at 100,000 of them and under the rules that keep campaigns apart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.feed import PostgresTalkFeed
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import DM
from tests.support.embedders import an_embedder
from tests.support.many_chunks import BIG, MODEL, ManyChunks
from tests.support.plans import nodes_of
from tests.support.postgres import TestServer

A_QUESTION = np.eye(1, 384, dtype=float32)[0]
NARROW, WIDE = NpcId("a-hundredth"), NpcId("half")
EVER = (None, None)
FEED = load_queries("transcript/feed")


async def not_needed(texts: list[str]) -> NDArray[float32] | None:
    return None


@pytest.fixture(scope="module")
def filled(postgres: TestServer) -> Iterator[str]:
    name = asyncio.run(postgres.create())
    # Vectors that are there ten times make the index quick to build; plans do not depend on them.
    asyncio.run(ManyChunks(100_000, n_distinct=10_000).fill(postgres.server.dsn(name)))
    yield postgres.server.dsn(name)
    asyncio.run(postgres.drop(name))


@pytest.fixture
async def store(filled: str, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(filled, data_dir=tmp_path, embedder=an_embedder(not_needed, name=MODEL)) as opened:
        yield opened


async def indexes(store: Store, query: str, *arguments: object, sql: Mapping[str, str] | None = None) -> set[str]:
    """The indexes by which chunks are read, named like those of the whole table; nothing may read all of it."""
    text_of = store.chunks._sql if sql is None else sql
    async with store.database.use(BIG) as connection:
        assert await connection.fetchval("SELECT row_security_active('chunks')")
        [(text,)] = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {text_of[query]}", *arguments)
        nodes = list(nodes_of(json.loads(text)[0]["Plan"]))
        reads_all = [n["Relation Name"] for n in nodes if n["Node Type"] == "Seq Scan"]
        assert [name for name in reads_all if name.startswith(("session_entries", "chunks", "talk_to_embed"))] == []
        used = [node["Index Name"] for node in nodes if "Index Name" in node]
        return {str(await connection.fetchval(_OF_THE_WHOLE, name)) for name in used}


_OF_THE_WHOLE = """
SELECT coalesce((SELECT inhparent FROM pg_inherits WHERE inhrelid = $1::regclass), $1::regclass)::regclass::text
"""


def asked(
    npc: NpcId | None = None,
    session: str | None = None,
    speaker: str | None = None,
    entity: str | None = None,
    times: tuple[datetime | None, datetime | None] = EVER,
    *,
    most: int = 10_001,
) -> tuple[object, ...]:
    return (BIG, MODEL, A_QUESTION, npc, session, speaker, entity, *times, [], most, 2.0, 10)


async def test_an_exact_search_reads_what_the_npc_heard_and_nothing_else(store: Store) -> None:
    assert await indexes(store, "exact", *asked(NARROW)) == {
        "idx_chunks_entity_ids",
        "chunks_pkey",
    }


async def test_an_exact_search_reads_what_speaks_of_an_entity_or_was_said_in_a_session(store: Store) -> None:
    of_entity = await indexes(store, "exact", *asked(entity="e7"))
    assert of_entity == {"idx_chunks_entity_ids", "chunks_pkey"}
    of_session = await indexes(store, "exact", *asked(WIDE, session="s7"))
    assert "idx_chunks_session_id" in of_session


async def test_a_search_of_a_large_scope_uses_the_index_of_vectors(store: Store) -> None:
    for scope in (asked(WIDE, most=100), asked(most=100), asked(NpcId("a-tenth"), most=100)):
        assert await indexes(store, "approximate", *scope) == {
            "idx_chunks_embedding",
            "chunks_pkey",
        }


async def test_what_is_due_is_found_without_looking_through_all_talk(store: Store) -> None:
    async with store.database.use(BIG) as connection:
        await connection.execute(store.chunks._sql["want"], BIG, [f"u{n}" for n in range(3_000)], False)
    used = await indexes(store, "due", BIG, -1, 3, 16, MODEL)
    assert "idx_chunks_utterance_id" in used
    assert used & {"idx_talk_to_embed_place", "talk_to_embed_pkey"}
    assert used & {"session_entries_campaign_id_utterance_id_key"}


async def test_what_changed_in_the_talk_is_read_by_its_marks_and_its_vectors_by_their_utterances(store: Store) -> None:
    assert await indexes(store, "changed", BIG, 50_000, 500, sql=FEED) == {"idx_session_entries_mark"}
    utterances = [f"u{n}" for n in range(500)]
    edition = await PostgresTalkFeed(store.database, has_vectors=True).edition(BIG)
    assert edition is not None
    found = await indexes(store, "meanings", BIG, utterances, MODEL, edition.number, sql=FEED)
    assert found == {"idx_chunks_utterance_id"}


async def test_times_narrow_a_search_that_is_exact(store: Store) -> None:
    times = (datetime.fromtimestamp(1_700_000_000, UTC), datetime.fromtimestamp(1_700_060_000, UTC))
    found = await indexes(store, "exact", *asked(NARROW, times=times))
    assert "idx_chunks_entity_ids" in found


async def test_no_plan_of_a_search_is_kept_for_the_next_scope(store: Store) -> None:
    """After five times the server would take one plan for any scope, which reads all talk."""
    for viewer in [NARROW, WIDE, DM] * 3:
        assert len(await store.chunks.search(BIG, viewer, A_QUESTION)) == 10
    async with store.database.use(BIG) as connection:
        kept = await connection.fetch("SELECT statement FROM pg_prepared_statements")
    assert not [row["statement"] for row in kept if "embedding <=>" in row["statement"]]
