"""Many passages: a filter loses nothing of what is nearest, and no query reads all of them.

pgvector by itself filters after its search, and so finds too little. The rules that keep campaigns apart are in force.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Final

import asyncpg
import numpy as np
import pgvector.asyncpg
import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from glyphoxa.domain.knowledge import DM, Viewer
from glyphoxa.world.graph import Neighbourhood
from tests.support.embedders import an_embedder
from tests.support.plans import answered_by, indexes_of
from tests.support.postgres import TestServer, vacuum
from tests.support.proof import n_examples

N_CHUNKS, N_QUESTIONS, TOP = n_examples(20_000, one_of=2), 25, 10
WHOLE: Final = frozenset({"campaigns", "schema_settings", "campaign_times", "story_days", "sessions"})
SMALL = ("campaigns_pkey", "schema_settings_pkey", "campaign_times_pkey", "story_days_pkey")
FEED, QUEUE = load_queries("transcript/feed"), load_queries("chunks")
BIG: Final = CampaignId("big")
MODEL: Final = "twin"
HUB: Final = EntityId("hub")
"""It is related to all that the talk speaks of."""
SHARES: Final = {NpcId("a-thousandth"): 0.001, NpcId("a-hundredth"): 0.01, NpcId("a-tenth"): 0.1, NpcId("half"): 0.5}
_AT_ONCE: Final = 5_000
_DIMENSIONS: Final = 384
_MOVED: Final = 0.75 / _DIMENSIONS**0.5  # a cosine of 0.8 to what the topic has in common


_GRAPH: Final = (
    "INSERT INTO campaigns (id, name, language) VALUES ($1, $2::text, 'en')",
    """INSERT INTO entities (campaign_id, id, type, name, origin)
       SELECT $1, e.id, 'location', e.id, 'dm'
         FROM (SELECT $2::text UNION SELECT 'e' || n FROM generate_series(0, 999) n) AS e (id)""",
    """INSERT INTO relationships (campaign_id, source_id, target_id, rel_type, origin, fact_id, seq)
       SELECT $1, $2::text, 'e' || n, 'HAS', 'dm', 'r' || n, n FROM generate_series(0, 999) n""",
)
_COLUMNS: Final = (
    "campaign_id",
    "id",
    "utterance_id",
    "session_id",
    "content",
    "content_hash",
    "embedding",
    "model",
    "speaker_id",
    "entity_ids",
    "timestamp",
    "knowers",
)


class ManyChunks:
    """Vectors in clusters, as talk has topics.

    Attributes:
        vectors: float32, shape (n, 384), rows of unit length; row i is that of utterance `u{i}`.
        heard: Which rows an NPC heard.
    """

    def __init__(self, n: int, *, n_topics: int = 400, seed: int = 7) -> None:
        self._dice = np.random.default_rng(seed)
        self._topics = _unit(self._dice.standard_normal((n_topics, _DIMENSIONS)).astype(float32))
        self.vectors: NDArray[float32] = self.near(n)
        self.heard = {npc: self._dice.random(n) < share for npc, share in SHARES.items()}

    def near(self, n: int) -> NDArray[float32]:
        """`n` vectors, each near to a topic."""
        near = self._topics[self._dice.integers(0, len(self._topics), n)]
        return _unit(near + self._dice.standard_normal((n, _DIMENSIONS), float32) * _MOVED)

    async def fill(self, dsn: str) -> None:
        """Fill a database without rows; build the index last, as `glyphoxa worker reindex` does."""
        connection = await asyncpg.connect(dsn)
        try:
            await pgvector.asyncpg.register_vector(connection)
            await connection.execute("SET session_replication_role = replica")  # no triggers, no foreign keys
            index = await connection.fetchval("SELECT pg_get_indexdef('idx_chunks_embedding'::regclass)")
            await connection.execute("DROP INDEX idx_chunks_embedding")
            for at in range(0, len(self.vectors), _AT_ONCE):
                rows = [self._row(n) for n in range(at, min(at + _AT_ONCE, len(self.vectors)))]
                await connection.copy_records_to_table("chunks", records=rows, columns=_COLUMNS)
            await connection.execute(
                "INSERT INTO sessions (campaign_id, id, started_at) "
                "SELECT DISTINCT campaign_id, session_id, to_timestamp(0) FROM chunks"
            )
            await connection.execute(
                """INSERT INTO session_entries (campaign_id, session_id, ordinal, utterance_id, speaker_id,
                                                speaker_name, text, timestamp, witnesses)
                   SELECT campaign_id, session_id, row_number() OVER (PARTITION BY session_id ORDER BY timestamp),
                          utterance_id, speaker_id, 'Tamsin', content, timestamp, knowers FROM chunks"""
            )
            for statement in _GRAPH:
                await connection.execute(statement, BIG, HUB)
            await connection.execute("SET maintenance_work_mem = '512MB'")
            await connection.execute(index.replace(" ON ONLY ", " ON "))
            await vacuum(connection, "chunks", "session_entries", "entities", "relationships")
        finally:
            await connection.close()

    def _row(self, n: int) -> tuple[object, ...]:
        return (
            BIG,
            *(f"u{n}", f"u{n}", f"s{n // 500}", f"Tamsin: line {n}", f"hash {n}", self.vectors[n], MODEL),
            *(f"player-{n % 40}", [f"e{n % 1000}"], datetime.fromtimestamp(1_700_000_000 + 60 * n, UTC)),
            [npc for npc, heard in self.heard.items() if heard[n]],
        )


def _unit(rows: NDArray[float32]) -> NDArray[float32]:
    unit: NDArray[float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(float32)
    return unit


async def not_needed(texts: list[str]) -> NDArray[float32]:
    return None


@pytest.fixture(scope="module")
def many_chunks() -> ManyChunks:
    return ManyChunks(N_CHUNKS)


@pytest.fixture(scope="module")
def filled(postgres: TestServer, many_chunks: ManyChunks) -> Iterator[str]:
    with postgres.a_database(many_chunks.fill) as dsn:
        yield dsn


@pytest.fixture
async def store(filled: str) -> AsyncIterator[Store]:
    async with open_store(filled, embedder=an_embedder(not_needed, name=MODEL)) as opened:
        yield opened


@pytest.mark.parametrize("viewer", [*SHARES, DM], ids=str)
async def test_what_is_nearest_in_a_scope_is_found_in_scopes_of_any_size(
    store: Store, many_chunks: ManyChunks, viewer: Viewer
) -> None:
    """All talk speaks of the neighbourhood, of which the viewer heard a share."""
    heard = many_chunks.heard[viewer] if isinstance(viewer, str) else np.ones(N_CHUNKS, bool)
    shares = []
    for question in many_chunks.near(N_QUESTIONS):
        distances = np.where(heard, 1 - many_chunks.vectors @ question, 9)
        nearest = {f"u{n}" for n in np.argsort(distances)[: min(TOP, heard.sum())]}
        passages = await store.graph_rag.query_with_embedding(
            BIG, viewer, question, around=Neighbourhood(HUB, 1), limit=TOP
        )
        found = {passage.recalled.utterance_id for passage in passages}
        assert found <= {f"u{n}" for n in np.flatnonzero(heard)}
        shares.append(len(found & nearest) / len(nearest))
    assert float(np.mean(shares)) >= 0.95


async def test_the_settings_of_the_index_are_taken(store: Store) -> None:
    """A wrong value only warns, and the search falls back to finding too little."""
    async with store.database.use(BIG) as connection:
        await connection.fetchval("SELECT '[1]'::vector")  # loads the extension, which then checks its settings
        assert await connection.fetchval("SHOW hnsw.iterative_scan") == "relaxed_order"
        assert int(await connection.fetchval("SHOW hnsw.max_scan_tuples")) >= 20_000


async def indexes(store: Store, query: str, *arguments: object) -> set[str]:
    nodes = await answered_by(store, BIG, query, *arguments, table="chunks")
    return await indexes_of(store, nodes, whole=WHOLE)


async def test_what_is_due_is_found_without_looking_through_all_talk(store: Store) -> None:
    async with store.database.use(BIG) as connection:
        await connection.execute(QUEUE["want"], BIG, [f"u{n}" for n in range(3_000)])
    used = await indexes(store, QUEUE["due"], -1, 3, 16, MODEL)
    assert "idx_chunks_utterance_id" in used
    assert used & {"idx_talk_to_embed_place", "talk_to_embed_pkey"}
    assert used & {"session_entries_campaign_id_utterance_id_key"}


async def test_what_changed_in_the_talk_is_read_by_its_marks_and_its_vectors_by_their_utterances(store: Store) -> None:
    read = await indexes(store, FEED["changes"], 50_000, 500)
    assert {"idx_session_entries_change_seq", "idx_talk_to_embed_place"} <= read
    assert read <= {"idx_session_entries_change_seq", "idx_talk_to_embed_place", *SMALL}
    utterances = [f"u{n}" for n in range(500)]
    assert await indexes(store, FEED["embeddings"], utterances, MODEL) == {"idx_chunks_utterance_id"}
