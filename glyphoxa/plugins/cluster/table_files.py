"""Keep small files of a table in its campaign's database: links, consents, the last session.

So a table can be opened on another machine, and the players' links stay valid. What was said is not among them: the
spool sends it to the transcript log by itself. A change reaches the database after `EVERY_S` at the latest; a machine
that is lost before loses it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loguru import logger

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.files import PRIVATE, replace_file
from glyphoxa.domain.ids import CampaignId

EVERY_S: Final = 1.0
_KEPT: Final = ("sessions.json", "access/*.json", "access/*.jsonl", "audit/*.jsonl")
_MAX_BYTES: Final = 8 * 1024 * 1024
_DEADLINE_MS: Final = 5_000


@dataclass(slots=True)
class TableFiles:
    """
    Attributes:
        directory: The table's data directory.
    """

    database: Database
    campaign: CampaignId
    directory: Path
    _kept: dict[Path, tuple[int, int]] = field(default_factory=dict)

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
            self._kept[path] = _stamp(path)

    async def follow(self) -> None:
        """Store changed files for ever."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.keep()
            except (GlyphoxaError, OSError) as error:
                logger.debug("the files of {} are not stored now: {}", self.campaign, error)

    async def keep(self) -> None:
        """Store the files that changed since the last time.

        Raises:
            Unavailable: The database is away, or the table was moved.
        """
        for path in sorted(found for pattern in _KEPT for found in self.directory.glob(pattern)):
            stamp = _stamp(path)
            if self._kept.get(path) == stamp or stamp[1] > _MAX_BYTES:
                continue
            content = await asyncio.to_thread(path.read_bytes)
            name = path.relative_to(self.directory).as_posix()
            async with self.database.use(self.campaign, deadline_ms=_DEADLINE_MS) as connection:
                await connection.execute(load_queries("cluster")["keep_file"], self.campaign, name, content)
            self._kept[path] = stamp


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(path, content, mode=PRIVATE)


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size
