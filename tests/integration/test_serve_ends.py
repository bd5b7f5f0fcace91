"""`glyphoxa serve` ends when it is told to, whatever hangs in it, with what was said on disk: real processes."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import pytest
import yaml
from websockets.asyncio.client import connect

from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.transcript.spool import Spool
from tests.support.forked import ForkedProcess, a_forked_table
from tests.support.live_table import write_campaign
from tests.support.patience import DEADLINE_S
from tests.support.postgres import wait_until
from tests.support.web_client import next_of

ROOT = Path(__file__).parents[2]
SAID = "Grimjaw, are you there?"


def settings_file(directory: Path, *, dsn: str | None = "none", others: Sequence[str] = (), **memory: str) -> Path:
    """Write the settings of a table with Grimjaw and others. With None as DSN the database is the embedded one."""
    cloud = {"stt": {"name": "deepgram-nova"}, "llm": {"name": "openai"}, "tts": {"name": "openai"}}
    document = {
        "campaign": str(write_campaign(directory, others=others)),
        "data_dir": str(directory / "data"),
        "providers": {**cloud, "embeddings": {"name": "none"}},
        **({"memory": {"postgres_dsn": dsn, **memory}} if dsn is not None else {}),
    }
    path = directory / "settings.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


@contextmanager
def a_process(*arguments: object) -> Iterator[Popen[str]]:
    process = Popen(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def a_table(what: str, settings: Path, *more: str) -> Iterator[ForkedProcess]:
    with a_forked_table(what, "--config", settings, "--port", 0, "--open", *more) as process:
        yield process


def read_until(process: Popen[str] | ForkedProcess, text: str) -> str:
    assert process.stdout is not None
    hang = threading.Timer(DEADLINE_S, process.kill)
    hang.start()
    try:
        for row in process.stdout:
            if text in row:
                return row
    finally:
        hang.cancel()
    raise AssertionError(f"ended without {text!r}: {process.stderr.read() if process.stderr else ''}")


def said_at(process: Popen[str] | ForkedProcess, text: str, *, is_kept: bool = True) -> list[dict[str, Any]]:
    """Type this at the open table, and wait until it is on disk, or was at least taken.

    Returns: What the page was shown when it came.
    """
    origin = next(word for word in read_until(process, "is open at").split() if word.startswith("http")).rstrip("/")

    async def say() -> list[dict[str, Any]]:
        async with asyncio.timeout(DEADLINE_S):
            async with connect(f"{origin.replace('http', 'ws')}/ws?player=tamsin", origin=origin) as socket:  # type: ignore[arg-type]
                welcome = await next_of(socket, "welcome")
                await socket.send(json.dumps({"say": text}))
                await next_of(socket, "utterance" if is_kept else "turn_ended")
                return list(welcome["history"])

    return asyncio.run(say())


def on_disk(settings: Path) -> list[str]:
    with Spool(settings.parent / "data" / "spool") as spool:
        return [item.utterance.text for item in spool.pending()]


def ended(process: Popen[str] | ForkedProcess) -> tuple[int, str]:
    _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode is not None
    return process.returncode, errors


@pytest.mark.parametrize(
    ("what", "number"), [("", signal.SIGINT), ("", signal.SIGTERM), ("peers", signal.SIGINT)], ids=str
)
def test_the_first_signal_closes_the_table_though_something_never_closes(
    tmp_path: Path, what: str, number: signal.Signals
) -> None:
    settings = settings_file(tmp_path)
    with a_table(what, settings) as process:
        said_at(process, SAID)
        process.send_signal(number)
        code, errors = ended(process)
    assert (code, "Traceback" in errors, "did not close within" in errors) == (0, False, what == "peers")
    assert on_disk(settings)[0] == SAID


def test_a_table_whose_page_ends_by_itself_is_closed_and_ends_as_failed(tmp_path: Path) -> None:
    with a_table("page fails", settings_file(tmp_path)) as process:
        said, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert errors == "glyphoxa: the page's server stopped: no sound comes through this wall; the table is closed\n"
    assert "is open at" in said


def test_each_step_of_opening_says_how_long_it_has_taken_so_far(tmp_path: Path) -> None:
    with a_table("", settings_file(tmp_path)) as process:
        lines = [read_until(process, text) for text in ("Loading models", "The table is ready")]
    seconds = [float(re.search(r"   \(after (\d+\.\d) s\)$", line.rstrip())[1]) for line in lines]  # type: ignore[index]
    assert 0 <= seconds[0] <= seconds[1]


@pytest.mark.parametrize("what", ["ear", "loop"])
def test_the_second_signal_ends_a_table_that_does_not_close(tmp_path: Path, what: str) -> None:
    settings = settings_file(tmp_path)
    with a_table(what, settings) as process:
        said_at(process, SAID)
        process.send_signal(signal.SIGINT)
        read_until(process, "Closing the table")
        process.send_signal(signal.SIGINT)
        code, errors = ended(process)
    assert code == 130
    assert "Traceback" not in errors
    assert on_disk(settings)[0] == SAID


@pytest.mark.parametrize(("n_signals", "ends_with"), [(1, 0), (2, 143)])
def test_what_the_journal_has_in_hand_is_on_disk_at_the_end(tmp_path: Path, n_signals: int, ends_with: int) -> None:
    """When the table closes without its journal, and when the process is ended."""
    settings = settings_file(tmp_path)
    with a_table("journal", settings) as process:
        said_at(process, SAID, is_kept=False)
        process.send_signal(signal.SIGTERM)
        if n_signals == 2:
            read_until(process, "Closing the table")
            process.send_signal(signal.SIGTERM)
        code, errors = ended(process)
    assert (code, "could not be written" in errors) == (ends_with, False)
    assert SAID in on_disk(settings)


def test_what_was_heard_of_an_answer_is_there_after_a_kill(tmp_path: Path) -> None:
    settings = settings_file(tmp_path)
    spool = tmp_path / "data" / "spool"
    with a_table("talks", settings) as process:
        said_at(process, SAID)
        wait_until(lambda: b"It is sharp." in read(spool / "under-way").partition(b"raw_text")[0])
        process.kill()
        process.communicate()
    with Spool(spool) as reopened:
        said = [item.utterance for item in reopened.pending()]
    assert [one.text for one in said] == [SAID, "Aye. It is sharp."]
    assert said[1].raw_text == "Aye. It is sharp. Take it."
    with a_table("", settings) as process:
        assert "was not closed. This is a new one; `--session town-" in read_until(process, "session")
    with a_table("", settings, "--continue") as process:
        history = said_at(process, "Grimjaw, where were we?")
    shown = [message for message in history if message["type"] == "utterance"]
    assert [(one["spans"][0]["text"], one["cut_off"]) for one in shown] == [(SAID, False), ("Aye. It is sharp.", True)]


def read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


BLOCKED = """
import asyncio, sys, time
from glyphoxa.cli.ending import Ending

