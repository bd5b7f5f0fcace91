from __future__ import annotations

import asyncpg
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.server.values import at_ms, lookup_key
from glyphoxa.adapters.postgres.server.viewers import viewer_parameter
from glyphoxa.adapters.postgres.transcript.search import name_words
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.domain.recalled import RecalledUtterance
from glyphoxa.world.api import Neighbourhood, Passage

_DEADLINE_MS = 1000


class PostgresGraphRag:
    """A `GraphRag`. Each question is one statement with a deadline of 1 s; late is `Unavailable`.

    Args:
        model: Of the embeddings that are asked with. Chunks that another model embedded are not compared with them.
    """

    def __init__(self, database: Database, *, model: str) -> None:
        self._database = database
        self._model = model
        self._sql = load_queries("world/graph_rag")

    async def query_with_context(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: Neighbourhood, limit: int = 10
    ) -> list[Passage]:
        seer, asked = viewer_parameter(viewer), lookup_key(question).strip()
        if not asked or limit <= 0:
            return []
        middle, sql = lookup_key(around.entity), self._sql["by_words"]
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            rows = await connection.fetch(sql, campaign, seer, middle, around.depth, asked, name_words(asked), limit)
        return [_passage(row, viewer, similarity=False) for row in rows]

    async def query_with_embedding(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        embedding: NDArray[float32],
        *,
        around: Neighbourhood,
        limit: int = 10,
    ) -> list[Passage]:
        """
        Raises:
            InvalidInput: The embedding has other dimensions than the database.
        """
        seer = viewer_parameter(viewer)
        if limit <= 0:
            return []
        # The index is over an expression that names the dimensions.
        query = self._sql["by_meaning"].replace("{{dimensions}}", str(len(embedding)))
        middle, depth = lookup_key(around.entity), around.depth
        try:
            async with self._database.use(campaign, deadline_ms=_DEADLINE_MS, generic_plan=True) as connection:
                rows = await connection.fetch(query, campaign, seer, middle, depth, embedding, self._model, limit)
        except asyncpg.DataError as error:
            raise InvalidInput(f"an embedding of {len(embedding)} dimensions cannot be asked with: {error}") from None
        return [_passage(row, viewer, similarity=True) for row in rows]


def _passage(row: asyncpg.Record, viewer: Viewer, *, similarity: bool) -> Passage:
    return Passage(
        RecalledUtterance(
            UtteranceId(row["utterance_id"]),
            SessionId(row["session_id"]),
            SpeakerId(row["speaker_id"]),
            row["speaker_name"],
            row["text"],
            at_ms(row["timestamp"]),
            is_own=row["speaker_id"] == viewer,
            score=row["score"],
            reason=f"witnessed in session {row['session_id']}",
            similarity=row["score"] if similarity else None,
        ),
        score=row["score"],
        entity_ids=tuple(EntityId(each) for each in row["entity_ids"] or ()),
        depth=row["depth"],
    )
