"""What of a question its candidates do not speak of, to search for it again.

The question's vector is put together of the candidates' as sparsely as pays; what is left over is the residual:

    min over w of 1/2 |q - C'w|^2 + lambda |w|_1          by FISTA (Beck & Teboulle, 2009)

Lambda, the iterations, and when to search again are the memory graph document's numbers. The step is 1/L, L found by
power iteration. FISTA's objective may rise between steps; the best weights seen are what counts (as in its monotone
variant, Beck & Teboulle, 2009b), so that the answer is never worse than none of the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy import float64
from numpy.typing import NDArray

LAMBDA = 0.1
ITERATIONS = 30
SEARCH_AGAIN_OVER = 0.3
_POWER_ITERATIONS = 20
_MARGIN = 1.05
"""Power iteration comes to L from below."""


@dataclass(frozen=True, slots=True, eq=False)
class Residual:
    """
    Attributes:
        weights: Shape (m,), how much of each candidate the question is made of.
        vector: Shape (dimensions,), what is left of the question.
        share: Its length, as a share of the question's.
    """

    weights: NDArray[float64]
    vector: NDArray[float64]
    share: float

    @property
    def searches_again(self) -> bool:
        return self.share > SEARCH_AGAIN_OVER


def residual_of(question: NDArray[np.floating], candidates: NDArray[np.floating]) -> Residual:
    """
    Args:
        question: Shape (dimensions,); of any length but 0, for which nothing is left.
        candidates: Shape (m, dimensions), of unit length or zeros.
    """
    q, c = np.asarray(question, float64), np.asarray(candidates, float64)
    length = float(np.linalg.norm(q))
    if length == 0:
        return Residual(np.zeros(len(c)), np.zeros_like(q), 0.0)
    q = q / length
    weights = _fista(c @ c.T, c @ q)
    left = q - weights @ c
    return Residual(length * weights, length * left, float(np.linalg.norm(left)))


def _fista(gram: NDArray[float64], target: NDArray[float64]) -> NDArray[float64]:
    """Candidates are few and dimensions many: all is done with their products, one a step."""
    best = weights = images = ahead = image_ahead = np.zeros(len(target))
    step = 1 / max(_largest_eigenvalue(gram), 1e-12)
    momentum, least = 1.0, 0.0
    for _ in range(ITERATIONS):
        moved = ahead - step * (image_ahead - target)
        following = np.sign(moved) * np.maximum(np.abs(moved) - LAMBDA * step, 0.0)
        image = gram @ following
        cost = float(following @ (image / 2 - target) + LAMBDA * np.abs(following).sum())
        if cost < least:
            best, least = following, cost
        grown = (1 + sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / grown
        ahead = following + push * (following - weights)
        image_ahead = image + push * (image - images)
        weights, images, momentum = following, image, grown
    return best


def _largest_eigenvalue(gram: NDArray[float64]) -> float:
    if not gram.any():
        return 0.0
    # A column of the matrix itself: it cannot be orthogonal to everything that is large in it.
    vector = gram[:, int(np.argmax(np.abs(gram).sum(axis=0)))]
    vector = vector / sqrt(vector @ vector)
    for _ in range(_POWER_ITERATIONS):
        image = gram @ vector
        vector = image / sqrt(image @ image)
    return _MARGIN * float(vector @ gram @ vector)
