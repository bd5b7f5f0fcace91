from __future__ import annotations

import asyncio

from loguru import logger

from glyphoxa.adapters.postgres.chunks.embedding_queue import EmbeddingQueue, Filled, OtherModel
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.semantic.embedder import Embedder

_DEADLINE_MS = 30_000


class ChunkIndexer:
    """Memory level 2 as a table keeps it: talk is embedded when it is new, and when it says something else. Only
    vectors of one model are in it.

    Args:
        embedder: Whose vectors are stored. None: nothing is embedded.
    """

    def __init__(self, database: Database, *, embedder: Embedder | None = None) -> None:
        self._database = database
        self._queue: EmbeddingQueue | None = None
        self._one_at_a_time = asyncio.Lock()
        if embedder is not None:
            self.embed_by(embedder)

    def embed_by(self, embedder: Embedder) -> None:
        """Store that one's vectors from now on."""
        self._queue = EmbeddingQueue(lambda c: self._database.use(c, deadline_ms=_DEADLINE_MS), embedder)

    async def fill_missing(self, campaign: CampaignId, *, limit: int | None = None) -> Filled:
        """Embed what is new or says something else now, oldest first. What fails is logged and left out.

        Args:
            limit: At most so many utterances.

        Raises:
            Unavailable: The database or the model is away; what was done so far is stored.
        """
        # Whoever comes meanwhile waits, and finds little left: nothing is embedded twice.
        async with self._one_at_a_time:
            queue = self._queue
            if queue is None:
                return Filled()
            try:
                return await queue.drain(campaign, limit=limit)
            except OtherModel as error:
                if self._queue is queue:
                    self._queue = None  # until there is an embedder of that model
                logger.warning("{}", error)
                return Filled()
