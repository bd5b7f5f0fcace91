"""Summaries of sessions and the timeline in PostgreSQL: facts about entities of type event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import viewer_parameter
from glyphoxa.adapters.postgres.world.tables import fact_of_row, visibility_of_row
from glyphoxa.adapters.postgres.world.world import PostgresWorld, WorldWriting
from glyphoxa.chronicle.timeline import PART_OF, StoredTimeline, timeline_of
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId
from glyphoxa.domain.knowledge import DM, Fact, RecalledSummary, Viewer
from glyphoxa.transcript.sessions import EPISODE, episode_of
from glyphoxa.world.events import Cause, Event
from glyphoxa.world.fact_events import FactStated

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection


class PostgresEpisodes(CampaignQueries):
    """Implements `Episodes` and `Timeline`. Reading has a deadline of 5 s, writing that of a commit."""

    file = "episodes"
    deadline_ms = 5_000

    def __init__(self, database: Database, world: PostgresWorld) -> None:
        super().__init__(database)
        self._world = world

    async def summaries(self, campaign: CampaignId, session: SessionId) -> Sequence[Fact]:
        return [fact_of_row(row) for row in await self._fetch("summaries", campaign, episode_of(session))]

    async def replace(self, campaign: CampaignId, session: SessionId, events: Sequence[Event], cause: Cause) -> bool:
        async with self._world.writing(campaign, amount=len(events)) as world:
            if await world.connection.fetchval(self._sql["is_decided"], campaign, episode_of(session)):
                return False
            rows = await world.connection.fetch(self._sql["written"], campaign, session)
            await world.undo([row["seq"] for row in rows], Cause("talk", cause.at_ms))
            await self._commit(world, events, cause)
            return True

    async def read(self, campaign: CampaignId, viewer: Viewer = DM) -> StoredTimeline:
        """Return the timeline as far as a viewer may know it."""
        async with self._use(campaign) as connection:
            return await self._read(connection, campaign, viewer)

    async def arc(self, campaign: CampaignId, npc: NpcId, *, but: SessionId) -> list[RecalledSummary]:
        """Return what an NPC knows of the nodes that nothing sums up, in the order of the talk, each with its tier.

        Args:
            but: The present session, whose nodes are left out, and those that sum up some of it.
        """
        nodes = (await self.read(campaign, npc)).nodes
        past = {node.id: node for node in nodes if node.end.session_id not in (None, but)}
        return [
            RecalledSummary(SessionId(str(node.end.session_id)), str(fact.claim.content), node.end.at_ms, node.tier)
            for node in past.values()
            if node.parent not in past
            for fact in node.summaries
        ]

    async def grow(self, campaign: CampaignId, seen: StoredTimeline, events: Sequence[Event], cause: Cause) -> bool:
        async with self._world.writing(campaign, amount=len(events)) as world:
            is_as_seen = await self._read(world.connection, campaign) == seen
            return is_as_seen and await self._commit(world, events, cause)

    async def _read(self, connection: Connection, campaign: CampaignId, viewer: Viewer = DM) -> StoredTimeline:
        ids = await connection.fetch(self._sql["nodes"], campaign, EPISODE)
        rows = await connection.fetch(self._sql["timeline"], campaign, EPISODE, PART_OF, viewer_parameter(viewer))
        seen = {EntityId(row["id"]): visibility_of_row(row) for row in ids}
        gone = await connection.fetch(self._sql["gone"], campaign, EPISODE)
        return replace(timeline_of(seen, map(fact_of_row, rows), viewer), gone=frozenset(row["id"] for row in gone))

    async def _commit(self, world: WorldWriting, events: Sequence[Event], cause: Cause) -> bool:
        """Commit events, unless a line they rest on was retracted meanwhile: the next ones will not contain it."""
        rests_on = list(evidence_of(events))
        if not events or await world.connection.fetchval(self._sql["rests_on_retracted"], world.campaign, rests_on):
            return False
        await world.commit(events, cause)
        return True


def evidence_of(events: Iterable[Event]) -> Iterator[str]:
    """Yield the utterances that facts rest on."""
    for event in events:
        evidence = event.attributes.get("evidence") if isinstance(event, FactStated) else None
        if isinstance(evidence, list):
            yield from evidence
