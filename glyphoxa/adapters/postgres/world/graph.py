"""Search transcripts inside a neighbourhood of the knowledge graph, for a viewer."""

from __future__ import annotations

import asyncpg
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import at_ms, lookup_key, viewer_parameter
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import RecalledUtterance, Viewer
from glyphoxa.language.text import Text
from glyphoxa.world.graph import (
    Neighbourhood,
    Passage,
)


class PostgresGraphRag(CampaignQueries):
    """Implements `GraphRag`. Each call is one statement with a deadline of 1 s; late is `Unavailable`.

    Args:
        model: The model of the query embeddings. Chunks of other models are ignored.
    """

    file = "world/graph_rag"

    def __init__(self, database: Database, *, model: str) -> None:
        super().__init__(database)
        self._model = model

    async def query_with_context(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: Neighbourhood, limit: int = 10
    ) -> list[Passage]:
        seer, asked = viewer_parameter(viewer), lookup_key(question).strip()
        if not asked or limit <= 0:
            return []
        where = (seer, lookup_key(around.entity), around.depth)
        rows = await self._fetch("by_words", campaign, *where, asked, " ".join(Text.of(asked).named), limit)
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
        # The index is over an expression that contains the dimensions.
        query = self._sql["by_meaning"].replace("{{dimensions}}", str(len(embedding)))
        middle, depth = lookup_key(around.entity), around.depth
        try:
            async with self._database.use(campaign, deadline_ms=self.deadline_ms, generic_plan=True) as connection:
                rows = await connection.fetch(query, campaign, seer, middle, depth, embedding, self._model, limit)
        except asyncpg.DataError as error:
            raise InvalidInput(f"cannot search with an embedding of {len(embedding)} dimensions: {error}") from None
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
