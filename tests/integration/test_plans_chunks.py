"""How the server answers what is asked of chunks, under the rules that keep campaigns apart.

At 20,000 of them in `make test`, at 100,000 in `make proof`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.feed import PostgresTalkFeed
from tests.support.embedders import an_embedder
from tests.support.many_chunks import BIG, MODEL, ManyChunks
from tests.support.plans import nodes_of
from tests.support.postgres import TestServer
from tests.support.proof import n_examples

SMALL = ("campaigns_pkey", "schema_settings_pkey", "campaign_times_pkey", "story_days_pkey")
FEED, QUEUE = load_queries("transcript/feed"), load_queries("chunks/embedding_queue")


async def not_needed(texts: list[str]) -> NDArray[float32] | None:
    return None


@pytest.fixture(scope="module")
def filled(postgres: TestServer) -> Iterator[str]:
    name = asyncio.run(postgres.create())
    # Nothing here looks for what is near: neither the vectors nor an index of them change a plan.
    asyncio.run(ManyChunks(n_examples(100_000), n_distinct=10_000).fill(postgres.server.dsn(name), is_searched=False))
    yield postgres.server.dsn(name)
    asyncio.run(postgres.drop(name))


@pytest.fixture
async def store(filled: str, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(filled, data_dir=tmp_path, embedder=an_embedder(not_needed, name=MODEL)) as opened:
        yield opened


async def indexes(store: Store, query: str, *arguments: object) -> set[str]:
    """The indexes by which chunks are read, named like those of the whole table; nothing may read all of it."""
    async with store.database.use(BIG) as connection:
        assert await connection.fetchval("SELECT row_security_active('chunks')")
        [(text,)] = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", *arguments)
        nodes = list(nodes_of(json.loads(text)[0]["Plan"]))
        reads_all = [n["Relation Name"] for n in nodes if n["Node Type"] == "Seq Scan"]
        assert [name for name in reads_all if name.startswith(("session_entries", "chunks", "talk_to_embed"))] == []
        used = [node["Index Name"] for node in nodes if "Index Name" in node]
        return {str(await connection.fetchval(_OF_THE_WHOLE, name)) for name in used}


_OF_THE_WHOLE = """
SELECT coalesce((SELECT inhparent FROM pg_inherits WHERE inhrelid = $1::regclass), $1::regclass)::regclass::text
"""


async def test_what_is_due_is_found_without_looking_through_all_talk(store: Store) -> None:
    async with store.database.use(BIG) as connection:
        await connection.execute(QUEUE["want"], BIG, [f"u{n}" for n in range(3_000)], False)
    used = await indexes(store, QUEUE["due"], BIG, -1, 3, 16, MODEL)
    assert "idx_chunks_utterance_id" in used
    assert used & {"idx_talk_to_embed_place", "talk_to_embed_pkey"}
    assert used & {"session_entries_campaign_id_utterance_id_key"}


async def test_what_changed_in_the_talk_is_read_by_its_marks_and_its_vectors_by_their_utterances(store: Store) -> None:
    read = await indexes(store, FEED["changes"], BIG, 50_000, 500)
    assert {"idx_session_entries_change_seq", "idx_talk_to_embed_place"} <= read
    assert read <= {"idx_session_entries_change_seq", "idx_talk_to_embed_place", *SMALL}
    utterances = [f"u{n}" for n in range(500)]
    page = await PostgresTalkFeed(store.database, has_vectors=True).changes(BIG, since=0, limit=0)
    assert page.head.generation is not None
    found = await indexes(store, FEED["embeddings"], BIG, utterances, MODEL, page.head.generation.number)
    assert found == {"idx_chunks_utterance_id"}
