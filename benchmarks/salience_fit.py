"""Fit the weights of the salience gate and of its backstop to labelled transcripts.

    python -m benchmarks.salience_fit DIR [--labels FILE] [--out FILE]

`DIR/turns.jsonl` and the labels are as for `benchmarks.salience`. Fits four logistic regressions with a penalty on the
squares of their weights: the gate and the backstop, each without and with the vectors of the local embedding model. The
figures are of cross-validation: each run of consecutive labelled turns is judged by weights fitted to other runs.
Cross-validation also chooses the penalty of the vectors. The intercept is set so that a score of 0.5 is the threshold
with `RECALL` of the labelled turns, as cross-validated. `--out` writes the weights. The result is the same each time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from benchmarks.recall_data import read_turns
from benchmarks.runner import command, run
from benchmarks.salience import figures_of, lines_of, local_embed, read_labels
from glyphoxa.chronicle.salience import Features, SalienceJudge
from glyphoxa.domain.errors import InvalidInput

Array: TypeAlias = NDArray[float64]

RECALL: Final = 0.85
"""Share of the turns to be kept that each pass is to find. A missed line costs more than an unneeded one."""
PENALTY: Final = 5.0
"""Penalty of the weight of a feature whose deviation is 1."""
PENALTIES: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Candidates for the penalty of the weights of the vectors. Vectors have unit length and are not standardised: a number
that hardly varies would get a weight of any size."""
FOLDS: Final = 8
_STEPS: Final = 30
_LEAST_DEVIATION: Final = 0.01


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    labels = read_labels(options.labels or options.directory / "labels.jsonl")
    examples = _examples(options, labels)
    shipped: dict[str, Any] = {}
    figures: dict[str, Any] = {}
    scores: dict[str, Array] = {}
    for name, data in examples.items():
        by_penalty = {penalty: cross_validated(data, penalty) for penalty in (PENALTIES if data.places else (PENALTY,))}
        penalty, guessed = min(by_penalty.items(), key=lambda item: log_loss(item[1], data.keep))
        threshold = float(np.quantile(guessed[data.keep], 1 - RECALL))
        scores[name] = guessed - threshold
        figures[name] = {"penalty": penalty, "curve": curve(guessed, data.keep)}
        shipped[name] = data.as_weights(*fitted(data.rows, data.keep, data.scales(penalty)), threshold=threshold)
    for vectors in ("", " with vectors"):
        keep = examples[f"gate{vectors}"].keep
        kept = (scores[f"gate{vectors}"] >= 0) | (scores[f"backstop{vectors}"] >= 0)
        figures[f"both{vectors}"] = figures_of(kept.tolist(), keep.tolist())
    if options.out is not None:
        options.out.write_text(json.dumps(shipped) + "\n", "utf-8")
    return {"labels": len(labels), "keep": sum(labels.values()), **figures}


@dataclass(frozen=True, slots=True)
class Examples:
    """Labelled turns as numbers.

    Attributes:
        rows: Shape (n, features and vectors).
        keep: Shape (n,).
        runs: The number of the run of consecutive turns that each belongs to; shape (n,).
        signs: Names of the first columns.
        places: Names of the vectors in the other columns.
    """

    rows: Array
    keep: NDArray[np.bool_]
    runs: NDArray[np.intp]
    signs: Sequence[str]
    places: Sequence[str]

    def scales(self, penalty: float) -> Array:
        """Return by what each column is multiplied, so that one penalty of 1 fits all of them.

        Args:
            penalty: Penalty of the weights of the vectors.
        """
        n_signs = len(self.signs)
        signs = 1 / (np.maximum(self.rows[:, :n_signs].std(0), _LEAST_DEVIATION) * PENALTY**0.5)
        return np.append(signs, np.full(self.rows.shape[1] - n_signs, penalty**-0.5))

    def as_weights(self, weights: Array, always: float, *, threshold: float) -> dict[str, Any]:
        vectors = weights[len(self.signs) :].reshape(len(self.places), -1) if self.places else ()
        row: dict[str, Any] = {
            "always": round(always - threshold, 4),
            "signs": dict(zip(self.signs, weights.round(4).tolist(), strict=False)),
        }
        if self.places:
            row["vectors"] = {place: each.round(3).tolist() for place, each in zip(self.places, vectors, strict=True)}
        return row


