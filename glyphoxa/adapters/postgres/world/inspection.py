"""Inspect memory for the DM: facts that need review, knowledge and its sources, utterances, and their storage."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glyphoxa.adapters.postgres.server.database import CampaignQueries
from glyphoxa.adapters.postgres.server.sql import lookup_key, storable, viewer_parameter
from glyphoxa.adapters.postgres.transcript.log import said_of_row
from glyphoxa.adapters.postgres.world.tables import (
    cause_of_row,
    ended_of_row,
    fact_of_row,
    visibility_of_row,
)
from glyphoxa.dm.ports import CitedUtterance, Session
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import EndedFact, Fact, Status, Viewer, Visibility
from glyphoxa.world.encoding import decode
from glyphoxa.world.event_log import WorldEvent


@dataclass(frozen=True, slots=True)
class SessionTalk:
    """Utterance counts of a session.

    Attributes:
        n_retracted: How many of them were rolled back.
        last_at_ms: Start of the last one; None if there are none.
    """

    id: SessionId
    started_ms: int
    n_entries: int
    n_retracted: int
    last_at_ms: int | None
    title: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a session can be recalled by meaning.

    Attributes:
        n_embedded: Utterances that have a chunk.
    """

    session: SessionId
    n_entries: int
    n_embedded: int
    n_chunks: int


@dataclass(frozen=True, slots=True)
class NearChunk:
    """
    Attributes:
        distance: 1 less the cosine: 0 is identical, 1 unrelated.
        knowers: NPCs that were present.
    """

    session_id: SessionId
    content: str
    distance: float
    knowers: Sequence[NpcId]
    at_ms: int
    is_retracted: bool


@dataclass(frozen=True, slots=True)
class SeenEntity:
    """An entity and who may know of it."""

    entity: Entity
    visibility: Visibility


