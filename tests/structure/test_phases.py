"""`make test` gives the tests that keep up with real time the machine to themselves, and leaves none out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OF_BOTH = "tests/integration/test_local_models.py"
OF_NONE = "tests/unit/turns/test_speech_end.py"


def collected(*options: str) -> set[str]:
    """The tests that are selected. Selecting none is no failure."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}


def test_tests_of_real_time_run_alone_and_all_others_together() -> None:
    alone = collected("--phase", "alone", OF_BOTH, OF_NONE)
    together = collected("--phase", "together", OF_BOTH, OF_NONE)
    assert {test.partition("::")[0] for test in alone} == {OF_BOTH}
    assert {test.partition("::")[0] for test in together} == {OF_BOTH, OF_NONE}
    assert alone.isdisjoint(together)
    assert alone | together == collected(OF_BOTH, OF_NONE)


def test_a_phase_that_selects_nothing_is_no_failure() -> None:
    assert collected("--phase", "alone", OF_NONE) == set()


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
