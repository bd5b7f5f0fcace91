from __future__ import annotations

from collections.abc import Collection, Mapping

import asyncpg

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.server.values import storable
from glyphoxa.adapters.postgres.transcript.turn_rows import turn_of_row
from glyphoxa.adapters.postgres.transcript.utterance_rows import said_of_row
from glyphoxa.dm.ports import Uttered
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, TurnId, UtteranceId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.domain.utterance import Correction

_DEADLINE_MS = 10_000


class PostgresTurns:
    """The DM's `Turns`. Calls have a deadline of 10 s."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = load_queries("transcript/turns")

    async def latest(
        self, campaign: CampaignId, *, session: SessionId | None = None, npc: NpcId | None = None, limit: int
    ) -> list[TurnRecord]:
        return [turn_of_row(row) for row in await self._fetch("latest", campaign, session, npc, limit)]

    async def turn(self, campaign: CampaignId, turn: TurnId) -> TurnRecord | None:
        rows = await self._fetch("turn", campaign, storable(turn))
        return turn_of_row(rows[0]) if rows else None

    async def ending_with(
        self,
        campaign: CampaignId,
        ending: str,
        *,
        session: SessionId | None = None,
        npc: NpcId | None = None,
        limit: int,
    ) -> list[TurnId]:
        rows = await self._fetch("ending_with", campaign, storable(ending), session, npc, limit)
        return [TurnId(row["id"]) for row in rows]

    async def uttered(self, campaign: CampaignId, ids: Collection[UtteranceId]) -> Mapping[UtteranceId, Uttered]:
        rows = await self._fetch("uttered", campaign, list(ids)) if ids else []
        return {UtteranceId(row["utterance_id"]): _uttered(row) for row in rows}

    async def _fetch(self, query: str, campaign: CampaignId, *arguments: object) -> list[asyncpg.Record]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            return await connection.fetch(self._sql[query], campaign, *arguments)


def _uttered(row: asyncpg.Record) -> Uttered:
    return Uttered(said_of_row(row), tuple(Correction(**values) for values in row["corrections"] or ()))
