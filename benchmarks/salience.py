"""Measure which utterances are kept: the product's judgement on labelled transcripts.

    python -m benchmarks.salience DIR [--judge rules] [--threshold N]

`DIR/turns.jsonl` is a transcript as for `benchmarks.recall`; `DIR/labels.jsonl` states for some turns whether to keep
them. The judge reads each session in order; the labelled turns are counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from benchmarks.recall_data import Turn, read_turns
from benchmarks.runner import command, percentiles, read_rows, run
from glyphoxa.chronicle.salience import THRESHOLD, SalienceJudge


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    by_campaign = read_turns(options.directory / "turns.jsonl")
    turns = [turn for said in by_campaign.values() for turn in said]
    labels = read_labels(options.directory / "labels.jsonl")
    return measured(turns, labels, threshold=options.threshold, language=options.language)


def read_labels(path: Path) -> dict[tuple[str, str], bool]:
    """Return the labels by campaign and turn.

    Raises:
        InvalidInput: A line is not a label.
    """
    return dict(read_rows(path, lambda row: ((str(row["campaign"]), str(row["id"])), bool(row["keep"]))))


def measured(
    turns: Sequence[Turn],
    labels: Mapping[tuple[str, str], bool],
    *,
    threshold: float = THRESHOLD,
    language: str = "en",
) -> dict[str, Any]:
    right = kept = wanted = counted = 0
    took: list[float] = []
    for _, session in groupby(turns, key=lambda turn: (turn.campaign, turn.session)):
        judge = SalienceJudge(language, threshold=threshold)
        for turn in session:
            began = perf_counter_ns()
            judged = judge.judge(turn.text)
            took.append((perf_counter_ns() - began) / 1e6)
            label = labels.get((str(turn.campaign), turn.id))
            if label is None:
                continue
            counted += 1
            wanted += label
            kept += judged.is_kept
            right += label and judged.is_kept
    precision, recall = right / max(kept, 1), right / max(wanted, 1)
    return {
        "labels": counted,
        "precision": round(100 * precision, 1),
        "recall": round(100 * recall, 1),
        "f1": round(200 * right / max(kept + wanted, 1), 1),
        "written_percent": round(100 * kept / max(counted, 1), 1),
        **percentiles(took, 50, 95),
    }


def _options() -> argparse.ArgumentParser:
    parser = command("salience", __doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--judge", choices=("rules",), default="rules")
    parser.add_argument("--threshold", type=float, default=THRESHOLD)
    parser.add_argument("--language", default="en", help="of the transcript: a BCP 47 tag")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
