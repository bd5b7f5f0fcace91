"""Many sides instead of the five most similar: a diverse subset, and a cap for each type.

Greedy MAP of a determinantal point process by incremental Cholesky (Chen, Zhang & Zhou, 2018): of a kernel
L_ij = q_i cos(i, j) q_j, what is taken next is what adds most to the determinant of all that is taken. The cap is what
the makers of the memory graph took in its stead.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy import float64, intp
from numpy.typing import NDArray

_SAME = 1e-9
"""A smaller share of a candidate left: it says what has been said."""
_LEAST = 1e-9
_DIGITS = 9


def diverse(
    qualities: NDArray[float64], vectors: NDArray[np.floating], *, target: int, relevance: int = 1
) -> tuple[NDArray[intp], NDArray[float64]]:
    """Places of `target` candidates in the order in which they are taken, and what each added when it was taken
    (its conditional variance). When nothing is left that adds anything, the best of the others follow, adding 0.

    Args:
        qualities: Shape (m,), 0 to 1, best first; 0 counts as next to nothing.
        vectors: Shape (m, dimensions), of unit length; zeros are like nothing else.
        relevance: The power to which qualities are taken; the trade-off between relevance and diversity.
    """
    m = len(qualities)
    target = min(target, m)
    # The kernel's variance of a candidate is its quality squared times what is left of its direction; kept apart, in
    # logarithms, small qualities do no harm to the sums.
    quality = 2 * relevance * np.log(np.maximum(qualities, _LEAST))
    units = np.asarray(vectors, float64)
    alike = units @ units.T
    np.fill_diagonal(alike, 1.0)
    rows = np.zeros((target, m))
    left = np.ones(m)
    is_free = np.ones(m, bool)
    taken: list[int] = []
    added: list[float] = []
    while len(taken) < target:
        adds = is_free & (left > _SAME)
        if not adds.any():
            break
        gain = np.where(adds, quality + np.log(np.maximum(left, _SAME)), -np.inf)
        place = int(np.argmax(np.round(gain, _DIGITS)))
        step = len(taken)
        row = (alike[place] - rows[:step, place] @ rows[:step]) / np.sqrt(left[place])
        added.append(float(np.exp(gain[place])))
        taken.append(place)
        is_free[place] = False
        rows[step] = row
        left = np.maximum(left - row**2, 0.0)
    others = np.flatnonzero(is_free)[: target - len(taken)]
    return np.concatenate((np.array(taken, intp), others)), np.array(added + [0.0] * len(others))


def capped_per_type(types: Sequence[Hashable] | NDArray[intp], *, most: int = 3) -> list[int]:
    """Places of what stays when of each type only the first `most` do, in their order."""
    seen: dict[Hashable, int] = {}
    kept = []
    for place, kind in enumerate(types):
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= most:
            kept.append(place)
    return kept
