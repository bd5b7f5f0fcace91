from __future__ import annotations

from collections.abc import Mapping

import asyncpg
from pydantic import TypeAdapter

from glyphoxa.adapters.postgres.database import Database
from glyphoxa.adapters.postgres.paragraphs import load_paragraphs
from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS, Campaign, Entity, Relationship
from glyphoxa.domain.errors import NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, EntityId

_DEADLINE_MS = 1000
_LOAD_DEADLINE_MS = 10_000


class PostgresGraph:
    """A `KnowledgeGraph`. Reads have a deadline of 1 s, a load one of 10 s; late is `Unavailable`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = load_paragraphs("graph")
        self._document = TypeAdapter(Campaign)

    async def load(self, campaign: Campaign) -> None:
        entities = [
            {
                "id": e.id,
                "type": e.type,
                "name": e.name,
                "aliases": list(e.aliases),
                "attributes": dict(e.attributes),
            }
            for e in campaign.entities
        ]
        relationships = [edge for r in campaign.relationships for edge in _edges(r)]
        document = self._document.dump_python(campaign, mode="json")
        for secret in document["secrets"]:
            secret["known_by"].sort()  # a set has no order, and the same file must give the same document
        async with self._database.use(campaign.id, deadline_ms=_LOAD_DEADLINE_MS) as connection, connection.transaction():
            await connection.execute(self._sql["put_campaign"], campaign.id, campaign.name, campaign.language, document)
            await connection.execute(self._sql["remove_entities"], campaign.id, [e.id for e in campaign.entities])
            await connection.execute(self._sql["put_entities"], campaign.id, entities)
            await connection.execute(self._sql["remove_relationships"], campaign.id, relationships)
            await connection.execute(self._sql["put_relationships"], campaign.id, relationships)

    async def campaign(self, campaign: CampaignId) -> Campaign:
        """A campaign as it was loaded.

        Raises:
            NotFound: It was never loaded here.
        """
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            document = await connection.fetchval(self._sql["get_campaign"], campaign)
        if document is None:
            raise NotFound(f"no campaign {campaign!r} here: " + did_you_mean(campaign, await self.campaigns()))
        return self._document.validate_python(document)

    async def campaigns(self) -> list[CampaignId]:
        async with self._database.use(None, deadline_ms=_DEADLINE_MS) as connection:
            return [CampaignId(row["id"]) for row in await connection.fetch(self._sql["list_campaigns"])]

    async def entities(self, campaign: CampaignId, *, of_type: str | None = None) -> list[Entity]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            rows = await connection.fetch(self._sql["entities"], campaign, of_type)
        return [_entity(row) for row in rows]

    async def neighbourhood(
        self, campaign: CampaignId, entity: EntityId
    ) -> tuple[Entity | None, list[tuple[Relationship, Entity]]]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            row = await connection.fetchrow(self._sql["entity"], campaign, entity)
            if row is None:
                return None, []
            rows = await connection.fetch(self._sql["neighbours"], campaign, entity, sorted(BIDIRECTIONAL_RELATIONS))
        return _entity(row), [(_relationship(r), _entity(r)) for r in rows]


def _edges(relationship: Relationship) -> list[Mapping[str, object]]:
    """The rows of a relationship: two, if it holds both ways."""
    ways = [(relationship.source, relationship.target)]
    if relationship.type in BIDIRECTIONAL_RELATIONS:
        ways.append((relationship.target, relationship.source))
    return [
        {
            "source": source,
            "target": target,
            "type": relationship.type,
            "attributes": dict(relationship.attributes),
            "provenance": {
                "session_id": None,
                "timestamp": None,
                "confidence": relationship.confidence,
                "source": relationship.origin,
                "dm_confirmed": relationship.dm_confirmed,
            },
        }
        for source, target in ways
    ]


def _entity(row: asyncpg.Record) -> Entity:
    return Entity(EntityId(row["id"]), row["type"], row["name"], tuple(row["aliases"]), row["attributes"])


def _relationship(row: asyncpg.Record) -> Relationship:
    provenance = row["provenance"]
    return Relationship(
        source=EntityId(row["source_id"]),
        target=EntityId(row["target_id"]),
        type=row["rel_type"],
        attributes=row["rel_attributes"],
        confidence=provenance["confidence"],
        origin=provenance["source"],
        dm_confirmed=provenance["dm_confirmed"],
    )