class PostgresInspection(CampaignQueries):
    """The DM's `Review` and further inspection. One query each, with a deadline of 10 s."""

    file = "world/inspection"
    deadline_ms = 10_000

    # Implements `Review`

    async def of_status(
        self, campaign: CampaignId, status: Status, *, session: SessionId | None = None, limit: int
    ) -> list[Fact]:
        """Return facts of a status, the least certain first."""
        return [fact_of_row(row) for row in await self._fetch("of_status", campaign, status, session, limit)]

    async def waiting(self, campaign: CampaignId) -> Mapping[Status, int]:
        """Return the number of facts of each status."""
        return {row["status"]: row["n"] for row in await self._fetch("waiting", campaign)}

    async def current(
        self, campaign: CampaignId, viewer: Viewer, *, about: EntityId | None = None, limit: int
    ) -> list[Fact]:
        rows = await self._fetch("current", campaign, viewer_parameter(viewer), about, limit)
        return [fact_of_row(row) for row in rows]

    async def of_subjects(self, campaign: CampaignId, viewer: Viewer, entities: Collection[EntityId]) -> list[Fact]:
        """Return the accepted facts that begin at one of these entities, as far as the viewer may know them."""
        rows = await self._fetch("of_subjects", campaign, viewer_parameter(viewer), list(entities))
        return [fact_of_row(row) for row in rows]

    async def facts(self, campaign: CampaignId, ids: Collection[FactId]) -> list[Fact]:
        return [fact_of_row(row) for row in await self._fetch("facts", campaign, list(ids))] if ids else []

    async def resting_on(self, campaign: CampaignId, fact: FactId) -> list[Fact]:
        return [fact_of_row(row) for row in await self._fetch("resting_on", campaign, fact)]

    async def beginning_with(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[Fact]:
        return [fact_of_row(row) for row in await self._fetch("beginning_with", campaign, lookup_key(prefix), limit)]

    async def like(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[FactId]:
        return [FactId(row["fact_id"]) for row in await self._fetch("like", campaign, lookup_key(prefix), limit)]

    async def ended(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[EndedFact]:
        return [ended_of_row(row) for row in await self._fetch("ended", campaign, lookup_key(prefix), limit)]

    async def once_held(self, campaign: CampaignId, ids: Collection[FactId]) -> list[EndedFact]:
        return [ended_of_row(row) for row in await self._fetch("once_held", campaign, list(ids))] if ids else []

    async def ended_by(self, campaign: CampaignId, events: Collection[int]) -> list[EndedFact]:
        return [ended_of_row(row) for row in await self._fetch("ended_by", campaign, list(events))]

    async def events_about(self, campaign: CampaignId, fact: Fact) -> list[WorldEvent]:
        claim = fact.claim
        ends = [claim.subject] if claim.object is None else [claim.subject, claim.object]
        rows = await self._fetch("events_about", campaign, fact.id, claim.predicate, ends)
        return [decode(campaign, row["seq"], cause_of_row(row), row["event_type"], row["payload"]) for row in rows]

    async def said(self, campaign: CampaignId, utterance: UtteranceId) -> CitedUtterance | None:
        rows = await self._fetch("said", campaign, utterance)
        return said_of_row(rows[0]) if rows else None

    async def said_ending_with(self, campaign: CampaignId, ending: str, *, limit: int) -> list[CitedUtterance]:
        return [said_of_row(row) for row in await self._fetch("said_ending_with", campaign, ending, limit)]

    async def talk_after(self, campaign: CampaignId, session: SessionId, ordinal: int) -> int:
        [row] = await self._fetch("talk_after", campaign, session, ordinal)
        return int(row["count"])

    async def sessions(self, campaign: CampaignId) -> list[Session]:
        return [Session(**row) for row in await self._fetch("sessions", campaign)]

    async def set_title(self, campaign: CampaignId, session: SessionId, title: str) -> None:
        await self._fetch("set_title", campaign, session, storable(title))

    # Further inspection

    async def entries_per_session(self, campaign: CampaignId) -> list[SessionTalk]:
        """Return one item for each session, earliest first."""
        return [SessionTalk(**row) for row in await self._fetch("entries_per_session", campaign)]

    async def recent(self, campaign: CampaignId, session: SessionId, *, limit: int = 20) -> list[CitedUtterance]:
        """Latest first."""
        return [said_of_row(row) for row in await self._fetch("recent", campaign, session, limit)]

    async def lines(self, campaign: CampaignId, session: SessionId, *, first: int, limit: int) -> list[CitedUtterance]:
        """Return utterances in order, from the ordinal `first`."""
        return [said_of_row(row) for row in await self._fetch("lines", campaign, session, first, limit)]

    async def own_lines(
        self, campaign: CampaignId, speaker: SpeakerId, *, before: UtteranceId | None = None, limit: int
    ) -> list[CitedUtterance]:
        """Return a player's utterances, newest first, in the words as they were heard or typed.

        Args:
            before: Only earlier ones.
        """
        return [said_of_row(row) for row in await self._fetch("own_lines", campaign, speaker, before, limit)]

    async def corrected(self, campaign: CampaignId, session: SessionId, *, limit: int) -> list[CitedUtterance]:
        """Players' utterances whose text differs from the raw text, in order."""
        return [said_of_row(row) for row in await self._fetch("corrected", campaign, session, limit)]

    async def coverage(self, campaign: CampaignId) -> list[Coverage]:
        """Return one item for each session, earliest first."""
        return [Coverage(**row) for row in await self._fetch("coverage", campaign)]

    async def models(self, campaign: CampaignId) -> dict[str, int]:
        """Number of the campaign's chunks by embedding model."""
        return {row["model"]: row["n"] for row in await self._fetch("models", campaign)}

    async def nearest(
        self, campaign: CampaignId, embedding: np.ndarray[Any, np.dtype[np.float32]], *, model: str, limit: int
    ) -> list[NearChunk]:
        """The chunks nearest to an embedding by cosine distance, exactly, nearest first.

        Args:
            embedding: A vector of unit length.
            model: Its model; chunks of other models are ignored.
        """
        return [NearChunk(**row) for row in await self._fetch("nearest", campaign, embedding, model, limit)]

    async def near_entities(
        self, campaign: CampaignId, embedding: np.ndarray[Any, np.dtype[np.float32]], *, model: str, limit: int
    ) -> list[tuple[float, str, str]]:
        """Distance, name and type of the nearest entities. Arguments as in `nearest`."""
        query = self._sql["near_entities"].replace("{{dimensions}}", str(len(embedding)))
        async with self._database.use(campaign, deadline_ms=self.deadline_ms) as connection:
            rows = await connection.fetch(query, campaign, embedding, model, limit)
        return [(row["distance"], row["name"], row["type"]) for row in rows]

    async def entities(self, campaign: CampaignId, *, of_type: str | None = None) -> list[SeenEntity]:
        """All entities, whoever may know of them."""
        return [
            SeenEntity(
                Entity(EntityId(row["id"]), row["type"], row["name"], tuple(row["aliases"]), row["attributes"]),
                visibility_of_row(row),
            )
            for row in await self._fetch("entities", campaign, of_type)
        ]

    async def relations_among(
        self, campaign: CampaignId, viewer: Viewer, entities: Collection[EntityId], *, limit: int
    ) -> list[Fact]:
        """Accepted relations between two of these entities that the viewer may know."""
        rows = await self._fetch("relations_among", campaign, viewer_parameter(viewer), list(entities), limit)
        return [fact_of_row(row) for row in rows]
