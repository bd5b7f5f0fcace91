"""Re-embed all utterances while the old vectors serve: for another model, other dimensions, or a fresh start.

A second table of chunks is filled beside the current one, with its own index, and replaces it in one short transaction.
An interrupted run is continued by the next one. Utterances of the meantime are queued as usual: they are embedded in
the old table at once, in the new one by a final survey, and after that survey once the new table is in place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg
from loguru import logger

from glyphoxa.adapters.postgres.chunks.embedding_queue import FINISHING_LOCK, MAX_FAILURES, EmbeddingQueue, Filled
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable, counted, did_you_mean
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.vectors import Embedder

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import OwnConnection

_REINDEX_LOCK = 0x676C7972
_A_WEEK_MS = 7 * 24 * 3_600_000
_SWAP_TRIES = 20
_BETWEEN_TRIES_S = 0.5

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Reindexed:
    """
    Attributes:
        swapped: Everything was re-embedded in a new table.
    """

    filled: Filled
    swapped: bool


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
    async with database.administer(deadline_ms=_A_WEEK_MS) as connection:
        run = _Run(connection, embedder, tell)
        if not await connection.fetchval(run.sql["try_lock"], _REINDEX_LOCK):
            raise InvalidInput("this database is being reindexed by another process: let that one finish, or stop it")
        return await (run.everything(full=full) if campaign is None else run.only(campaign, full=full))


class _Run:
    """One run, on the connection that holds the lock."""

    def __init__(self, connection: OwnConnection, embedder: Embedder, tell: Tell) -> None:
        self._connection = connection
        self._embedder = embedder
        self._tell = tell
        self.sql = {
            name: text.replace("{{embedding_dimensions}}", str(int(embedder.dimensions)))
            for name, text in load_queries("chunks/reindex").items()
        }
        self._target = {"next_embedding_model": embedder.name, "next_embedding_dimensions": str(embedder.dimensions)}

    async def only(self, campaign: CampaignId, *, full: bool) -> Reindexed:
        campaigns = await self._campaigns()
        if campaign not in campaigns:
            raise NotFound(f"no utterances of a campaign {campaign!r} here: {did_you_mean(campaign, campaigns)}")
        settings = await self._settings()
        if not self._serves(settings):
            raise InvalidInput(
                f"the vectors of this database are from the model {settings.get('embedding_model')!r}, and one "
                f"campaign alone cannot use {self._embedder.name!r}: omit --campaign"
            )
        queue = EmbeddingQueue(self._within("public"), self._embedder)
        if full:
            await queue.want_all(campaign)
        return Reindexed(await self._fill(queue, [campaign], once_more=True), swapped=False)

    async def everything(self, *, full: bool) -> Reindexed:
        settings = await self._settings()
        if "embedding_model" not in settings:
            # The database has no vectors yet.
            await self._connection.execute(self.sql["note"], "embedding_model", self._embedder.name)
            settings = await self._settings()
        is_begun = self._is_begun(settings) and await self._connection.fetchval(self.sql["has_next"])
        if not full and self._serves(settings) and not is_begun:
            queue = EmbeddingQueue(self._within("public"), self._embedder)
            return Reindexed(await self._fill(queue, await self._campaigns(), once_more=True), swapped=False)
        if is_begun:
            self._tell("continuing the last run")
        else:
            await self._begin()
        filled = await self._build()
        return Reindexed(filled, swapped=True)

    async def _begin(self) -> None:
        async with self._connection.transaction():
            await self._connection.execute(self.sql["drop_next"])
            await self._connection.execute(self.sql["make_next"])
            for name, value in self._target.items():
                await self._connection.execute(self.sql["note"], name, value)

    async def _build(self) -> Filled:
        queue = EmbeddingQueue(self._within("reindex"), self._embedder, model_setting="next_embedding_model")
        filled = await self._fill(queue, await self._campaigns(), once_more=True)
        self._tell("building the index")
        await self._connection.execute("SET maintenance_work_mem = '512MB'")
        # A parallel build needs shared memory that containers lack, and takes the other core from the voice.
        await self._connection.execute("SET max_parallel_maintenance_workers = 0")
        await self._connection.execute(self.sql["index_next"])
        # Utterances of the meantime, while others may still write.
        filled += await self._fill(queue, await self._campaigns(), once_more=False)
        await self._connection.execute(self.sql["finishing_lock"], FINISHING_LOCK)
        try:
            filled += await self._fill(queue, await self._campaigns(), once_more=False)
            await self._swap()
        finally:
            if not self._connection.is_closed():
                await self._connection.execute(self.sql["finishing_unlock"], FINISHING_LOCK)
        # Utterances since that survey are in the queue of the current table.
        last = EmbeddingQueue(self._within("public"), self._embedder)
        for campaign in await self._campaigns():
            filled += Filled(embedded=(await last.drain(campaign, most_failures=1)).embedded)
        return filled

    async def _fill(self, queue: EmbeddingQueue, campaigns: list[CampaignId], *, once_more: bool) -> Filled:
        """
        Args:
            once_more: Retry those that failed before.
        """
        done = Filled()
        for campaign in campaigns:
            due = await queue.survey(campaign, once_more=once_more)
            most_failures = MAX_FAILURES if once_more else 1
            done += await queue.drain(campaign, most_failures=most_failures, tell=_counted(self._tell, campaign, due))
        return done

    async def _swap(self) -> None:
        for attempt in range(1, _SWAP_TRIES + 1):
            try:
                async with self._connection.transaction():
                    await self._connection.execute(self.sql["note"], "embedding_model", self._embedder.name)
                    await self._connection.execute(
                        self.sql["note"], "embedding_dimensions", str(self._embedder.dimensions)
                    )
                    await self._connection.execute(self.sql["forget"], list(self._target))
                    await self._connection.execute(self.sql["swap"])
                return
            except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                logger.debug("the table of chunks is in use, try {}", attempt)
                await asyncio.sleep(_BETWEEN_TRIES_S)
        raise Unavailable("the table of chunks is permanently in use; run `glyphoxa worker reindex` again to finish")

    async def _settings(self) -> dict[str, str]:
        return {row["name"]: row["value"] for row in await self._connection.fetch(self.sql["settings"])}

    def _serves(self, settings: dict[str, str]) -> bool:
        """Whether the current table uses our model."""
        stored = settings.get("embedding_model"), settings.get("embedding_dimensions")
        return stored in ((self._embedder.name, str(self._embedder.dimensions)), (None, str(self._embedder.dimensions)))

    def _is_begun(self, settings: dict[str, str]) -> bool:
        return {name: settings.get(name) for name in self._target} == self._target

    async def _campaigns(self) -> list[CampaignId]:
        """All campaigns with utterances, whether or not they were ever loaded."""
        if await self._connection.fetchval(self.sql["is_above_rules"]):
            return [CampaignId(row["campaign_id"]) for row in await self._connection.fetch(self.sql["campaigns"])]
        # The owner may suspend the rule that hides campaigns from itself; other sessions are not affected.
        transaction = self._connection.transaction()
        await transaction.start()
        try:
            await self._connection.execute("ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY")
            return [CampaignId(row["campaign_id"]) for row in await self._connection.fetch(self.sql["campaigns"])]
        finally:
            await transaction.rollback()

    def _within(self, schema: str) -> Callable[[CampaignId], AbstractAsyncContextManager[OwnConnection]]:
        """Lends the connection with a schema's `chunks` and queue on its search path."""

        @asynccontextmanager
        async def use(campaign: CampaignId) -> AsyncIterator[OwnConnection]:
            await self._connection.execute(
                "SELECT set_config('search_path', $1, false), set_config('glyphoxa.campaign', $2, false)",
                f"{schema}, public",
                campaign,
            )
            try:
                yield self._connection
            finally:
                if not self._connection.is_closed():
                    await self._connection.execute("SELECT set_config('search_path', 'public', false)")

        return use


def _counted(tell: Tell, campaign: CampaignId, due: int) -> Callable[[Filled], None]:
    """Reports a campaign's progress after each twentieth."""
    told = [0]

    def so_far(done: Filled) -> None:
        n = done.embedded + done.failed + done.skipped
        if n >= due or n - told[0] >= max(due / 20, 1):
            told[0] = n
            tell(f"{campaign}: {n} of {counted(due, 'utterance')}")

    return so_far
