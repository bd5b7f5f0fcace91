"""Readers of a cluster: processes without tables that read and embed what is said at all of them.

Each database has a queue of campaigns with something unread (`reading_queue`), filled by triggers. A reader locks the
campaign that has waited longest, embeds and reads it through connections of that campaign alone, and takes the next.
The lock ends with the reader's connection. A session has a lease of its own, so that no two readers read it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import asyncpg
from loguru import logger

from glyphoxa.actors.limits import QuietGate
from glyphoxa.adapters.postgres.server.database import AWAY
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.app.background import TalkReaders, chronicle_worker, open_talk_readers
from glyphoxa.app.memory import database_of
from glyphoxa.app.models import load_embedder
from glyphoxa.app.transcript_reader import LOWEST_PRIORITY, EmbeddingWork, embeds
from glyphoxa.chronicle.chronicler import LOOK_AGAIN_MS, ChronicleWorker
from glyphoxa.chronicle.talk import BREAK_MS
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError, NotFound
from glyphoxa.domain.ids import CampaignId
from glyphoxa.plugins.cluster.directory import Directory
from glyphoxa.plugins.cluster.settings import ClusterSettings, database_names, settings_of
from glyphoxa.recall.vectors import Embedder

LATE_MS: Final = 10_000
"""After this time, a campaign that waits is worth another reader."""
LOOK_S: Final = 5.0
"""Interval of looks for campaigns that wait too long."""
_POLL_S: Final = 0.5
_RESTART_S: Final = 5.0
_ANSWER_S: Final = 5.0
_AT_ONCE: Final = 1_001
"""More than there are readers: others may have all but the last of so many."""
_LOOKS: Final = 10_000
"""After so many, the names of all campaigns that were read are dropped from memory."""


class CampaignReader:
    """Reads the campaigns of one database. Create it with `open_campaign_reader`.

    Args:
        lock: The connection that locks a campaign.
        worker: None: what is said is only embedded.
    """

    def __init__(
        self, lock: asyncpg.Connection[asyncpg.Record], worker: ChronicleWorker | None, embedding: EmbeddingWork
    ) -> None:
        self._lock = lock
        self._worker = worker
        self._embedding = embedding
        self._gather_ms = 0 if worker is None else worker.gather_ms
        self._trouble = ""

    async def read_next(self) -> bool:
        """Read the campaign that has waited longest. False: none waits.

        Raises:
            OSError, asyncpg.PostgresError: The database is away: see `glyphoxa.adapters.postgres.server.database.AWAY`.
        """
        sql = load_queries("cluster")
        taken = await self._lock.fetchrow(sql["take_reading"], _AT_ONCE, timeout=_ANSWER_S)
        if taken is not None:
            again_ms = await self._read(CampaignId(taken["campaign"]), is_new=taken["is_new"])
            await self._lock.execute(sql["read_later"], taken["campaign"], again_ms, timeout=_ANSWER_S)
        await self._lock.execute(sql["return_reading"], timeout=_ANSWER_S)
        return taken is not None

    async def _read(self, campaign: CampaignId, *, is_new: bool) -> int | None:
        """Read a campaign as far as possible now. Return after how many milliseconds to look again; None: never."""
        later_ms = self._gather_ms or LOOK_AGAIN_MS
        try:
            is_embedded = await self._embedding.fill(campaign)
            n_read, has_news = 0, False
            if self._worker is not None:
                # Nobody has spoken since the last look: that was the time for an incomplete stretch to be continued.
                self._worker.gather_ms = self._gather_ms if is_new else 0
                n_read = await self._worker.read_new(campaign)
                while await self._worker.log.consolidate(campaign):
                    pass
                has_news = any(each.has_news and not each.is_dead for each in await self._worker.log.progress(campaign))
            self._trouble = ""
        except NotFound:  # it was deleted
            return None
        except GlyphoxaError as error:
            if str(error) != self._trouble:  # log each once while it lasts
                logger.warning("campaign {} cannot be read now: {}", campaign, error)
            self._trouble = str(error)
            return later_ms
        if has_news or not is_embedded:
            return later_ms
        return 2 * BREAK_MS if n_read else None  # then a session that is over is judged again, to its last line


@asynccontextmanager
async def open_campaign_reader(
    settings: Settings, embedder: Embedder | None, readers: TalkReaders
) -> AsyncIterator[CampaignReader]:
    """Open the reader of the settings' database for the block.

    Raises:
        GlyphoxaError: See `glyphoxa.adapters.postgres.server.database.Database.open`.
    """
    database, accept = database_of(settings, embedder), settings.memory.auto_accept
    async with open_store(database, embedder=embedder, auto_accept=accept) as store:
        await database.open()
        lock = await database.connect()
        try:
            gate = QuietGate()
            gate.hurry()  # no table waits for this process
            worker = chronicle_worker(store, readers=readers) if settings.reads_talk else None
            yield CampaignReader(lock, worker, EmbeddingWork(store, gate))
        finally:
            lock.terminate()


async def read_campaigns(settings: Settings, *, stays: bool = True) -> None:
    """Read the campaigns of all databases, one after the other in each.

    Args:
        stays: False: return when none waits.

    Raises:
        GlyphoxaError: A model is missing.
    """
    os.setpriority(os.PRIO_PROCESS, 0, LOWEST_PRIORITY)
    async with AsyncExitStack() as stack:
        embedder = await load_embedder(settings) if embeds(settings) else None
        if embedder is not None:
            stack.push_async_callback(embedder.aclose)
        readers = await open_talk_readers(settings, stack)

        async def read(server: str) -> None:
            while True:
                try:
                    async with open_campaign_reader(settings_of(settings, server), embedder, readers) as reader:
                        for _ in range(_LOOKS):
                            if await reader.read_next():
                                continue
                            if not stays:
                                return
                            await asyncio.sleep(_POLL_S)
                except (GlyphoxaError, *AWAY) as error:
                    logger.warning("nothing is read in {} now: {}", server or "the directory's database", error)
                    if not stays:
                        return
                    await asyncio.sleep(_RESTART_S)

        async with asyncio.TaskGroup() as group:
            for server in database_names(settings):
                group.create_task(read(server))


async def late_campaigns(settings: Settings) -> AsyncGenerator[int, None]:
    """Yield, every `LOOK_S`, the number of campaigns that have waited or are being read for longer than `LATE_MS`."""
    lease_ms = settings.section(ClusterSettings).lease_ms
    async with AsyncExitStack() as stack:
        queues: list[Directory] = []
        for server in database_names(settings):
            database = database_of(settings_of(settings, server), None, any_model=True)
            stack.push_async_callback(database.close)
            queues.append(Directory(database, lease_ms=lease_ms))
        while True:
            found = await asyncio.gather(*(each.unread(late_ms=LATE_MS) for each in queues), return_exceptions=True)
            yield sum(each for each in found if isinstance(each, int))
            await asyncio.sleep(LOOK_S)
