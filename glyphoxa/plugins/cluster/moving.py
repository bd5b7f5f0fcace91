"""Move a campaign from one database to another while nobody plays it."""

from __future__ import annotations

import asyncio
import tempfile
from typing import Final

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.world.bundle import Parts, export_campaign, import_campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId
from glyphoxa.plugins.cluster.directory import Directory, queue_reading, raise_epoch

RESERVED_MS: Final = 3_600_000
"""A move that takes longer is given up: bundles have the same limit."""
_WHOLE: Final = Parts(transcript=True, embeddings=True, secrets=True)
_IN_MEMORY_BYTES: Final = 16 * 1024 * 1024
_DEADLINE_MS: Final = 600_000


async def move_campaign(
    directory: Directory, campaign: CampaignId, server: str, *, source: Database, target: Database
) -> None:
    """Copy a campaign, note where it is now, and delete it where it was. A table that is open prevents it.

    Until the directory names the new database, the old one holds: an interruption changes nothing, and leaves at most
    an unused copy in the new one.

    Raises:
        InvalidInput: Its table is open; or the target has a campaign with this id.
        Unavailable: A database is away.
    """
    epoch = await directory.reserve(campaign, for_ms=RESERVED_MS)
    if epoch is None:
        raise InvalidInput(f"the table of {campaign!r} is open; end the session, then move the campaign")
    try:
        await raise_epoch(source, campaign, epoch)
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as file:
            await export_campaign(source, campaign, file, _WHOLE)  # type: ignore[arg-type] # as good as a BinaryIO
            await asyncio.to_thread(file.seek, 0)
            await import_campaign(target, file)  # type: ignore[arg-type]
        await _copy_files(campaign, source, target)
        await queue_reading(target, campaign)
        await directory.assign(campaign, server)
        await _delete(source, campaign)
    finally:
        source.epochs.pop(campaign, None)
        await directory.release(campaign, epoch)


async def _copy_files(campaign: CampaignId, source: Database, target: Database) -> None:
    sql = load_queries("cluster")
    async with source.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
        rows = await connection.fetch(sql["files"], campaign)
    async with target.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
        await connection.executemany(sql["keep_file"], [(campaign, row["name"], row["content"]) for row in rows])


async def _delete(database: Database, campaign: CampaignId) -> None:
    async with database.use(campaign, deadline_ms=_DEADLINE_MS) as connection, connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = 0")
        await connection.execute(load_queries("cluster")["delete_campaign"], campaign)
