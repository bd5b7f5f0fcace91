"""Topics of a question that its candidates say too little of are found, and what speaks of them is lifted.

Non-negative matrix factorisation by multiplicative updates (Lee & Seung, 2001); how many topics, how many updates and
how much is lifted are the memory graph document's numbers. Vectors are signed and the factors are not: magnitudes are
factorised, the question's likewise.
"""

from __future__ import annotations

import numpy as np
from numpy import float32, float64
from numpy.typing import NDArray

_MOST_TOPICS = 4
_LEAST_TOPICS = 2
_LEAST_CANDIDATES = 5
_UPDATES = 50
_SEED = 2001
_TINY = 1e-9
_GAIN = 0.6
_MOST_BOOST = 0.3


def topic_boosts(
    vectors: NDArray[np.floating], question: NDArray[np.floating], scores: NDArray[float64]
) -> NDArray[float64]:
    """What each of m candidates gets on top of its score, shape (m,), 0 to 0.3; 0 with fewer than five that have a
    meaning, or where the question has none.

    Args:
        vectors: Shape (m, dimensions); zeros where there is none.
        scores: Shape (m,), how much each candidate counts for what is covered; below 0 as 0.
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
    """W of shape (m, topics) and H of shape (topics, dimensions), W H near to `values`; none is negative. The same
    for the same values.
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
