"""The turn benchmark runs whole: real detector, real clients, real database, providers in a process of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.benchmark_runs import figures_of
from tests.support.patience import DEADLINE_S
from tests.support.proof import proof_only

pytestmark = proof_only

ROOT = Path(__file__).resolve().parents[2]
KEYS = {f"{what}_p{n}_ms" for what in ("first_audio", "overhead", "hot_context") for n in (50, 95)}
KEYS |= {"stages", "outcomes", "turns", "rss_mb"}


def _left_over(temporary: Path) -> list[str]:
    """Return the files that the run left in its temporary directory, and the processes that still work there."""
    files = [str(path) for path in temporary.glob("glyphoxa-benchmark-*")]
    running = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(temporary) in command:
            running.append(command)
    return files + running


@pytest.fixture
def temporary():
    """Short, and open to the database's own account: pytest's directories are neither."""
    with tempfile.TemporaryDirectory(prefix="glx-") as name:
        path = Path(name)
        path.chmod(0o711)
        yield path


@pytest.mark.models
def test_two_turns_give_every_figure_as_the_last_line(temporary: Path) -> None:
    options = ("--turns", "2", "--npcs", "2", "--speakers", "2", "--history-entries", "20")
    figures = figures_of("turn", *options, temporary=temporary)
    assert set(figures) == KEYS
    assert (figures["turns"], figures["outcomes"]) == (2, {"answered": 2})
    assert {"detector", "transcript", "context", "first_token", "first_audio"} <= set(figures["stages"])
    assert all(set(step) == {"p50", "p95"} for step in figures["stages"].values())
    assert figures["first_audio_p50_ms"] > figures["overhead_p50_ms"]
    assert not _left_over(temporary)


@pytest.mark.models
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_stopped_in_the_middle_it_leaves_nothing_behind(temporary: Path, how: signal.Signals) -> None:
    # Without a past: to load one takes as long as all the rest until the table is open.
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.turn", "--turns", "50", "--npcs", "2", "--history-entries", "0"),
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert run.stderr is not None
    async with asyncio.timeout(DEADLINE_S):
        while b"turn   0" not in await run.stderr.readline():
            assert not run.stderr.at_eof()
        os.killpg(run.pid, how)  # as a terminal does: the whole group
        await run.communicate()

    assert run.returncode == 130
    assert not _left_over(temporary)


@pytest.mark.models
def test_barge_in_times_an_answer_that_is_spoken_over(temporary: Path) -> None:
    figures = figures_of("barge_in", "--turns", "1", temporary=temporary)
    assert figures["outcomes"] == {"interrupted": 1}
    assert figures["silenced_p50_ms"] is not None
    assert not _left_over(temporary)
