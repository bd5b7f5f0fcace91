"""Many chunks of one campaign, heard by NPCs of whom each heard another share of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import asyncpg
import numpy as np
import pgvector.asyncpg
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from tests.support.postgres import vacuum

BIG: Final = CampaignId("big")
MODEL: Final = "twin"
HUB: Final = EntityId("hub")
"""It is related to all that the talk speaks of."""
SHARES: Final = {NpcId("a-thousandth"): 0.001, NpcId("a-hundredth"): 0.01, NpcId("a-tenth"): 0.1, NpcId("half"): 0.5}
_AT_ONCE: Final = 5_000
_DIMENSIONS: Final = 384
_MOVED: Final = 0.75 / _DIMENSIONS**0.5  # a cosine of 0.8 to what the topic has in common


class ManyChunks:
    """Vectors in clusters, as talk has topics.

    Attributes:
        vectors: float32, shape (n, 384), rows of unit length; row i is that of utterance `u{i}`.
        heard: Which rows an NPC heard.
    """

    def __init__(self, n: int, *, n_distinct: int | None = None, n_topics: int = 400, seed: int = 7) -> None:
        self._dice = np.random.default_rng(seed)
        self._topics = _unit(self._dice.standard_normal((n_topics, _DIMENSIONS)).astype(float32))
        distinct = self.near(n_distinct or n)
        self.vectors: NDArray[float32] = distinct if n_distinct is None else distinct[np.arange(n) % n_distinct]
        self.heard = {npc: self._dice.random(n) < share for npc, share in SHARES.items()}

    def near(self, n: int) -> NDArray[float32]:
        """`n` vectors, each near to a topic."""
        near = self._topics[self._dice.integers(0, len(self._topics), n)]
        return _unit(near + self._dice.standard_normal((n, _DIMENSIONS), float32) * _MOVED)

    async def fill(self, dsn: str, *, model: str = MODEL, is_searched: bool = True) -> None:
        """Into a database without rows. The index is built when they are there, as `glyphoxa worker reindex` does it.

        Args:
            is_searched: Without it there is no index of the vectors, which takes most of the time.
        """
        connection = await asyncpg.connect(dsn)
        try:
            await pgvector.asyncpg.register_vector(connection)
            await connection.execute("SET session_replication_role = replica")  # no triggers, no foreign keys
            index = await connection.fetchval("SELECT pg_get_indexdef('idx_chunks_embedding'::regclass)")
            await connection.execute("DROP INDEX idx_chunks_embedding")
            for at in range(0, len(self.vectors), _AT_ONCE):
                rows = [self._row(n, model) for n in range(at, min(at + _AT_ONCE, len(self.vectors)))]
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
            if is_searched:
                await connection.execute("SET maintenance_work_mem = '512MB'")
                await connection.execute(index.replace(" ON ONLY ", " ON "))
            await vacuum(connection, "chunks", "session_entries", "entities", "relationships")
        finally:
            await connection.close()

    def _row(self, n: int, model: str) -> tuple[object, ...]:
        return (
            BIG,
            *(f"u{n}", f"u{n}", f"s{n // 500}", f"Tamsin: line {n}", f"hash {n}", self.vectors[n], model),
            *(f"player-{n % 40}", [f"e{n % 1000}"], datetime.fromtimestamp(1_700_000_000 + 60 * n, UTC)),
            [npc for npc, heard in self.heard.items() if heard[n]],
        )


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


def _unit(rows: NDArray[float32]) -> NDArray[float32]:
    unit: NDArray[float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(float32)
    return unit
