"""Nodes that the chronicle writes, in PostgreSQL: the timeline and the summaries of sessions, and state atoms.

The timeline and the summaries are facts about entities of type event. State atoms are grafted with a reading step and
consolidated in the background.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import asyncpg

from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import load_queries, viewer_parameter
from glyphoxa.adapters.postgres.world.commits import PostgresWorld
from glyphoxa.adapters.postgres.world.event_log import WorldLog
from glyphoxa.adapters.postgres.world.tables import fact_of_row, visibility_of_row
from glyphoxa.chronicle.timeline_writer import PART_OF, StoredTimeline, timeline_of
from glyphoxa.chronicle.utterance_nodes import AtomEdge, EarlierAtom, OpenThread, StateAtom, edge_of
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM, RecalledSummary, Viewer
from glyphoxa.transcript.sessions import EPISODE
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from glyphoxa.world.event_log import Cause, Event, dropped

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection

# The timeline


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


# State atoms

AT_ONCE: Final = 50
"""Atoms of one pass, which takes some hundred milliseconds in a campaign of 4,000 atoms."""
_LEAST: Final = 20
_NEAREST: Final = 20


async def graft(
    connection: Connection, campaign: CampaignId, atoms: Sequence[StateAtom], *, gone: Sequence[UtteranceId]
) -> None:
    """Store atoms inside a transaction, after deleting those of the utterances `gone`."""
    sql = load_queries("utterance_nodes")
    if gone:
        await connection.execute(sql["forget"], campaign, list(gone))
    if atoms:
        rows = [{**asdict(each), "stable_key": each.stable_key, "utterance_id": each.utterance} for each in atoms]
        await connection.execute(sql["graft"], campaign, rows)
    if changed := [*gone, *(each.utterance for each in atoms)]:
        await connection.execute(sql["topics"], campaign, changed)


class PostgresAtoms(CampaignQueries):
    """State atoms, with a deadline of 5 s; late is `Unavailable`, and nothing was written."""

    file = "utterance_nodes"
    deadline_ms = 5_000

    async def consolidate(self, campaign: CampaignId, *, least: int = _LEAST) -> int:
        """Connect and merge new atoms, up to 50 in one transaction. Returns how many; 0 if another process does.

        Args:
            least: Fewer wait until the oldest is 15 minutes old.
        """
        async with self._database.use(campaign, deadline_ms=self.deadline_ms) as connection, connection.transaction():
            if not await connection.fetchval(self._sql["lease"], campaign):
                return 0
            pending = await connection.fetch(self._sql["pending"], campaign, least, AT_ONCE)
            keys = [row["stable_key"] for row in pending]
            rows = await connection.fetch(self._sql["earlier"], campaign, keys, _NEAREST) if keys else []
            edges = await asyncio.to_thread(_edges, pending, rows)
            stored = [(campaign, each.source, each.target, each.label, each.confidence) for each in edges]
            await connection.executemany(self._sql["connect"], stored)
            await connection.execute(self._sql["consolidated"], campaign, keys)
        return len(keys)

    async def links(self, campaign: CampaignId, npc: NpcId) -> list[tuple[str, str, str]]:
        """Return what connects the utterances that an NPC heard with entities, facts and each other.

        Each is a type of edge and the ids of its two ends, which the NPC may not know of.
        """
        return [tuple(row) for row in await self._fetch("links", campaign, npc)]

    async def open_threads(
        self, campaign: CampaignId, session: SessionId | None = None, *, npc: NpcId | None = None, limit: int = 20
    ) -> list[OpenThread]:
        """Return the threads that nothing continues yet, latest first.

        Args:
            npc: Only what this NPC heard; None: everything, for the DM.
        """
        return [OpenThread(**row) for row in await self._fetch("open_threads", campaign, session, npc, limit)]

    async def closed_threads(self, campaign: CampaignId, session: SessionId, *, limit: int = 20) -> list[str]:
        """Return the summaries of threads that something said in a session continues, latest first."""
        return [row["summary"] for row in await self._fetch("closed_threads", campaign, session, limit)]


def _edges(pending: Sequence[asyncpg.Record], rows: Sequence[asyncpg.Record]) -> list[AtomEdge]:
    """Return the edges of new atoms, in their order. One that is merged stands for the one it is the same as."""
    kept: dict[str, str] = {}
    edges: list[AtomEdge] = []
    for new in pending:
        earlier = [
            EarlierAtom(
                kept.get(row["stable_key"], row["stable_key"]),
                row["kind"],
                row["summary"],
                row["cosine"],
                row["is_by_same"],
            )
            for row in rows
            if row["new_key"] == new["stable_key"]
        ]
        edge = edge_of(new["stable_key"], new["kind"], new["summary"], earlier, new["language"] or "en")
        if edge is not None:
            edges.append(edge)
        if edge is not None and edge.label == "same_as":
            kept[edge.source] = edge.target
    return edges
