"""A transaction on one campaign's world: its log, its tables and its talk, all of one moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import asyncpg

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.world.event_log import WorldLog
from glyphoxa.adapters.postgres.world.retraction import TalkRetraction
from glyphoxa.adapters.postgres.world.tables import WorldTables
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection

_USUAL_TIMEOUT_MS: Final = 20_000
"""A statement of a transaction that may take longer has as long as the transaction."""
_UNSTORABLE: Final = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)


@dataclass(frozen=True, slots=True)
class WorldTransaction:
    """What a transaction works on."""

    connection: Connection
    campaign: CampaignId
    log: WorldLog
    tables: WorldTables
    talk: TalkRetraction

    async def require_campaign(self) -> None:
        """
        Raises:
            NotFound: There is no such campaign.
        """
        await self._require("campaign")

    async def lock_campaign(self) -> None:
        """Nobody else writes to this world until the transaction ends.

        Raises:
            NotFound: There is no such campaign.
        """
        await self._require("lock_campaign")

    async def _require(self, query: str) -> None:
        sql = load_queries("world/transaction")
        if await self.connection.fetchval(sql[query], self.campaign) is None:
            known = [row["id"] for row in await self.connection.fetch(sql["campaigns"])]
            raise NotFound(f"no campaign {self.campaign!r} here: " + did_you_mean(self.campaign, known))


@asynccontextmanager
async def world_transaction(
    database: Database,
    campaign: CampaignId,
    *,
    deadline_ms: int,
    isolation: Literal["repeatable_read"] | None = None,
) -> AsyncIterator[WorldTransaction]:
    """
    Raises:
        InvalidInput: The database cannot hold what the block writes.
        Unavailable: The database is away, or the deadline has passed; nothing was written.
    """
    try:
        async with (
            database.use(campaign, deadline_ms=deadline_ms) as connection,
            connection.transaction(isolation=isolation),
        ):
            if deadline_ms > _USUAL_TIMEOUT_MS:
                await connection.execute(load_queries("world/transaction")["set_timeouts"], str(deadline_ms))
            on = connection, campaign
            yield WorldTransaction(connection, campaign, WorldLog(*on), WorldTables(*on), TalkRetraction(*on))
    except _UNSTORABLE as error:
        raise InvalidInput(f"the database cannot hold this: {error}") from None
