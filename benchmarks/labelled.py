"""Fit a logistic regression to texts that are described by sets of signs, with a penalty on the squares of its weights.

The result is the same each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy import float64
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from benchmarks.runner import json_lines

_STEPS: Final = 500
_LEAST_OFTEN: Final = 2
_DATA: Final = Path(__file__).parent / "data"
_TALK: Final = (
    "address/tune.jsonl",
    "long_session/rounds/talk.jsonl",
    "long_session/sessions/talk.jsonl",
    "salience/german/turns.jsonl",
)


def ordinary_talk() -> Iterator[str]:
    """Yield the lines of other sets, which no model of special wordings may take for one."""
    return (row["text"] for name in _TALK for _, row in json_lines(_DATA / name))


class Example(NamedTuple):
    signs: frozenset[str]
    is_wanted: bool


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
