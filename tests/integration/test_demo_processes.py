"""The demo as its user starts it: real processes, a real Ctrl-C, with a table twin instead of models."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from demo.__main__ import run
from tests.support.patience import DEADLINE_S

ROOT = Path(__file__).parents[2]


@contextmanager
def demo(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "demo", "--opener", "tests.support.table:open_twin", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    for row in process.stdout:
        if text in row:
            return
    raise AssertionError(f"ended without {text!r}: {process.stderr.read() if process.stderr else ''}")


def test_ctrl_c_ends_the_evening_with_its_files_and_without_orphans(tmp_path: Path) -> None:
    out = tmp_path / "a path with spaces"
    with demo("--out", str(out)) as process:
        read_until(process, "1  Hanna → Korvald")
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 130
        _, alive = psutil.wait_procs(children, timeout=DEADLINE_S)
        assert alive == []
    left = json.loads((out / "evening.json").read_text("utf-8"))
    assert left["sessions"][0]["complete"] is False
    assert left["turns"][0]["corrected"] == "Good evening, Korvald. How is my blade?"
    assert (out / "evening.wav").stat().st_size > 100_000
    assert "listen" in (out / "evening.html").read_text("utf-8")


def test_a_session_ends_when_the_evening_that_started_it_is_killed(tmp_path: Path) -> None:
    with demo("--out", str(tmp_path)) as process:
        read_until(process, "1  Hanna → Korvald")
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        _, alive = psutil.wait_procs(children, timeout=DEADLINE_S)
        assert alive == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "players" / "fen.wav").unlink(), "no recording"),
        (lambda folder: (folder / "players" / "fen.wav").write_bytes(b""), r"is empty (0 bytes)"),
        (lambda folder: (folder / "campaign.yaml").write_text("campaign: [1]"), "campaign.yaml:1:"),
        (lambda folder: (folder / "evening.yaml").unlink(), "evening.yaml"),
    ],
    ids=["missing recording", "empty recording", "broken campaign", "missing script"],
)
def test_what_cannot_be_played_is_said_in_one_line_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], object], message: str
) -> None:
    folder, out = tmp_path / "demo", tmp_path / "out"
    (folder / "players").mkdir(parents=True)
    for source in [*(ROOT / "demo").glob("*.yaml"), *(ROOT / "demo").glob("players/*.wav")]:
        (folder / source.relative_to(ROOT / "demo")).write_bytes(source.read_bytes())
    damage(folder)
    script, config = folder / "evening.yaml", folder / "settings.yaml"
    assert run(Namespace(script=script, out=out, config=config, opener="tests.support.table:open_twin")) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert not (out / "session-1.json").exists()
