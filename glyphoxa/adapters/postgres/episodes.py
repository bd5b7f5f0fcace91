"""The timeline and the summaries of sessions in PostgreSQL: facts about entities of type event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import load_queries, viewer_parameter
from glyphoxa.adapters.postgres.world.commits import PostgresWorld
from glyphoxa.adapters.postgres.world.event_log import WorldLog
from glyphoxa.adapters.postgres.world.tables import fact_of_row, visibility_of_row
from glyphoxa.chronicle.timeline import PART_OF, StoredTimeline, timeline_of
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM, RecalledSummary, Viewer
from glyphoxa.transcript.sessions import EPISODE
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from glyphoxa.world.event_log import Cause, Event, dropped

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection


class PostgresEpisodes(CampaignQueries):
    """Implements `TimelineStore`. Reading has a deadline of 5 s, writing that of a commit."""

    file = "episodes"
    deadline_ms = 5_000

    def __init__(self, database: Database, world: PostgresWorld) -> None:
        super().__init__(database)
        self._world = world

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

    async def grow(
        self,
        campaign: CampaignId,
        seen: StoredTimeline,
        events: Sequence[Event],
        cause: Cause,
        said: Mapping[UtteranceId, Utterance],
    ) -> bool:
        async with self._world.writing(campaign, amount=len(events)) as world:
            # The next ones will not contain a line that was retracted, or has other words now.
            is_changed = await rests_on_changed(world.connection, campaign, evidence_of(events), said)
            if is_changed or await self._read(world.connection, campaign) != seen:
                return False
            rows = await world.connection.fetch(self._sql["outdated"], campaign, EPISODE)
            if cause.ordinal is None:
                rows += await world.connection.fetch(self._sql["written"], campaign, cause.session_id)
            await world.undo([row["seq"] for row in rows], Cause("talk", cause.at_ms))
            state = (await world.current()).state
            own = {each.entity for each in events if isinstance(each, EntityAdded)}

            def holds(event: Event) -> bool:
                ends = event.claim.ends if isinstance(event, FactStated) else ()
                return all(end in own or state.entity(end) is not None for end in ends)

            if left := list(filter(holds, events)):
                await world.commit(left, cause)
            return True

    async def _read(self, connection: Connection, campaign: CampaignId, viewer: Viewer = DM) -> StoredTimeline:
        ids = await connection.fetch(self._sql["nodes"], campaign, EPISODE)
        rows = await connection.fetch(self._sql["timeline"], campaign, EPISODE, PART_OF, viewer_parameter(viewer))
        seen = {EntityId(row["id"]): visibility_of_row(row) for row in ids}
        outdated = {row["seq"] for row in await connection.fetch(self._sql["outdated"], campaign, EPISODE)}
        timeline = timeline_of(seen, map(fact_of_row, (row for row in rows if row["seq"] not in outdated)), viewer)
        if viewer != DM:
            return timeline
        undone = dropped(await WorldLog(connection, campaign).undoing())
        decided = await connection.fetch(self._sql["decided"], campaign, EPISODE)
        return replace(timeline, decided=frozenset(row["id"] for row in decided if row["seq"] not in undone))


def evidence_of(events: Iterable[Event]) -> Iterator[UtteranceId]:
    """Yield the utterances that facts rest on."""
    for event in events:
        evidence = event.attributes.get("evidence") if isinstance(event, FactStated) else None
        if isinstance(evidence, list):
            yield from evidence


async def rests_on_changed(
    connection: Connection,
    campaign: CampaignId,
    lines: Iterable[UtteranceId],
    said: Mapping[UtteranceId, Utterance] = MappingProxyType({}),
) -> bool:
    """Return whether a line has been retracted, withheld or erased, or is not as it was said any more.

    Args:
        said: Lines as they were read.
    """
    rows: list[dict[str, str]] = []
    for line in lines:
        was = said.get(line)
        rows.append({"id": line} if was is None else {"id": line, "text": was.text, "speaker": was.speaker_name})
    return bool(await connection.fetchval(load_queries("episodes")["rests_on_changed"], campaign, rows))
