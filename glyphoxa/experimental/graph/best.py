"""The best of many scores, in an order that does not depend on how they were stored."""

from __future__ import annotations

import numpy as np
from numpy import float64, intp
from numpy.typing import NDArray

_DIGITS = 9
"""Sums taken in another order differ in the last bits; what differs only there is equal."""


def best(
    scores: NDArray[float64], *, most: int, ties: NDArray[intp], among: NDArray[intp] | None = None
) -> NDArray[intp]:
    """Indices of the highest scores, best first; among equals, as `ties` has them.

    Args:
        scores: Shape (n,).
        ties: Shape (n,), a number for each that no other has; the lower comes first.
        among: Indices that are looked at; all, if None.
    """
    at = np.arange(len(scores)) if among is None else among
    rounded = np.round(scores[at], _DIGITS)
    if 0 < most < len(at):
        least = np.partition(rounded, len(at) - most)[len(at) - most]
        at, rounded = at[rounded >= least], rounded[rounded >= least]
    found: NDArray[intp] = at[np.lexsort((ties[at], -rounded))][:most]
    return found
