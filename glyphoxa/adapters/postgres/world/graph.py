"""Query the knowledge graph for a viewer, and search transcripts inside a neighbourhood of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import asyncpg
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import at_ms, lookup_key, viewer_parameter
from glyphoxa.adapters.postgres.world.tables import fact_of_row
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import Fact, RecalledUtterance, Viewer
from glyphoxa.language.text import Text
from glyphoxa.world.graph import (
    KNOWN_THROUGH,
    IdentitySnapshot,
    Known,
    Neighbourhood,
    Passage,
    Reached,
    Subgraph,
    Walk,
)


class PostgresGraph(CampaignQueries):
    """Implements `KnowledgeGraph`. Each call is one statement with a deadline of 1 s; late is `Unavailable`."""

    file = "world/graph"

    async def entities(self, campaign: CampaignId, viewer: Viewer, *, of_type: str | None = None) -> list[Entity]:
        rows = await self._fetch("entities", campaign, viewer_parameter(viewer), of_type)
        return [_entity(row) for row in rows]

    async def known(self, campaign: CampaignId, viewer: Viewer, entity: EntityId) -> Known | None:
        rows = await self._fetch("known", campaign, viewer_parameter(viewer), lookup_key(entity), False)
        return _known(rows)

    async def identity_snapshot(self, campaign: CampaignId, npc: NpcId, entity: EntityId) -> IdentitySnapshot | None:
        rows = await self._fetch("known", campaign, viewer_parameter(npc), lookup_key(entity), True)
        known = _known(rows)
        if known is None:
            return None
        about_itself = (*known.attributes, *(fact for fact, _ in known.relations))
        secrets = [fact for fact in about_itself if fact.visibility.scope == "secret"]
        secrets += [fact_of_row(row) for row in rows if row["part"] == 2]
        return IdentitySnapshot(known, tuple(sorted(secrets, key=lambda fact: (fact.seq, fact.id))))

    async def visible_subgraph(
        self,
        campaign: CampaignId,
        npc: NpcId,
        entity: EntityId,
        *,
        depth: int = 1,
        through: Collection[str] = KNOWN_THROUGH,
    ) -> Subgraph:
        rows = await self._fetch(
            "visible_subgraph", campaign, viewer_parameter(npc), lookup_key(entity), depth, _texts(through)
        )
        reached = [Reached(_entity(row), row["depth"]) for row in rows if row["part"] == 0]
        reached.sort(key=lambda each: (each.depth, each.entity.name, each.entity.id))
        return Subgraph(tuple(reached), _facts(row for row in rows if row["part"] == 1))

    async def traverse(self, campaign: CampaignId, viewer: Viewer, entity: EntityId, walk: Walk) -> list[Reached]:
        if walk.limit <= 0:
            return []
        types = None if walk.types is None else _texts(walk.types)
        how = (walk.depth, walk.direction, types, walk.limit)
        rows = await self._fetch("traverse", campaign, viewer_parameter(viewer), lookup_key(entity), *how)
        return [Reached(_entity(row), row["depth"]) for row in rows]


def _known(rows: Sequence[asyncpg.Record]) -> Known | None:
    node = next((_entity(row) for row in rows if row["part"] == 0), None)
    facts = ((fact_of_row(row), None if row["object_id"] is None else _entity(row)) for row in rows if row["part"] == 1)
    return None if node is None else Known.of(node, facts)


def _facts(rows: Iterable[asyncpg.Record]) -> tuple[Fact, ...]:
    return tuple(sorted((fact_of_row(row) for row in rows), key=lambda fact: (fact.seq, fact.id)))


def _entity(row: asyncpg.Record) -> Entity:
    attributes = row["entity_attributes"] or {}
    return Entity(EntityId(row["id"]), row["type"], row["name"], tuple(row["aliases"] or ()), attributes)


def _texts(given: Collection[str]) -> list[str]:
    return sorted(lookup_key(each) for each in given)


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
