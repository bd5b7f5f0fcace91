"""The load benchmark runs whole: several tables in one process, on one database."""

from __future__ import annotations

from pathlib import Path

from tests.support.benchmark_runs import figures_of
from tests.support.proof import proof_only

pytestmark = proof_only


def test_two_tables_play_side_by_side(reachable_dir: Path) -> None:
    options = ("--sessions", "2", "--minutes", "0.05", "--history-entries", "0")
    told = figures_of("load", *options, temporary=reachable_dir)
    keys = {"first_audio_p95_ms", "cpu_percent", "rss_mb", "audio_gaps", "rss_growth_mb_per_hour"}
    assert keys <= told.keys()
    assert told["sessions"] == 2
    assert told["cpu_percent"] > 0
