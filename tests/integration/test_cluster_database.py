"""A real primary with a real streaming replica, and a real backup: what becomes of tables and of what was said."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server import embedded
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.supervisor import postmaster_pid
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import PlayerId
from glyphoxa.plugins.cluster.node import TableHost
from glyphoxa.plugins.cluster.settings import ClusterSettings
from tests.integration import test_cluster_node
from tests.integration.test_cluster_node import TOWN, a_host, opened, placed_on, until
from tests.support.command_line import SALTMERE, CommandLine, a_settings_file, run, two_evenings
from tests.support.live_table import an_evening, settings_for, write_campaign
from tests.support.patience import DEADLINE_S
from tests.support.postgres import a_directory, wait_until
from tests.support.proof import proof_only

pytestmark = proof_only
RECIPE = Path(__file__).parents[2] / "docs" / "backup.md"
settings = test_cluster_node.settings

SETTINGS = "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\ndynamic_shared_memory_type = mmap\n"


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server that listens on a port of 127.0.0.1."""

    data: Path
    port: int
    programs: embedded.Binaries

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start_shell(self, script: str, **variables: object) -> subprocess.Popen[bytes]:
        """Run a script as the server's account, with PostgreSQL's programs."""
        path = f"{self.programs.directory}:{os.environ['PATH']}"
        given = {**embedded.server_environment(), "PATH": path} | {name: str(each) for name, each in variables.items()}
        account = self.programs.account.popen_arguments()
        return subprocess.Popen(["/bin/sh", "-ec", script], cwd="/", env=given, **account)

    def shell(self, script: str, **variables: object) -> None:
        assert self.start_shell(script, **variables).wait(DEADLINE_S) == 0

    @contextmanager
    def running(self) -> Iterator[None]:
        script = 'pg_ctl -D "$DATA" -w -l "$DATA/server.log" -o "-p $PORT" start'
        self.shell(script, DATA=self.data, PORT=self.port)
        try:
            yield
        finally:
            self.stop()

    def signal(self, number: int) -> None:
        """Send a signal to the server and its processes."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(each, number)

    def stop(self) -> None:
        if (pid := postmaster_pid(self.data)) is not None:
            self.signal(signal.SIGCONT)
            os.kill(pid, signal.SIGQUIT)
            wait_until(lambda: postmaster_pid(self.data) is None)

    async def fetch(self, query: str) -> list[Any]:
        connection = await asyncpg.connect(self.dsn, timeout=10)
        try:
            return [row[0] for row in await connection.fetch(query, timeout=60)]
        finally:
            connection.terminate()

    async def until_true(self, query: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not (await self.fetch(query))[0]:
                pass

    async def until_followed(self, how: str) -> None:
        """Wait until those that follow its log have written or replayed it."""
        await self.until_true(f"SELECT bool_and({how}_lsn >= pg_current_wal_insert_lsn()) FROM pg_stat_replication")


def another(server: Server, name: str) -> Server:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Server(server.data.with_name(name), free.getsockname()[1], server.programs)


@pytest.fixture
def primary() -> Iterator[Server]:
    with a_directory() as directory:
        programs = embedded.find_binaries(embedded.server_account(directory))
        embedded.give(directory, programs.account)
        primary = another(Server(directory / "first", 0, programs), "primary")
        embedded.create_cluster(primary.data, programs, is_synced=False)
        every = "host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n"
        (primary.data / "pg_hba.conf").write_text(every)
        (primary.data / "postgresql.auto.conf").write_text(SETTINGS)
        with primary.running():
            yield primary


@pytest.fixture
def replica(primary: Server) -> Iterator[Server]:
    replica = another(primary, "replica")
    primary.shell('pg_basebackup -d "$DSN" -D "$DATA" -R -c fast', DSN=primary.dsn, DATA=replica.data)
    with replica.running():
        yield replica


@pytest.fixture
async def dsn(primary: Server, replica: Server) -> str:
    """One that names both, with the whole schema."""
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{replica.port}"
    dsn = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"
    database = Database(dsn)
    await database.open()
    await database.close()
    return dsn


@pytest.fixture(autouse=True)
def without_hurry() -> None:
    """The deadlines are those of the product: they end the wait for a host that does not answer."""


lost_by = pytest.mark.parametrize("lost", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "silent"])


@lost_by
@pytest.mark.parametrize("is_behind", [False, True], ids=["up to date", "behind"])
async def test_a_table_plays_on_and_the_promoted_replica_has_all_that_was_said(
    lost: int,
    is_behind: bool,
    primary: Server,
    replica: Server,
    dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = settings_for(write_campaign(tmp_path), dsn, tmp_path)
    async with asyncio.timeout(DEADLINE_S), an_evening(there, monkeypatch) as evening:
        await evening.asked("Grimjaw, 0.")
        assert await evening.table.kept() == 2
        await primary.until_followed("replay")
        if is_behind:
            await replica.fetch("ALTER SYSTEM SET primary_conninfo = ''")
            await replica.fetch("SELECT pg_reload_conf()")
            await primary.until_true("SELECT count(*) = 0 FROM pg_stat_replication")
        await evening.asked("Grimjaw, 1.")
        assert await evening.table.kept() == 4
        if not is_behind:
            await primary.until_followed("replay")
        primary.signal(lost)
        await evening.asked("Grimjaw, 2.")
        await replica.fetch("SELECT pg_promote()")
        await replica.until_true("SELECT count(*) > 4 FROM session_entries")
        await evening.asked("Grimjaw, 3.")
    texts = await replica.fetch("SELECT text FROM session_entries ORDER BY session_id, ordinal")
    expected = [text for n in range(4) for text in (f"Grimjaw, {n}.", "Aye.")]
    if is_behind:  # what was lost with the primary is sent again after the rest
        texts, expected = sorted(texts), sorted(expected)
    assert texts == expected


@lost_by
async def test_leases_are_renewed_at_the_promoted_replica_and_no_table_moves(
    lost: int, primary: Server, replica: Server, settings: Settings, tmp_path: Path
) -> None:
    cluster = ClusterSettings()
    settings = settings.model_copy(update={"cluster": cluster})
    hosts: dict[str, TableHost] = {}

    async def ask(name: str) -> bool:
        return hosts[name].reaches_directory

    async with asyncio.timeout(DEADLINE_S), a_host("a", settings, tmp_path) as (holder, _):
        await placed_on(holder)
        table = await opened(holder)
        epoch = holder.tables[TOWN].lease.epoch
        async with a_host("b", settings, tmp_path) as (other, _):
            hosts |= {"a": holder, "b": other}
            holder._ask_peer = other._ask_peer = ask
            await until(lambda: len(holder._nodes) == len(other._nodes) == 2)
            await primary.until_followed("replay")
            primary.signal(lost)
            await until(lambda: not holder.reaches_directory and not other.reaches_directory)
            table.say(PlayerId("tamsin"), "The mill burns.")
            await replica.fetch("SELECT pg_promote()")
            # Longer than until the other node would take over the tables of lost nodes.
            await until(lambda: other._renewed_ms - other._unbroken_ms > 2 * cluster.lease_ms)
            assert (list(holder.tables), list(other.tables)) == ([TOWN], [])
            leases = await holder.directory.leases()
            assert [(each.node, each.epoch, each.is_valid) for each in leases] == [("a", epoch, True)]
            await replica.until_true("SELECT array_agg(text) = '{The mill burns.}' FROM session_entries")


async def test_commands_that_only_read_may_use_the_replica(
    primary: Server, replica: Server, dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await two_evenings(dsn)
    await primary.until_followed("replay")
    reports = CommandLine(a_settings_file(tmp_path, replica.dsn), capsys)
    assert "I heard she owes forty silver." in await reports.told("show", "said", "silver")
    assert "I heard she owes forty silver." in await reports.told("recall", "silver", "--npc", "grimjaw")
    await reports.told("campaign", "export", tmp_path / "file", "--with-secrets")
    assert "read-only transaction" in await reports.problem("entity", "add", "The Mill", "location")


async def test_the_documented_backup_brings_back_a_campaign_that_was_deleted(primary: Server, tmp_path: Path) -> None:
    """The commands are those of the document."""
    once, always, nightly, restore = re.findall("(?ms)^```sh\n(.*?)^```", RECIPE.read_text("utf-8"))
    given = {"DSN": primary.dsn, "BACKUP": primary.data.with_name("backup")}
    restored = another(primary, "restored")
    file, first = tmp_path / "campaign.json", a_settings_file(tmp_path, primary.dsn).rename(tmp_path / "first.yaml")
    second = a_settings_file(tmp_path, restored.dsn)
    said = "SELECT text FROM session_entries ORDER BY session_id, ordinal"
    primary.shell(once, **given)
    receiver = primary.start_shell(always, **given)
    try:
        primary.shell(nightly, **given)
        await two_evenings(primary.dsn)
        before = await primary.fetch(said)
        moment = (await primary.fetch("SELECT clock_timestamp()::TEXT"))[0]
        await primary.fetch(f"SELECT glyphoxa_delete_campaign('{SALTMERE}')")
        await primary.until_followed("write")
    finally:
        receiver.terminate()
        receiver.wait()
    assert (len(before), await primary.fetch(said)) == (5, [])
    try:
        primary.shell(restore, **given, RESTORED=restored.data, MOMENT=moment, PORT=restored.port)
        await restored.until_true("SELECT NOT pg_is_in_recovery()")
        assert await restored.fetch(said) == before
        assert await run("campaign", "export", file, "--with-secrets", "--config", second) == 0
        assert await run("campaign", "import", file, "--config", first) == 0
        assert await primary.fetch(said) == before
    finally:
        restored.stop()
