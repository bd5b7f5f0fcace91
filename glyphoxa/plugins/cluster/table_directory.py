"""The data directory of one table on a node, which exists while the table is open there.

Small files (links, consents, the last session) are copied to the campaign's database, so that the table can be opened
on another machine, and the players' links stay valid. A change is copied after `EVERY_S` at the latest; a machine that
is lost before loses it. What was said goes to the transcript log by itself, as soon as the database takes it; what a
lost process has not sent is in its spool, and the next node on that machine sends it (`send_what_is_left`).
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loguru import logger

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.files import PRIVATE, lock_nowait, replace_file
from glyphoxa.domain.ids import CampaignId
from glyphoxa.transcript.ports import TranscriptLog
from glyphoxa.transcript.spool import Spool, spool_of

EVERY_S: Final = 1.0
_COPIED: Final = ("sessions.json", "access/*.json", "access/*.jsonl", "audit/*.jsonl")
_MAX_BYTES: Final = 8 * 1024 * 1024
_DEADLINE_MS: Final = 5_000
_BATCH: Final = 64
_LOCK: Final = ".lock"


def all_tables(settings: Settings) -> Path:
    return settings.data_directory / "tables"


def table_directory(settings: Settings, campaign: CampaignId) -> Path:
    return all_tables(settings) / campaign


@contextmanager
def owned(directory: Path) -> Iterator[None]:
    """Lock a table's directory for the block; create it if it is missing.

    Raises:
        Unavailable: Another process has it.
    """
    directory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with directory.with_name(f"{directory.name}{_LOCK}").open("a") as lock:
        if not lock_nowait(lock):
            raise Unavailable(f"{directory} is used by another process")
        directory.mkdir(exist_ok=True, mode=0o700)
        yield


async def send_what_is_left(directory: Path, log: TranscriptLog) -> int:
    """Send what a lost process left in the spool of a table, and delete the directory; return how many utterances.

    The caller owns the directory. An utterance that the log has is not stored again.

    Raises:
        GlyphoxaError: The spool cannot be read, or the log does not take it now; what is left stays.
    """
    n_sent = 0
    spool = await asyncio.to_thread(Spool, spool_of(directory))
    with spool:
        while batch := await asyncio.to_thread(lambda: spool.pending(limit=_BATCH)):
            await log.append([each.utterance for each in batch])
            await asyncio.to_thread(spool.acknowledge, batch[-1].end)
            n_sent += len(batch)
        is_whole = not (spool_of(directory) / "damaged").exists()
    if is_whole:
        await asyncio.to_thread(shutil.rmtree, directory)
    return n_sent


@dataclass(slots=True)
class TableFiles:
    """The files of an open table that are copied to its campaign's database."""

    database: Database
    campaign: CampaignId
    directory: Path
    _copied: dict[Path, tuple[int, int]] = field(default_factory=dict)

    async def restore(self) -> None:
        """Replace the files by those of the database, before the table opens.

        Raises:
            Unavailable: The database is away.
        """
        async with self.database.use(self.campaign, deadline_ms=_DEADLINE_MS) as connection:
            rows = await connection.fetch(load_queries("cluster")["files"], self.campaign)
        for row in rows:
            path = self.directory / row["name"]
            await asyncio.to_thread(_write, path, row["content"])
            self._copied[path] = _stamp(path)

    async def follow(self, is_copied: Callable[[], object]) -> None:
        """Copy changed files for ever, at once and then after each `EVERY_S`; report each time that all are copied."""
        while True:
            try:
                await self.copy()
                is_copied()
            except (GlyphoxaError, OSError) as error:
                logger.debug("the files of {} are not copied now: {}", self.campaign, error)
            await asyncio.sleep(EVERY_S)

    async def copy(self) -> None:
        """Copy the files that changed since the last time.

        Raises:
            Unavailable: The database is away, or the table was moved.
        """
        for path in sorted(found for pattern in _COPIED for found in self.directory.glob(pattern)):
            stamp = _stamp(path)
            if self._copied.get(path) == stamp or stamp[1] > _MAX_BYTES:
                continue
            content = await asyncio.to_thread(path.read_bytes)
            name = path.relative_to(self.directory).as_posix()
            async with self.database.use(self.campaign, deadline_ms=_DEADLINE_MS) as connection:
                await connection.execute(load_queries("cluster")["keep_file"], self.campaign, name, content)
            self._copied[path] = stamp


def left_behind(settings: Settings) -> list[CampaignId]:
    """Return the campaigns whose tables have a directory here."""
    return [CampaignId(each.name) for each in sorted(all_tables(settings).glob("*")) if each.is_dir()]


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(path, content, mode=PRIVATE)


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size
