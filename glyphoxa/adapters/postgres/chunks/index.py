from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import asyncpg
from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.chunks.filling import ChunkFilling, OtherModel, check_model
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.transcript.log import at_ms, timestamp
from glyphoxa.adapters.postgres.world.viewers import viewer_parameter
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.recall.semantic.chunks import EVERYTHING, Chunk, ChunkFilter, Filled
from glyphoxa.recall.semantic.embedder import Embedder
from glyphoxa.transcript.chunking import hash_of

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection

_MOST_EXACT = 10_000
"""The exact distances of so many chunks take 25 ms. So does the index of 100,000 chunks for a tenth of them, and it
misses some: where a scope holds little of an index, that has to be searched far and wide."""
_EXACT_BY_SIZE = 500
"""Of a larger index a larger scope is searched exactly. The one costs 2 µs for each of the n chunks in scope, the
other 10 µs for each of 100 * size / n chunks that it looks at: they cost the same where n² = 500 * size."""
_EVERY_CHUNK = 2**31
_CANDIDATES = 60
"""The index gives at least so many: its order is nearly right. With 60, 996 of 1,000 of the nearest ten are found where
an NPC heard a tenth, in half the time of 100."""
_REMEMBERED_SCOPES = 4_096
_SEARCH_DEADLINE_MS = 1_000
_FILL_DEADLINE_MS = 30_000
_ANY_DISTANCE = 2.0


