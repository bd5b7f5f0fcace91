"""The benchmark of talk around an entity runs whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.patience import DEADLINE_S

ROOT = Path(__file__).resolve().parents[2]


def test_what_takes_two_steps_is_found_with_the_graph_and_not_without(reachable_dir: Path) -> None:
    """R-137"""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.around", "--questions", "6", "--embeddings", "invented"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(reachable_dir)},
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert figures["group.around_words_1.15"]["r10"] == 100.0
    assert figures["group.recall"]["r10"] < 80.0
