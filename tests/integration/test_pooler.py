"""PgBouncer in front of the database: one that keeps sessions serves, and every other is refused."""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.database import condition_of, is_pooled
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId
from tests.support.builders import CAMPAIGN, an_utterance
from tests.support.patience import DEADLINE_MS, DEADLINE_S
from tests.support.programs import program

OTHER = CampaignId("another")


@contextmanager
def pooled(dsn: str, place: Path, *, mode: str) -> Iterator[str]:
    """The same database behind a pooler. Yields its DSN."""
    pgbouncer = program("pgbouncer", package="pgbouncer")
    parts = urlsplit(dsn)
    asked = parse_qs(parts.query)
    user = asked["user"][0] if "user" in asked else parts.username
    database = parts.path.lstrip("/")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    host, of = asked.get("host", [parts.hostname])[0], asked.get("port", [parts.port or 5432])[0]
    (place / "pgbouncer.ini").write_text(
        f"[databases]\n{database} = host='{host}' port={of} dbname={database} user={user}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = {mode}\nmax_client_conn = 50\ndefault_pool_size = 10\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    # The server's socket is its own account's, and a pooler does not run as root.
    account = pwd.getpwuid(Path(host).stat().st_uid)
    running = subprocess.Popen(
        [pgbouncer, str(place / "pgbouncer.ini")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **({"user": account.pw_uid, "group": account.pw_gid} if os.geteuid() == 0 else {}),
    )
    try:
        assert running.stdout is not None
        for line in running.stdout:
            if "process up" in line:
                break
        else:
            raise AssertionError(f"pgbouncer ended: {running.wait(DEADLINE_S)}")
        yield f"postgresql://{user}@127.0.0.1:{port}/{database}"
    finally:
        running.kill()
        running.communicate(timeout=DEADLINE_S)


async def test_a_pooler_that_keeps_sessions_serves(dsn: str, reachable_dir: Path) -> None:
    with pooled(dsn, reachable_dir, mode="session") as through:
        connection = await asyncpg.connect(through)
        assert await is_pooled(connection)
        await connection.close()
        async with open_store(through) as store:
            await store.log.append([an_utterance("The bell is cracked.")])
            async with store.database.use(CAMPAIGN, deadline_ms=DEADLINE_MS) as one:
                assert await one.fetchval("SELECT count(*) FROM session_entries") == 1
                assert await one.fetchval("SHOW statement_timeout") == "10s"
            async with store.database.use(OTHER, deadline_ms=DEADLINE_MS) as one:
                assert await one.fetchval("SELECT count(*) FROM session_entries") == 0


@pytest.mark.parametrize("mode", ["transaction", "statement"])
async def test_a_pooler_that_lends_sessions_is_refused_before_anything_is_written(
    dsn: str, reachable_dir: Path, mode: str
) -> None:
    with pooled(dsn, reachable_dir, mode=mode) as through:
        async with open_store(through) as store:
            for _ in range(2):
                with pytest.raises(InvalidInput, match=r"the pooler at 127\.0\.0\.1/test_\d+ .*`pool_mode = session`"):
                    await store.database.open(deadline_ms=DEADLINE_MS)
        with pytest.raises(InvalidInput, match="pool_mode = session"):  # as `glyphoxa doctor` asks
            await asyncio.to_thread(condition_of, through, embedding_dimensions=384, deadline_s=DEADLINE_S)


async def test_without_a_pooler_nothing_stands_in_between(dsn: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        connection = await asyncpg.connect(dsn)
        assert not await is_pooled(connection)
        await connection.close()
