"""Which of what is said is worth keeping: the product's judgement on labelled talk.

    python -m benchmarks.salience DIR [--judge rules] [--threshold N] [--fit]

`DIR/turns.jsonl` is talk as of `benchmarks.recall`; `DIR/labels.jsonl` says of some turns whether they are to be kept.
The judge goes through each session in order; the labelled turns are counted. `--fit` fits the weights of the rules to
the labels first, and prints them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns
from typing import Final

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from benchmarks.recall_data import Turn, read_turns
from glyphoxa.chronicle.rules.salience import THRESHOLD, WEIGHTS, SalienceJudge
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput

_KEPT_WEIGHS: Final = 4.0
"""Of a turn that is to be kept against one that is not: there are ten times as many of those."""
_RIDGE: Final = 10.0
_BELIEVED: Final = {
    "a known name": 0.3,
    "a new name": 0.2,
    "a relation": 1.0,
    "a promise or plan": 1.0,
    "a discovery or state": 1.0,
    "something changes hands": 1.0,
    "knowledge": 0.4,
    "the past": 0.4,
    "only questions": -0.6,
    "the game": -1.0,
    "the players' world": -1.0,
}
"""What the rubric says of signs that few labelled turns have: weights are drawn to these, not to nothing."""
_STEPS: Final = 4_000
_STEP: Final = 0.2
Signs = list[tuple[Mapping[str, float], bool]]


def read_labels(path: Path) -> dict[tuple[str, str], bool]:
    """By campaign and turn.

    Raises:
        InvalidInput: A line is no label.
    """
    labels: dict[tuple[str, str], bool] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            label = json.loads(line)
            labels[str(label["campaign"]), str(label["id"])] = bool(label["keep"])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path}, line {number}: a label has campaign, id and keep: {error!r}") from None
    return labels


def fitted(signs: Signs) -> dict[str, float]:
    """Weights by logistic regression with a ridge penalty, by gradient descent."""
    names = list(signs[0][0])
    values = np.array([[each[name] for name in names] for each, _ in signs], dtype=float64)
    kept = np.array([is_kept for _, is_kept in signs], dtype=float64)
    weigh = np.where(kept > 0, _KEPT_WEIGHS, 1.0)
    believed = np.array([_BELIEVED.get(name, 0.0) for name in names], dtype=float64)
    free = np.array([name != "always" for name in names], dtype=float64)
    weights: NDArray[float64] = np.zeros(len(names))
    for _ in range(_STEPS):
        error = 1 / (1 + np.exp(-values @ weights)) - kept
        weights -= _STEP * (values.T @ (weigh * error) / weigh.sum() + _RIDGE * free * (weights - believed) / len(kept))
    return {name: round(float(weight), 2) for name, weight in zip(names, weights, strict=True)}


def measured(
    turns: Sequence[Turn],
    labels: Mapping[tuple[str, str], bool],
    *,
    threshold: float = THRESHOLD,
    weights: Mapping[str, float] = WEIGHTS,
    language: str = "en",
) -> dict[str, object]:
    right = kept = wanted = counted = 0
    took: list[float] = []
    for _, session in groupby(turns, key=lambda turn: (turn.campaign, turn.session)):
        judge = SalienceJudge(language, threshold=threshold, weights=weights)
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
        "p50_ms": round(float(np.percentile(took, 50)), 3) if took else None,
        "p95_ms": round(float(np.percentile(took, 95)), 3) if took else None,
    }


def _signs(turns: Sequence[Turn], labels: Mapping[tuple[str, str], bool], language: str) -> Signs:
    signs: Signs = []
    for _, session in groupby(turns, key=lambda turn: (turn.campaign, turn.session)):
        judge = SalienceJudge(language)
        for turn in session:
            seen = judge.signs(turn.text)
            label = labels.get((str(turn.campaign), turn.id))
            if label is not None:
                signs.append((seen, label))
    return signs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--judge", choices=("rules",), default="rules")
    parser.add_argument("--threshold", type=float, default=THRESHOLD)
    parser.add_argument("--language", default="en", help="of the talk: a BCP 47 tag")
    parser.add_argument("--fit", action="store_true", help="fit the weights to these labels first, and print them")
    options = parser.parse_args()
    try:
        by_campaign = read_turns(options.directory / "turns.jsonl")
        turns = [turn for said in by_campaign.values() for turn in said]
        labels = read_labels(options.directory / "labels.jsonl")
        weights: Mapping[str, float] = WEIGHTS
        if options.fit:
            weights = fitted(_signs(turns, labels, options.language))
            print(json.dumps(weights, indent=4))
        print(
            json.dumps(measured(turns, labels, threshold=options.threshold, weights=weights, language=options.language))
        )
    except (GlyphoxaError, OSError) as error:
        print(f"benchmarks.salience: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