def last_words():
    print("written", flush=True)
    return 0

async def hang(ending):
    ending.attach()
    ending.act = lambda: time.sleep(1_000_000)
    ending.last_words = last_words
    print("ready", flush=True)
    await asyncio.Event().wait()

with Ending(close_within_s=0.1) as ending:
    asyncio.run(hang(ending))
"""


def test_a_process_whose_event_loop_hangs_ends_at_the_deadline() -> None:
    with a_process("-c", BLOCKED) as process:
        read_until(process, "ready")
        process.send_signal(signal.SIGINT)
        read_until(process, "written")
        code, errors = ended(process)
    assert code == 130
    assert errors == "glyphoxa: closing took too long; what was said is on disk\n"


@pytest.mark.parametrize("n_signals", [1, 2])
def test_an_interrupted_start_says_nothing_false_and_leaves_no_server(reachable_dir: Path, n_signals: int) -> None:
    settings = settings_file(reachable_dir, dsn=None)
    server = EmbeddedPostgres(reachable_dir / "data" / "postgres")
    with a_table("start", settings) as process:
        read_until(process, "Opening memory")
        wait_until(lambda: server.pid() is not None)
        for _ in range(n_signals):
            process.send_signal(signal.SIGINT)
        code, errors = ended(process)
    assert code == 130
    assert "Traceback" not in errors
    assert "last words" not in errors
    wait_until(lambda: server.pid() is None)


@pytest.mark.parametrize("module", ["argparse", "asyncio", "pydantic"])
def test_ctrl_c_while_modules_are_imported_prints_no_traceback(tmp_path: Path, module: str) -> None:
    settings = settings_file(tmp_path)
    with a_process(
        "-X", "importtime", "-m", "glyphoxa.cli.main", "serve", "--config", settings, "--port", 0
    ) as process:
        assert process.stderr is not None
        if hasattr(fcntl, "F_SETPIPE_SZ"):  # it cannot run far ahead of the reader of its imports
            fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4_096)
        for row in process.stderr:
            if row.rpartition("|")[2].strip() == module:
                break
        process.send_signal(signal.SIGINT)
        code, errors = ended(process)
    assert code == 130
    assert "Traceback" not in errors