class PostgresChunkIndex:
    """A `ChunkIndex`. A search has a deadline of 1 s.

    Args:
        embedder: Whose vectors are stored and compared. None: nothing is embedded, and nothing found.
    """

    def __init__(self, database: Database, *, embedder: Embedder | None = None) -> None:
        self._database = database
        self._embedder: Embedder | None = None
        self._sql = dict(load_queries("chunks/chunks"))
        self._filling: ChunkFilling | None = None
        self._one_at_a_time = asyncio.Lock()
        self._most_exact: dict[CampaignId, int] = {}
        self._large: dict[tuple[CampaignId, str | None, ChunkFilter], None] = {}
        self._is_of_another_model = False
        if embedder is not None:
            self.embed_by(embedder)

    def embed_by(self, embedder: Embedder) -> None:
        """Store and compare that one's vectors from now on."""
        self._embedder = embedder
        self._filling = ChunkFilling(lambda c: self._database.use(c, deadline_ms=_FILL_DEADLINE_MS), embedder)
        dimensions = str(int(embedder.dimensions))
        query = load_queries("chunks/chunks")["approximate"]
        self._sql["approximate"] = query.replace("{{embedding_dimensions}}", dimensions)
        self._most_exact.clear()
        self._large.clear()
        self._is_of_another_model = False

    async def upsert(self, campaign: CampaignId, chunk: Chunk, embedding: NDArray[float32]) -> None:
        if self._embedder is None or self._filling is None:
            raise InvalidInput("the index was opened without an embedder: it does not know whose vector this is")
        self._check_shape(embedding)
        async with self._database.use(campaign, deadline_ms=_FILL_DEADLINE_MS) as connection, connection.transaction():
            await self._filling.check(connection)
            stored = await connection.fetchval(
                self._sql["add"],
                *(campaign, chunk.id, chunk.utterance_id, chunk.content, hash_of(chunk.content), embedding),
                *(self._embedder.name, list(chunk.entity_ids), chunk.topic),
            )
        if stored is None:
            raise NotFound(f"no utterance {chunk.utterance_id!r} in the log of campaign {campaign!r}")

    async def search(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        embedding: NDArray[float32],
        *,
        top_k: int = 10,
        only: ChunkFilter = EVERYTHING,
    ) -> list[tuple[Chunk, float]]:
        if top_k <= 0:
            return []
        found = await self.nearest(campaign, viewer, embedding, limit=top_k, only=only)
        return [(_chunk(row), row["distance"]) for row in found]

    async def nearest(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        embedding: NDArray[float32],
        *,
        limit: int,
        only: ChunkFilter = EVERYTHING,
        exclude: Collection[UtteranceId] = (),
        max_distance: float = _ANY_DISTANCE,
        deadline_ms: int = _SEARCH_DEADLINE_MS,
    ) -> Sequence[asyncpg.Record]:
        """The columns of `Chunk` and `distance`, nearest first."""
        if self._embedder is None or self._is_of_another_model:
            return []
        self._check_shape(embedding)
        try:
            return await self._nearest(
                *(campaign, viewer, embedding, self._embedder),
                limit=limit, only=only, exclude=exclude, max_distance=max_distance, deadline_ms=deadline_ms,
            )  # fmt: skip
        except asyncpg.DataError:  # vectors of other dimensions by the same model
            async with self._database.use(campaign, deadline_ms=deadline_ms) as connection:
                if not await self._is_noticed_to_be_of_another_model(connection):
                    raise
            return []

    async def _nearest(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        embedding: NDArray[float32],
        embedder: Embedder,
        *,
        limit: int,
        only: ChunkFilter,
        exclude: Collection[UtteranceId],
        max_distance: float,
        deadline_ms: int,
    ) -> Sequence[asyncpg.Record]:
        npc = viewer_parameter(viewer)
        asked = (
            *(campaign, embedder.name, embedding, npc, only.session, only.speaker, only.entity),
            *(None if only.after_ms is None else timestamp(only.after_ms),),
            *(None if only.before_ms is None else timestamp(only.before_ms), list(exclude)),
        )
        scope = (campaign, npc, only)
        n_candidates = max(_CANDIDATES, limit + limit // 5)
        most = self._most_exact.get(campaign, _MOST_EXACT)
        async with self._database.use(campaign, deadline_ms=deadline_ms) as connection:
            n = 0
            rows: list[asyncpg.Record] = []
            if scope not in self._large:
                n, rows = await self._run(connection, "exact", *asked, most + 1, max_distance, limit)
                if n > most < await self._learn_most_exact(connection, campaign):
                    most = self._most_exact[campaign]
                    n, rows = await self._run(connection, "exact", *asked, most + 1, max_distance, limit)
            if scope in self._large or n > most:
                n, rows = await self._run(connection, "approximate", *asked, n_candidates, max_distance, limit)
                self._remember_large(scope)
                if n < n_candidates:
                    # The index gave up, or the scope is not that large any more.
                    del self._large[scope]
                    n, rows = await self._run(connection, "exact", *asked, _EVERY_CHUNK, max_distance, limit)
            if not n:
                await self._is_noticed_to_be_of_another_model(connection)
        return rows

    async def fill_missing(self, campaign: CampaignId, *, limit: int | None = None) -> Filled:
        # Whoever comes meanwhile waits, and finds little left: nothing is embedded twice.
        async with self._one_at_a_time:
            if self._filling is None or self._is_of_another_model:
                return Filled()
            try:
                return await self._filling.drain(campaign, limit=limit)
            except OtherModel as error:
                self._tell_of_another_model(error)
                return Filled()

    async def fill_all_missing(self, campaign: CampaignId) -> Filled:
        """`fill_missing`, after going through all talk: also what nobody listed, what another version of the program
        cut otherwise, what was embedded by another model, and what failed before.
        """
        if self._filling is None:
            return Filled()
        await self._filling.survey(campaign)
        return await self.fill_missing(campaign)

    async def full_rebuild(self, campaign: CampaignId) -> Filled:
        if self._filling is None:
            return Filled()
        await self._filling.want_all(campaign)
        return await self.fill_missing(campaign)

    async def _run(self, connection: Connection, query: str, *arguments: object) -> tuple[int, list[asyncpg.Record]]:
        """How many chunks were in question, and the nearest of them."""
        # Without a name, so that the server plans it with its values each time: a plan for any scope fits none.
        statement = await connection.prepare(self._sql[query], name="")
        rows = await statement.fetch(*arguments)
        return rows[0]["n"], [row for row in rows if row["id"] is not None]

    async def _learn_most_exact(self, connection: Connection, campaign: CampaignId) -> int:
        """Up to how many chunks in question their exact distances are the better choice, by the size of the index."""
        size = await connection.fetchval(self._sql["index_size"], campaign) or 0
        self._most_exact[campaign] = max(_MOST_EXACT, math.isqrt(max(0, int(_EXACT_BY_SIZE * size))))
        return self._most_exact[campaign]

    def _check_shape(self, embedding: NDArray[float32]) -> None:
        if self._embedder is not None and embedding.shape != (self._embedder.dimensions,):
            raise InvalidInput(
                f"a vector of shape {embedding.shape}; those of {self._embedder.name} have {self._embedder.dimensions} "
                "dimensions"
            )

    def _remember_large(self, scope: tuple[CampaignId, str | None, ChunkFilter]) -> None:
        while len(self._large) >= _REMEMBERED_SCOPES:
            del self._large[next(iter(self._large))]
        self._large[scope] = None

    async def _is_noticed_to_be_of_another_model(self, connection: Connection) -> bool:
        stored = await connection.fetchrow(self._sql["model"])
        if self._embedder is not None and stored is not None:
            try:
                check_model(stored, self._embedder)
            except OtherModel as error:
                self._tell_of_another_model(error)
                return True
        return False

    def _tell_of_another_model(self, error: Unavailable) -> None:
        if not self._is_of_another_model:
            self._is_of_another_model = True
            logger.warning("{}", error)


def _chunk(row: asyncpg.Record) -> Chunk:
    return Chunk(
        id=row["id"],
        utterance_id=UtteranceId(row["utterance_id"]),
        session_id=SessionId(row["session_id"]),
        content=row["content"],
        speaker_id=SpeakerId(row["speaker_id"]),
        at_ms=at_ms(row["timestamp"]),
        entity_ids=tuple(EntityId(entity) for entity in row["entity_ids"]),
        topic=row["topic"],
    )
