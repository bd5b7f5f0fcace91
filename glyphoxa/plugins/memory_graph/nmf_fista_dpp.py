"""Diversify results: topics (NMF), residual search (FISTA), a diverse subset (DPP).

The number of topics, their boost, lambda, the iterations, and when to search again are those of the memory graph
document.
"""

from __future__ import annotations

from math import sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy import float32, float64, intp
from numpy.typing import NDArray

_MOST_TOPICS: Final = 4
_LEAST_TOPICS: Final = 2
_LEAST_CANDIDATES: Final = 5
_UPDATES: Final = 50
_SEED: Final = 2001
_TINY: Final = 1e-9
_GAIN: Final = 0.6
_MOST_BOOST: Final = 0.3

LAMBDA: Final = 0.1
ITERATIONS: Final = 30
SEARCH_AGAIN_OVER: Final = 0.3
"""Share of the question that no candidate covers."""

_DIGITS: Final = 9
"""Gains that differ only after these digits count as equal: the better candidate is taken."""


def topic_boosts(
    vectors: NDArray[np.floating], question: NDArray[np.floating], scores: NDArray[float64]
) -> NDArray[float64]:
    """Boost candidates about topics of the question that the candidates cover too little.

    Returns what each of m candidates gets on top of its score, shape (m,), 0 to 0.3; 0 if fewer than five have a
    vector, or if the question has none. Vectors are signed and the factors are not, so magnitudes are factorised, also
    the question's.

    Args:
        vectors: Shape (m, dimensions); zeros without one.
        scores: Shape (m,), how much each candidate counts for the coverage; below 0 as 0.
    """
    boosts = np.zeros(len(vectors))
    known = np.flatnonzero(np.any(vectors != 0, axis=1))
    asked = np.abs(np.asarray(question, float64))
    weights = np.maximum(scores[known], 0.0)
    if len(known) < _LEAST_CANDIDATES or not asked.any() or not weights.any():
        return boosts
    n_topics = min(_MOST_TOPICS, max(_LEAST_TOPICS, len(known) // 2))
    w, h = factorised(np.abs(vectors[known]), n_topics)
    topics = h.astype(float64)
    shares = w * np.linalg.norm(topics, axis=1)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), _TINY)
    wanted = topics @ asked / np.maximum(np.linalg.norm(topics, axis=1), _TINY)
    wanted /= max(float(wanted.sum()), _TINY)
    covered = weights @ shares / weights.sum()
    boosts[known] = np.minimum(_MOST_BOOST, _GAIN * shares @ np.maximum(0.0, wanted - covered))
    return boosts


def factorised(values: NDArray[np.floating], n_topics: int) -> tuple[NDArray[float32], NDArray[float32]]:
    """Factorise a matrix without negative values, by multiplicative updates (Lee & Seung, 2001).

    W of shape (m, topics) and H of shape (topics, dimensions), W H near to `values`. Deterministic.
    """
    random = np.random.default_rng(_SEED)
    scale = np.sqrt(max(float(values.mean()), _TINY) / n_topics)
    values = values.astype(float32)
    w = (scale * random.uniform(0.5, 1.5, (len(values), n_topics))).astype(float32)
    h = (scale * random.uniform(0.5, 1.5, (n_topics, values.shape[1]))).astype(float32)
    for _ in range(_UPDATES):
        h *= (w.T @ values) / (w.T @ w @ h + _TINY)
        w *= (values @ h.T) / (w @ (h @ h.T) + _TINY)
    return w, h


class Residual(NamedTuple):
    """
    Attributes:
        weights: Shape (m,), the share of each candidate in the question.
        vector: Shape (dimensions,), the rest of the question.
    """

    weights: NDArray[float64]
    vector: NDArray[float64]


def residual_of(question: NDArray[np.floating], candidates: NDArray[np.floating]) -> Residual:
    """Return the part of a question that its candidates do not cover, to search for it again.

    The question's vector is composed of the candidates' as sparsely as possible; the rest is the residual: min over w
    of 1/2 |q - C'w|^2 + lambda |w|_1, by FISTA (Beck & Teboulle, 2009).

    Args:
        question: Shape (dimensions,); of any length. Of a zero vector nothing is left.
        candidates: Shape (m, dimensions), of unit length or zeros.
    """
    q, c = np.asarray(question, float64), np.asarray(candidates, float64)
    length = max(float(np.linalg.norm(q)), _TINY)
    weights = _fista(c @ c.T, c @ q / length)
    return Residual(length * weights, length * (q / length - weights @ c))


def _fista(gram: NDArray[float64], target: NDArray[float64]) -> NDArray[float64]:
    """Candidates are few and dimensions many, so all steps use their products.

    FISTA's objective may rise between steps. The best weights seen are returned (as in its monotone variant, Beck &
    Teboulle, 2009b), so the answer is never worse than none of the candidates.
    """
    best = weights = images = ahead = image_ahead = np.zeros(len(target))
    step = 1 / max(float(np.linalg.eigvalsh(gram).max(initial=0.0)), _TINY)
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


def diverse(
    qualities: NDArray[float64], vectors: NDArray[np.floating], *, target: int, relevance: int = 1
) -> tuple[NDArray[intp], NDArray[float64]]:
    """Select a diverse subset: greedy MAP of a determinantal point process (DPP).

    By incremental Cholesky (Chen, Zhang & Zhou, 2018): with a kernel L_ij = q_i cos(i, j) q_j, each step takes what
    adds most to the determinant of the selection. Returns the places of `target` candidates in the order of selection,
    and what each added (its conditional variance). When nothing adds anything, the best of the others follow, adding 0.

    Args:
        qualities: Shape (m,), 0 to 1, best first; 0 counts as next to nothing.
        vectors: Shape (m, dimensions), of unit length; zeros are similar to nothing.
        relevance: The power of the qualities; the trade-off between relevance and diversity.
    """
    m = len(qualities)
    target = min(target, m)
    # The kernel's variance of a candidate is its quality squared times the remaining part of its direction. Kept apart,
    # in logarithms, small qualities do not harm the sums.
    quality = 2 * relevance * np.log(np.maximum(qualities, _TINY))
    units = np.asarray(vectors, float64)
    alike = units @ units.T
    np.fill_diagonal(alike, 1.0)
    rows = np.zeros((target, m))
    left = np.ones(m)
    is_free = np.ones(m, bool)
    taken: list[int] = []
    added: list[float] = []
    while len(taken) < target:
        gain = np.where(is_free & (left > _TINY), quality + np.log(np.maximum(left, _TINY)), -np.inf)
        place = int(np.argmax(np.round(gain, _DIGITS)))
        if np.isneginf(gain[place]):
            break
        step = len(taken)
        row = (alike[place] - rows[:step, place] @ rows[:step]) / np.sqrt(left[place])
        added.append(float(np.exp(gain[place])))
        taken.append(place)
        is_free[place] = False
        rows[step] = row
        left = np.maximum(left - row**2, 0.0)
    others = np.flatnonzero(is_free)[: target - len(taken)]
    return np.concatenate((np.array(taken, intp), others)), np.array(added + [0.0] * len(others))
