"""State atoms in PostgreSQL: grafted with a reading step, consolidated in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import asyncpg

from glyphoxa.adapters.postgres.server.database import CampaignQueries
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.chronicle.utterance_nodes import AtomEdge, EarlierAtom, OpenThread, StateAtom, edge_of
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection

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
