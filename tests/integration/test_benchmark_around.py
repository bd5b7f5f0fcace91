"""The benchmark of talk around an entity runs whole."""

from __future__ import annotations

from pathlib import Path

from tests.support.benchmark_runs import figures_of


def test_what_takes_two_steps_is_found_with_the_graph_and_not_without(reachable_dir: Path) -> None:
    figures = figures_of("around", "--questions", "6", temporary=reachable_dir)
    assert figures["group.around_words_1.15"]["r10"] == 100.0
    assert figures["group.recall"]["r10"] < 80.0
