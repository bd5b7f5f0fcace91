"""The memory benchmark runs whole on a small world, on a database of its own."""

from __future__ import annotations

from pathlib import Path

from benchmarks.memory_operations import REQUIRED
from tests.support.benchmark_runs import figures_of
from tests.support.proof import proof_only

pytestmark = proof_only

SMALL = "--turns 900 --campaigns 2 --entities 80 --relationships 200 --samples 24 --embeddings invented"


def test_the_last_line_tells_every_operation_with_what_it_found(reachable_dir: Path) -> None:
    figures = figures_of("memory", *SMALL.split(), temporary=reachable_dir)
    for name in REQUIRED:
        assert 0 < figures[name]["p50_ms"] <= figures[name]["p95_ms"] <= figures[name]["p99_ms"], name
        assert figures[name]["empty_percent"] < 100, name
    assert figures["filtered_recall_at_10"] >= 95
    assert (figures["turns"], figures["loaded_turns"], figures["embeddings"]) == (900, 990, "invented")
    assert figures["loaded_chunks"] >= figures["loaded_turns"]
    assert figures["load_s"] > 0 and figures["turns_per_s"] > 0 and figures["db_mb"] > 0
    assert not list(reachable_dir.iterdir())
