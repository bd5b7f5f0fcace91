"""Many sides instead of the five most similar (R-399): a diverse subset (R-397), and a cap for each type.

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
"""Less than this left of a candidate: it says what has been said."""
_DIGITS = 12


def diverse(
    qualities: NDArray[float64], vectors: NDArray[np.floating], *, target: int
) -> tuple[NDArray[intp], NDArray[float64]]:
    """Places of `target` candidates in the order in which they are taken, and what each added when it was taken
    (its conditional variance). When nothing is left that adds anything, the best of the others follow, adding 0.

    Args:
        qualities: Shape (m,), best first; at most 0 counts as next to nothing.
        vectors: Shape (m, dimensions), of unit length; zeros are like nothing else.
    """
    m = len(qualities)
    target = min(target, m)
    quality = np.maximum(qualities, _SAME)
    units = np.asarray(vectors, float64)
    kernel = quality[:, None] * (units @ units.T) * quality
    np.fill_diagonal(kernel, quality**2)
    left = quality**2
    rows = np.zeros((target, m))
    taken: list[int] = []
    added: list[float] = []
    is_free = np.ones(m, bool)
    while len(taken) < target:
        place = int(np.argmax(np.where(is_free, np.round(left, _DIGITS), -1.0)))
        if left[place] < _SAME:
            break
        step = len(taken)
        row = (kernel[place] - rows[:step, place] @ rows[:step]) / np.sqrt(left[place])
        added.append(float(left[place]))
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
