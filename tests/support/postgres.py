"""The real embedded server for tests, and a database of its own for each of them."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

import asyncpg

from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.adapters.postgres.server.migrate import migrate
from tests.support.patience import DEADLINE_S

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Fill: TypeAlias = Callable[[str], Awaitable[None]]

# The machine of a test does not lose power; waiting for its disk would only cost time. Nobody but the test touches its
# database: a vacuum that starts in the template by itself would hold up its next copy.
TEST_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "autovacuum": "off",
    "max_wal_size": "256MB",
}
_TEMPLATE = "glyphoxa_template"
_PREFIX = "glyphoxa test "
_ROOM_BYTES = 6 * 1024**3


@contextmanager
def a_directory() -> Iterator[Path]:
    """A new directory that the server's account can reach: pytest's own are private to root."""
    path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()} ", dir=_place()))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@cache
def _place() -> Path | None:
    """Memory, where there is enough of it: a database is a thousand files, and a disk takes a second to make them."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < _ROOM_BYTES:
        return None
    for left in memory.glob(f"{_PREFIX}*"):  # by a run that was killed
        owner = left.name.removeprefix(_PREFIX).partition(" ")[0]
        if not Path("/proc", owner).exists():
            shutil.rmtree(left, ignore_errors=True)
    return memory


@dataclass
class TestServer:
    __test__ = False

    server: EmbeddedPostgres
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _filled: set[Fill] = field(default_factory=set)

    async def make_template(self) -> None:
        await self._execute(f"CREATE DATABASE {_TEMPLATE}")
        connection = await asyncpg.connect(self.server.dsn(_TEMPLATE))
        try:
            await migrate(connection, embedding_dimensions=384)
        finally:
            await connection.close()

    async def create(self, *, migrated: bool = True, filled: Fill | None = None) -> str:
        """A new database; returns its name.

        Args:
            filled: Puts rows into the database of a DSN. It is called once; the databases are copies of its result.
        """
        template = _TEMPLATE if migrated else None
        if filled is not None:
            template = f"filled_by_{filled.__name__}"
            if filled not in self._filled:
                await self._execute(f"CREATE DATABASE {template} TEMPLATE {_TEMPLATE}")
                await filled(self.server.dsn(template))
                self._filled.add(filled)
        name = f"test_{next(self._numbers)}"
        await self._execute(
            f"CREATE DATABASE {name}" + (f" TEMPLATE {template} STRATEGY FILE_COPY" if template else "")
        )
        return name

    @contextmanager
    def a_database(self, fill: Fill) -> Iterator[str]:
        """The DSN of one that is filled once for all tests of a module, which only read."""
        name = asyncio.run(self.create())
        try:
            asyncio.run(fill(self.server.dsn(name)))
            yield self.server.dsn(name)
        finally:
            asyncio.run(self.drop(name))

    async def drop(self, name: str) -> None:
        await self._execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    async def _execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self.server.dsn())
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@contextmanager
def a_test_server() -> Iterator[TestServer]:
    with a_directory() as directory:
        server = EmbeddedPostgres(directory, settings=TEST_SETTINGS)
        server.start()
        try:
            made = TestServer(server)
            asyncio.run(made.make_template())
            yield made
        finally:
            server.release()
            wait_until(lambda: server.pid() is None)


def wait_until(condition, *, timeout_s: float = DEADLINE_S) -> None:
    """Block until something outside this process has happened; fails when it does not."""
    import time

    give_up = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.01)


@asynccontextmanager
async def two_others(dsn: str) -> AsyncIterator[tuple[Connection, Connection]]:
    """One that holds locks, and one outside of its transaction that sees who waits for them."""
    one, two = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    try:
        yield one, two
    finally:
        await one.close()
        await two.close()


async def vacuum(connection: Connection, *tables: str) -> None:
    """Vacuum until all rows are known to be visible to everybody, as the server does by itself within a minute.

    Whoever is connecting to any database of the server, and waits there for one that is being made or dropped, keeps
    what is newer from being marked so; an index alone is then not enough to answer from.
    """
    give_up = asyncio.get_running_loop().time() + DEADLINE_S
    while True:
        await connection.execute(f"VACUUM (ANALYZE, INDEX_CLEANUP ON) {', '.join(tables)}")
        left = await connection.fetchval(
            """SELECT count(*)
                 FROM unnest($1::text[]) AS named, pg_partition_tree(named::regclass) AS part
                 JOIN pg_class ON pg_class.oid = part.relid
                WHERE relkind = 'r' AND relallvisible < relpages""",
            tables,
        )
        if not left:
            return
        assert asyncio.get_running_loop().time() < give_up, f"{left} tables are not visible to everybody"


async def the_one_that_waits(watcher: Connection) -> int:
    """Who waits for a lock in this database, once somebody does."""
    while True:
        pid = await watcher.fetchval(
            "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        if pid is not None:
            return int(pid)