def fitted(rows: Array, keep: NDArray[np.bool_], scales: Array) -> tuple[Array, float]:
    """Fit a logistic regression by Newton's method. Returns weights, and the intercept, which has no penalty."""
    x = np.hstack([rows * scales, np.ones((len(rows), 1))])
    penalty = np.append(np.ones(len(scales)), 0.0)
    weights = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-x @ weights))
        slope = x.T @ (p - keep) + penalty * weights
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + np.diag(penalty), slope)
        weights -= step
        if abs(step).max() < 1e-6:
            break
    return weights[:-1] * scales, float(weights[-1])


def cross_validated(data: Examples, penalty: float) -> Array:
    """Return the log odds of each turn, by weights that were fitted to other runs; shape (n,)."""
    guessed, scales = np.zeros(len(data.keep)), data.scales(penalty)
    for fold in range(FOLDS):
        out = data.runs % FOLDS == fold
        if out.any():
            weights, always = fitted(data.rows[~out], data.keep[~out], scales)
            guessed[out] = data.rows[out] @ weights + always
    return guessed


def log_loss(guessed: Array, keep: NDArray[np.bool_]) -> float:
    """Return the mean negative log likelihood of the labels."""
    return float(np.logaddexp(0, np.where(keep, -guessed, guessed)).mean())


def curve(guessed: Array, keep: NDArray[np.bool_]) -> list[dict[str, float]]:
    """Return the figures at thresholds that find 60 to 90 % of the turns to keep."""
    limits = [np.quantile(guessed[keep], 1 - share / 100) for share in range(60, 95, 5)]
    return [figures_of((guessed >= limit).tolist(), keep.tolist()) for limit in limits]


def _examples(options: argparse.Namespace, labels: Mapping[tuple[str, str], bool]) -> dict[str, Examples]:
    embed = local_embed()
    if embed is None:
        raise InvalidInput("the local embedding model is not there; `glyphoxa models get` downloads it")
    gate: list[Features] = []
    backstop: list[Features] = []
    keep: list[bool] = []
    runs: list[int] = []
    n_runs = -1
    for campaign, said in read_turns(options.directory / "turns.jsonl").items():
        for session in dict.fromkeys(turn.session for turn in said):
            turns = [turn for turn in said if turn.session == session]
            lines = lines_of(turns, embed)
            judge, was_labelled = SalienceJudge(options.language), False
            for turn, line, after in zip(turns, lines, judge.looked_back(lines), strict=True):
                before, label = judge.features(line), labels.get((str(campaign), turn.id))
                n_runs += label is not None and not was_labelled
                was_labelled = label is not None
                if label is not None:
                    gate.append(before)
                    backstop.append(after)
                    keep.append(label)
                    runs.append(n_runs)
    return {
        f"{name}{' with vectors' * has_vectors}": _as_numbers(seen, keep, runs, has_vectors)
        for name, seen in (("gate", gate), ("backstop", backstop))
        for has_vectors in (False, True)
    }


def _as_numbers(seen: Sequence[Features], keep: Sequence[bool], runs: Sequence[int], has_vectors: bool) -> Examples:
    signs = list(seen[0].signs)
    places = list(seen[0].vectors) if has_vectors else []
    rows = [
        np.concatenate([[each.signs[sign] for sign in signs], *(each.vectors[place] for place in places)])
        for each in seen
    ]
    return Examples(np.array(rows, float64), np.array(keep), np.array(runs), signs, places)


def _options() -> argparse.ArgumentParser:
    parser = command("salience_fit", __doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="instead of DIR/labels.jsonl")
    parser.add_argument("--language", default="en", help="of the transcript: a BCP 47 tag")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the weights here")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
