"""Each utterance is in the log once, whatever dies or is full meanwhile.

Real processes, the real server, a real small disk.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.spool import Spool
from tests.support.builders import CAMPAIGN, an_utterance
from tests.support.patience import DEADLINE_MS, DEADLINE_S
from tests.support.postgres import wait_until
from tests.support.proof import IS_PROOF
from tests.support.recording import ClosableLog, a_journal, lines


async def assert_kept_once(store: Store, ids: Sequence[str], *, and_perhaps: Sequence[str] = ()) -> None:
    """These, in this order, with ordinals from 1 without a gap; behind them what nobody was told of, or not."""
    async with store.database.use(CAMPAIGN) as connection:
        rows = await connection.fetch("SELECT ordinal, utterance_id FROM session_entries ORDER BY ordinal")
    assert [row["ordinal"] for row in rows] == list(range(1, len(rows) + 1))
    found = [row["utterance_id"] for row in rows]
    assert found[: len(ids)] == list(ids)
    assert found[len(ids) :] in ([], list(and_perhaps))


def a_process(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


# -- a process is killed

PLAYING = """
import asyncio, sys
from pathlib import Path
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.spool import Spool
from tests.support.builders import an_utterance

async def play(dsn, directory):
    async with open_store(dsn) as store:
        journal = Journal(Spool(directory / "spool"), store.log)
        running = asyncio.create_task(journal.delivery.run())
        for n in range(1_000_000):
            await journal.keep(an_utterance("said aloud", id=f"u{n}"))
            print(f"u{n}", flush=True)

asyncio.run(play(sys.argv[1], Path(sys.argv[2])))
"""


@pytest.mark.parametrize("n_told", [1, 400] if IS_PROOF else [40])
async def test_what_a_killed_process_called_kept_is_in_the_log_once(
    store: Store, dsn: str, tmp_path: Path, n_told: int
) -> None:
    playing = a_process(PLAYING, dsn, str(tmp_path))
    assert playing.stdout is not None
    told = [await asyncio.to_thread(playing.stdout.readline) for _ in range(n_told)]
    playing.kill()
    told += playing.stdout.readlines()
    playing.communicate()
    ids = [line.strip() for line in told if line.endswith("\n")]
    assert len(ids) >= n_told
    journal = Journal(Spool(tmp_path / "spool"), store.log)
    assert await journal.delivery.flush(DEADLINE_MS)
    await assert_kept_once(store, ids, and_perhaps=[f"u{len(ids)}"])
    await journal.close()


# -- the server is killed


class KillsTheServer(ClosableLog):
    """The log of a server that is killed when it has taken the second batch, and again after the fourth.

    What serves a connection lives on for a moment: no other server may be there yet to be killed.
    """

    def __init__(self, inner: object, server: EmbeddedPostgres) -> None:
        super().__init__(inner)  # type: ignore[arg-type]
        self._server = server
        self.n_killed = 0

    async def append(self, utterances: Sequence[Utterance]) -> None:
        await super().append(utterances)
        is_due = self.n_killed < 2 and len(self.batches) >= 2 * (self.n_killed + 1)
        if is_due and (pid := self._server.pid()) is not None:
            os.kill(pid, signal.SIGKILL)
            self.n_killed += 1


async def test_a_server_that_is_killed_while_the_spool_drains_has_everything_once_when_it_is_revived(
    reachable_dir: Path,
) -> None:
    server = EmbeddedPostgres(reachable_dir / "postgres")
    with Spool(reachable_dir / "spool") as spool:
        for said in lines(3_000):
            spool.append(said)
    async with open_store(EmbeddedPostgres(reachable_dir / "postgres", settings={"fsync": "off"})) as store:
        log = KillsTheServer(store.log, server)
        async with a_journal(reachable_dir / "spool", log) as journal:
            assert await journal.delivery.flush(DEADLINE_MS)
        assert log.n_killed
        assert len(log.batches) >= 6
        async with asyncio.timeout(DEADLINE_S):
            while True:
                # The connection of the last batch may still be that of the server that was killed.
                with suppress(Unavailable):
                    await assert_kept_once(store, [said.id for said in lines(3_000)])
                    break
    await asyncio.to_thread(wait_until, lambda: server.pid() is None)


# -- the disk is full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk; test_spool.py fills one by a limit of this process")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


async def test_a_full_disk_is_an_alarm_and_what_was_kept_is_safe_and_it_works_again_with_room(
    store: Store, small_disk: Path
) -> None:
    (small_disk / "film").write_bytes(b"\0" * 16_384)
    alarms: list[str] = []
    door = ClosableLog(store.log, is_open=False)
    async with a_journal(small_disk / "spool", door, alarm=alarms.append) as journal:
        kept = [said.id for said in await fill(journal)]
        assert alarms[-1].endswith("cannot be written (No space left on device)")
        assert journal.delivery.is_degraded
        (small_disk / "film").unlink()
        await journal.keep(an_utterance("there is room again", id="again"))
        door.is_open = True
        assert await journal.delivery.flush(DEADLINE_MS)
        assert not journal.delivery.is_degraded
    await assert_kept_once(store, [*kept, "again"])


async def fill(journal: Journal) -> list[Utterance]:
    """Talk until somebody says that it is not kept. Returns what was."""
    kept: list[Utterance] = []
    for said in lines(10_000):
        try:
            await journal.keep(replace(said, text="x" * 500))
        except Unavailable:
            break
        kept.append(said)
    assert kept
    return kept


# -- two processes on one data directory

APPENDING = """
import asyncio, sys
from pathlib import Path
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.adapters.postgres.store import open_store
from tests.support.builders import an_utterance

async def append(directory, name):
    async with open_store(EmbeddedPostgres(directory / "postgres", settings={"fsync": "off"})) as store:
        await store.database.open()
        print("ready", flush=True)
        sys.stdin.readline()
        for n in range(50):
            await store.log.append([an_utterance("line", id=f"{name}-{n}-{k}") for k in range(3)])
        print("done", flush=True)
        sys.stdin.read()

asyncio.run(append(Path(sys.argv[1]), sys.argv[2]))
"""


async def test_two_processes_share_the_embedded_server_and_one_session(reachable_dir: Path) -> None:
    both = [a_process(APPENDING, str(reachable_dir), name) for name in ("one", "two")]

    async def heard(word: str) -> None:
        for process in both:
            assert process.stdout is not None
            assert await asyncio.to_thread(process.stdout.readline) == f"{word}\n"

    await heard("ready")
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    await heard("done")
    both[0].kill()  # the server is the other one's too
    async with (
        open_store(EmbeddedPostgres(reachable_dir / "postgres")) as store,
        store.database.use(CAMPAIGN) as connection,
    ):
        rows = await connection.fetch("SELECT ordinal, utterance_id FROM session_entries ORDER BY ordinal")
    for process in both:
        process.communicate()
    assert [row["ordinal"] for row in rows] == list(range(1, 301))
    for name in ("one", "two"):
        mine = [row["utterance_id"] for row in rows if row["utterance_id"].startswith(name)]
        assert mine == [f"{name}-{n}-{k}" for n in range(50) for k in range(3)]
    server = EmbeddedPostgres(reachable_dir / "postgres")
    await asyncio.to_thread(wait_until, lambda: server.pid() is None)
