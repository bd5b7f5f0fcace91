"""Tables of several runs of `benchmarks.memory`, for `docs/memory-measured.md`.

    python -m benchmarks.memory --turns 10000 > small.txt
    python -m benchmarks.memory > large.txt
    python -m benchmarks.memory_table small.txt large.txt

Of each file the last line is read. Printed is Markdown: one column a run, in the order given.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.memory_figures import RECALL_TARGET, TARGETS_MS, TURNS_PER_S_TARGET
from benchmarks.memory_operations import MORE, REQUIRED

_LOADING = (
    ("load_s", "all that was loaded, seconds"),
    ("loaded_turns", "turns, of all campaigns"),
    ("turns_per_s", f"turns a second, without embeddings (target {TURNS_PER_S_TARGET})"),
    ("loaded_events", "events of the world"),
    ("events_per_s", "events a second"),
    ("relations_per_s", "relations a second, of these"),
    ("loaded_chunks", "vectors"),
    ("chunks_per_s", "vectors a second, with their index"),
    ("db_mb", "database, MiB"),
    ("filtered_recall_at_10", f"recall at 10, scope of 1 % (target {RECALL_TARGET:g})"),
    ("wide_recall_at_10", "recall at 10, scope of 60 %"),
    ("load_average", "load of the machine (1, 5, 15 minutes)"),
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory_table", description="Tables of several runs.")
    parser.add_argument("runs", type=Path, nargs="+", help="what `benchmarks.memory` printed")
    runs = [json.loads(path.read_text().splitlines()[-1]) for path in parser.parse_args(argv).runs]
    for rows in (table_of_times(runs), table_of_times(runs, on_cpu=True), table_of_loading(runs)):
        print("\n".join(rows), end="\n\n")
    return 0


def table_of_times(runs: Sequence[Mapping[str, Any]], *, on_cpu: bool = False) -> Iterator[str]:
    """p50 / p95 / p99 in milliseconds, or of time on a processor; a p95 above its target is bold."""
    yield _row("ms on a processor" if on_cpu else "ms", [f"{run['turns']:,} turns" for run in runs], "target p95")
    yield _row("---", ["---"] * len(runs), "---")
    for name in (*REQUIRED, *MORE):
        if any(name in run for run in runs):
            target = TARGETS_MS.get(name)
            yield _row(
                f"`{name}`",
                [_times(run.get(name), target, "cpu_" if on_cpu else "") for run in runs],
                f"{target:g}" if target else "",
            )


def table_of_loading(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield _row("", [f"{run['turns']:,} turns" for run in runs])
    yield _row("---", ["---"] * len(runs))
    for key, words in _LOADING:
        if any(key in run for run in runs):
            yield _row(words, [_number(run.get(key)) for run in runs])


def _number(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else f"{value:,}"


def _times(figures: Mapping[str, float] | None, target: float | None, kind: str) -> str:
    if not figures or f"{kind}p50_ms" not in figures:
        return ""
    p50, p95, p99 = (f"{figures[f'{kind}{key}_ms']:.2f}" for key in ("p50", "p95", "p99"))
    return f"{p50} / {f'**{p95}**' if target and figures[f'{kind}p95_ms'] > target else p95} / {p99}"


def _row(first: str, cells: Sequence[str], last: str | None = None) -> str:
    return "| " + " | ".join([first, *cells, *([] if last is None else [last])]) + " |"


if __name__ == "__main__":
    raise SystemExit(main())
