"""What words and vectors say of each node before the graph is looked at: the base that its stages build on."""

from __future__ import annotations

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from glyphoxa.experimental.graph.best import best
from glyphoxa.experimental.graph.memory_graph import MemoryGraph
from glyphoxa.experimental.graph.question import GraphQuestion
from glyphoxa.experimental.graph.settings import GraphRecallSettings


def vector_scores(graph: MemoryGraph, question: GraphQuestion, settings: GraphRecallSettings) -> NDArray[float64]:
    """Cosines, at least 0, shape (n,); with the pre-filter 0 for all but the nearest."""
    if question.cosines is not None:
        cosines = np.nan_to_num(np.asarray(question.cosines, float64))
    elif question.vector is not None:
        cosines = graph.cosines(question.vector)
    else:
        cosines = np.zeros(len(graph))
    cosines = np.maximum(cosines, 0.0)
    if not settings.vector_prefilter:
        return cosines
    nearest = best(cosines, most=settings.vector_top_k, ties=graph.ties, among=np.flatnonzero(cosines))
    filtered = np.zeros_like(cosines)
    filtered[nearest] = cosines[nearest]
    return filtered


def lexical_scores(graph: MemoryGraph, question: GraphQuestion) -> NDArray[float64]:
    """From 0 to 1, shape (n,)."""
    return graph.lexical(question.tokens) if question.lexical is None else spread_out(question.lexical)


def base_scores(
    graph: MemoryGraph,
    question: GraphQuestion,
    settings: GraphRecallSettings,
    *,
    vector: NDArray[float64],
    lexical: NDArray[float64],
) -> NDArray[float64]:
    """A ranking of both, from 0 to 1, shape (n,); where one of them has nothing to say, of the other alone."""
    if question.base is not None:
        return spread_out(question.base)
    if not lexical.any() or not vector.any():
        return spread_out(vector + lexical)
    share = settings.lexical_share
    return share * spread_out(lexical) + (1 - share) * spread_out(vector)


def spread_out(values: NDArray[np.floating]) -> NDArray[float64]:
    """The highest becomes 1, what is below 0 becomes 0."""
    least = np.maximum(np.asarray(values, float64), 0.0)
    high = least.max(initial=0.0)
    return least / high if high > 0 else least
