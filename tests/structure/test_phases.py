"""`make test` gives the tests that keep up with real time the machine to themselves, and leaves none out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Of their own, and small: what those of the project import takes longer than what is looked at here.
OF_BOTH, OF_NONE = "test_of_both.py", "test_of_none.py"
FILES = {
    OF_BOTH: "import pytest\n\n@pytest.mark.realtime\ndef test_keeps_up(): ...\n\ndef test_takes_its_time(): ...\n",
    OF_NONE: "def test_takes_its_time_too(): ...\n",
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def collected(files: Path, *options: str) -> set[str]:
    """The tests that are selected, as the project's own are. Selecting none is no failure."""
    settings = ("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(files), "-p", "tests.conftest")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *settings, *options],
        cwd=files,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}


def test_tests_of_real_time_run_alone_and_all_others_together(files: Path) -> None:
    alone = collected(files, "--phase", "alone", OF_BOTH, OF_NONE)
    together = collected(files, "--phase", "together", OF_BOTH, OF_NONE)
    assert {test.partition("::")[0] for test in alone} == {OF_BOTH}
    assert {test.partition("::")[0] for test in together} == {OF_BOTH, OF_NONE}
    assert alone.isdisjoint(together)
    assert alone | together == collected(files, OF_BOTH, OF_NONE)


def test_a_phase_that_selects_nothing_is_no_failure(files: Path) -> None:
    assert collected(files, "--phase", "alone", OF_NONE) == set()


def test_make_test_runs_both_phases_with_what_is_asked_of_it() -> None:
    dry = subprocess.run(
        ["make", "-n", "-o", ".venv/dev", "test", "ARGS=-k mirror"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    alone, together = (line for line in dry.stdout.splitlines() if "-m pytest" in line)
    assert "--phase alone" in alone
    assert "--phase together" in together
    assert "-n " not in alone
    assert alone.endswith("-k mirror")
    assert together.endswith("-k mirror")
