"""The memory benchmark runs whole on a small world, on a database of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.memory_operations import REQUIRED
from benchmarks.memory_table import table_of_loading, table_of_times
from tests.support.patience import DEADLINE_S

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--turns", "900", "--campaigns", "2", "--entities", "80", "--relationships", "200", "--samples", "24")


def run(*options: str | Path, temporary: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", *SMALL, "--embeddings", "invented", *map(str, options)],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def test_the_last_line_tells_every_operation_with_what_it_found(reachable_dir: Path) -> None:
    figures = run(temporary=reachable_dir)
    for name in REQUIRED:
        assert 0 < figures[name]["p50_ms"] <= figures[name]["p95_ms"] <= figures[name]["p99_ms"], name
        assert figures[name]["empty_percent"] < 100, name
    assert figures["filtered_recall_at_10"] >= 95
    assert (figures["turns"], figures["loaded_turns"], figures["embeddings"]) == (900, 990, "invented")
    assert figures["loaded_chunks"] >= figures["loaded_turns"]
    assert figures["load_s"] > 0 and figures["turns_per_s"] > 0 and figures["db_mb"] > 0
    assert not list(reachable_dir.iterdir())
    assert any("`append`" in line for line in table_of_times([figures]))
    assert any("990" in line for line in table_of_loading([figures]))


def test_a_directory_that_is_kept_is_filled_once(reachable_dir: Path) -> None:
    kept = reachable_dir / "kept"
    first = run("--only", "neighbours_1", "--data-dir", kept, temporary=reachable_dir)
    again = run("--only", "recent", "--data-dir", kept, temporary=reachable_dir)
    assert again["load_s"] == first["load_s"]
    assert "neighbours_1" not in again and again["recent"]["empty_percent"] == 0
