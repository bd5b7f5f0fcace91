from __future__ import annotations

from typing import Final

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.gc_pause import gc_paused
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.world.event_log import WorldLog
from glyphoxa.adapters.postgres.world.tables import WorldTables
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.world.api import WorldEvent, WorldRead, WorldState

_DEADLINE_MS: Final = 1_000
_READ_DEADLINE_MS: Final = 60_000
_MUCH: Final = 10_000


class PostgresWorldFeed:
    """A `WorldFeed`. Events have a deadline of 1 s, a whole world one of a minute."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._of_campaign = load_queries("world/feed")["campaign"]

    async def read(self, campaign: CampaignId) -> WorldRead:
        # All of one moment.
        async with (
            self._database.use(campaign, deadline_ms=_READ_DEADLINE_MS) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            described = await connection.fetchrow(self._of_campaign, campaign)
            if described is None:
                return WorldRead(WorldState(), None)
            last = await WorldLog(connection, campaign).page(after=0, limit=1, latest_first=True)
            with gc_paused(amount=_MUCH):
                state = await WorldTables(connection, campaign).read_current()
        also = {EntityId(npc["entity"]): (npc["name"], *npc["aliases"]) for npc in described["npcs"] or ()}
        return WorldRead(state, last[0] if last else None, described["language"], also)

    async def changes(self, campaign: CampaignId, *, since: int, limit: int) -> list[WorldEvent]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            log = WorldLog(connection, campaign)
            return await log.page(after=since - 1, limit=limit, latest_first=False)
