"""Embed all utterances again: for another model, other dimensions, or a fresh start.

One short transaction deletes the old vectors and names the new model; then the queue of new utterances embeds all of
them. The next run continues an interrupted one. Meanwhile, open tables recall with the vectors in their memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import asyncpg
from loguru import logger

from glyphoxa.adapters.postgres.chunks.embedding_queue import EmbeddingQueue, Filled, try_something_harmless
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable, counted, did_you_mean
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.vectors import Embedder

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import OwnConnection

_REINDEX_LOCK: Final = 0x676C7972
_A_WEEK_MS: Final = 7 * 24 * 3_600_000
_CLEAR_TRIES: Final = 20
_BETWEEN_TRIES_S: Final = 0.5

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Reindexed:
    """
    Attributes:
        is_anew: The old vectors were deleted, and everything was embedded again.
    """

    filled: Filled
    is_anew: bool


async def reindex(
    database: Database,
    embedder: Embedder,
    *,
    campaign: CampaignId | None = None,
    full: bool = False,
    tell: Tell = lambda _: None,
) -> Reindexed:
    """Embed what is missing or outdated; everything if the model has changed.

    Args:
        database: Opened with `any_model`.
        campaign: Only this campaign.
        full: Re-embed everything in any case.
        tell: Receives progress lines for the user.

    Raises:
        InvalidInput: A reindexing of this database is under way; or a single campaign is to be embedded by a model
            other than the database's.
        NotFound: The campaign has no utterances.
        Unavailable: The database or the model is away; the next run continues.
    """
    queue = EmbeddingQueue(database, embedder)
    async with database.administer(deadline_ms=_A_WEEK_MS) as connection:
        sql = load_queries("chunks/reindex")
        if not await connection.fetchval(sql["try_lock"], _REINDEX_LOCK):
            raise InvalidInput("this database is being reindexed by another process: let that one finish, or stop it")
        campaigns = await _campaigns(connection)
        if campaign is not None and campaign not in campaigns:
            raise NotFound(f"no utterances of a campaign {campaign!r} here: {did_you_mean(campaign, campaigns)}")
        stored = await connection.fetchrow(sql["model"])
        is_ours = stored is not None and tuple(stored) == (embedder.name, embedder.dimensions)
        if campaign is not None and not is_ours:
            raise InvalidInput(
                f"the vectors of this database are from the model {stored and stored['model']!r}, and one campaign "
                f"alone cannot use {embedder.name!r}: omit --campaign"
            )
        is_anew = campaign is None and (full or not is_ours)
        if is_anew:
            await try_something_harmless(embedder)
            await _clear(connection, embedder)
        elif full and campaign is not None:
            await queue.want_all(campaign)
        filled = Filled()
        for each in campaigns if campaign is None else [campaign]:
            due = await queue.survey(each)
            filled += await queue.drain(each, tell=_counted(tell, each, due))
    return Reindexed(filled, is_anew)


async def _clear(connection: OwnConnection, embedder: Embedder) -> None:
    sql = load_queries("chunks/reindex")
    for attempt in range(1, _CLEAR_TRIES + 1):
        try:
            async with connection.transaction():
                await connection.execute(sql["note"], "embedding_model", embedder.name)
                await connection.execute(sql["note"], "embedding_dimensions", str(embedder.dimensions))
                await connection.execute(sql["next_generation"])
                await connection.execute(sql["clear"].replace("{{embedding_dimensions}}", str(embedder.dimensions)))
            return
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            logger.debug("the table of chunks is in use, try {}", attempt)
            await asyncio.sleep(_BETWEEN_TRIES_S)
    raise Unavailable("the table of chunks is permanently in use; run `glyphoxa worker reindex` again to finish")


async def _campaigns(connection: OwnConnection) -> list[CampaignId]:
    """All campaigns with utterances, whether or not they were ever loaded."""
    sql = load_queries("chunks/reindex")
    transaction = connection.transaction()
    await transaction.start()
    try:
        if not await connection.fetchval(sql["is_above_rules"]):
            # The owner may suspend the rule that hides campaigns from itself; other sessions are not affected.
            await connection.execute("ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY")
        return [CampaignId(row["campaign_id"]) for row in await connection.fetch(sql["campaigns"])]
    finally:
        await transaction.rollback()


def _counted(tell: Tell, campaign: CampaignId, due: int) -> Callable[[Filled], None]:
    """Reports a campaign's progress after each twentieth."""
    told = [0]

    def so_far(done: Filled) -> None:
        n = done.n_seen
        if n >= due or n - told[0] >= max(due / 20, 1):
            told[0] = n
            tell(f"{campaign}: {n} of {counted(due, 'utterance')}")

    return so_far
