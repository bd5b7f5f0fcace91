"""Fit a logistic regression to phrases, with a penalty on the squares of its weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Final

import numpy as np
from numpy import float64
from numpy.typing import NDArray

_STEPS: Final = 8
_LEAST_OFTEN: Final = 2


def fitted_phrases(found: Sequence[Set[str]], wanted: Sequence[bool], *, penalty: float) -> dict[str, float]:
    """Return the weight of each phrase that occurs more than once, and the intercept as "".

    Newton's method in as many dimensions as there are lines: there are more phrases than lines.

    Args:
        found: The phrases of each line.
        wanted: Whether each line is to have a high score.
    """
    often = Counter(phrase for each in found for phrase in each)
    names = sorted(phrase for phrase, n in often.items() if n >= _LEAST_OFTEN)
    at = {phrase: place for place, phrase in enumerate(names)}
    rows: NDArray[float64] = np.zeros((len(found), len(names)))
    for row, each in enumerate(found):
        rows[row, [at[phrase] for phrase in each if phrase in at]] = 1
    labels = np.array(wanted, float64)
    kernel = rows @ rows.T + 1
    alpha: NDArray[float64] = np.zeros(len(found))
    for _ in range(_STEPS):
        odds = kernel @ alpha
        p = 1 / (1 + np.exp(-odds))
        certainty = np.maximum(p * (1 - p), 1e-4)
        alpha = np.linalg.solve(kernel + np.diag(penalty / certainty), odds + (labels - p) / certainty).astype(float64)
    weights = rows.T @ alpha
    kept = {phrase: round(float(weights[place]), 3) for phrase, place in at.items()}
    return {"": round(float(alpha.sum()), 3), **{phrase: weight for phrase, weight in kept.items() if weight}}
