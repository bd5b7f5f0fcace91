"""Fit and judge models on labelled lines: their files, their options, the regression, and the figures.

The regression is logistic, over texts that are described by sets of signs, with a penalty on the squares of its
weights. The result is the same each time.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy import float64
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from benchmarks.runner import command, json_lines, percent
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.language.text import log_odds

T = TypeVar("T")
DATA: Final = Path(__file__).parent / "data"
_STEPS: Final = 500
_LEAST_OFTEN: Final = 2
_TALK: Final = (
    "address/tune.jsonl",
    "long_session/rounds/talk.jsonl",
    "long_session/sessions/talk.jsonl",
    "salience/german/turns.jsonl",
)


def ordinary_talk() -> Iterator[str]:
    """Yield the lines of other sets, which no model of special wordings may take for one."""
    return (row["text"] for name in _TALK for _, row in json_lines(DATA / name))


class Example(NamedTuple):
    signs: frozenset[str]
    is_wanted: bool


def fit_command(name: str, doc: str | None) -> argparse.ArgumentParser:
    """Return the options of all benchmarks that fit a model to `data/NAME/lines.tsv`."""
    parser = command(name, doc)
    lines = DATA / name / "lines.tsv"
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", default=lines, help="labelled lines")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the weights to this file")
    return parser


def read_columns(path: Path, make: Callable[[list[str]], T | None], *, valid: str) -> list[T]:
    """Return what `make` makes of the tab-separated columns of each line. Skips empty lines.

    Args:
        valid: The form of a line, for the message.

    Raises:
        InvalidInput: The file is not UTF-8, or `make` returns None for a line; the message has its place.
    """
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: not UTF-8 (byte {error.start})") from error
    made = []
    for number, row in enumerate(text.splitlines(), start=1):
        if not row.strip():
            continue
        one = make(row.split("\t"))
        if one is None:
            raise InvalidInput(f"{path}:{number}: {row[:80]!r}; valid: {valid}")
        made.append(one)
    return made


def write_weights(path: Path, weights: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(weights, ensure_ascii=False) + "\n", "utf-8")


# -- the regression


def fitted(examples: Sequence[Example], *, penalty: float) -> dict[str, float]:
    """Return the weight of each sign that occurs more than once, and the intercept as ""."""
    often = Counter(sign for example in examples for sign in example.signs)
    names = ["", *sorted(sign for sign, n in often.items() if n >= _LEAST_OFTEN)]
    at = {sign: place for place, sign in enumerate(names)}
    places = [[0, *sorted(at[sign] for sign in example.signs if sign in at)] for example in examples]
    rows = np.repeat(np.arange(len(examples)), [len(each) for each in places])
    columns = np.array([place for each in places for place in each])
    signs = csr_matrix((np.ones(len(columns)), (rows, columns)), (len(examples), len(names)))
    wanted = np.array([1.0 if example.is_wanted else -1.0 for example in examples])

    def loss(weights: NDArray[float64]) -> tuple[float, NDArray[float64]]:
        margin = wanted * (signs @ weights)
        slope = signs.T @ (-wanted / (1 + np.exp(margin))) + penalty * weights
        return float(np.logaddexp(0, -margin).sum() + penalty / 2 * weights @ weights), slope

    found = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
    kept = {sign: round(float(weight), 3) for sign, weight in zip(names, found, strict=True)}
    return {sign: weight for sign, weight in kept.items() if weight or not sign}


# -- figures


def shuffled_folds(n: int, n_folds: int) -> list[int]:
    """Return the fold of each of `n` examples, the same in every run."""
    return [int(at) % n_folds for at in np.random.default_rng(1).permutation(n)]


def cross_validated(
    examples: Sequence[Example], folds: Sequence[int], fit: Callable[[Sequence[Example]], Mapping[str, float]]
) -> list[float]:
    """Return the log odds of each example, by weights that were fitted to those of other folds."""
    weights = {
        fold: fit([example for example, other in zip(examples, folds, strict=True) if other != fold])
        for fold in sorted(set(folds))
    }
    return [log_odds(example.signs, weights[fold]) for example, fold in zip(examples, folds, strict=True)]


def by_threshold(
    log_odds_of: Sequence[float], examples: Sequence[Example], thresholds: Sequence[float]
) -> dict[str, dict[str, Any]]:
    """Return what is found from each probability on: how many, the share that is right, and the share of right ones."""
    judged = [(1 / (1 + np.exp(-odds)), one.is_wanted) for odds, one in zip(log_odds_of, examples, strict=True)]
    n_wanted = sum(is_wanted for _, is_wanted in judged)
    kept = {least: [is_wanted for sure, is_wanted in judged if sure >= least] for least in thresholds}
    return {
        str(least): {
            "found": len(found),
            "precision": percent(sum(found), len(found)),
            "recall": percent(sum(found), n_wanted),
        }
        for least, found in kept.items()
    }
