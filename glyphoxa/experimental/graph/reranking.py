"""A second opinion on the best candidates: .4 * algorithm + .6 * reranker (memory graph document).

A reranker scores on any scale: both sides are spread from 0 to 1 over the candidates before they are added. One that
fails, is late, or answers nonsense changes nothing, and that is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.experimental.graph.question import Hit, Recollection

_ALGORITHM = 0.4
_RERANKER = 0.6


class Reranker(Protocol):
    async def rerank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the question: any scale, higher is better, one for each text.

        Raises:
            Unavailable: It cannot be asked now.
        """
        ...


async def reranked(
    question: str,
    recollection: Recollection,
    text_of: Callable[[int], str],
    reranker: Reranker,
    *,
    deadline_ms: int,
) -> Recollection:
    """The same hits in their new order. With fewer than two there is nothing to order.

    Args:
        text_of: Of a node.
    """
    hits = recollection.hits
    if len(hits) < 2:
        return recollection
    try:
        async with asyncio.timeout(deadline_ms / 1_000):
            answer = await reranker.rerank(question, [text_of(hit.node) for hit in hits])
        opinions = np.asarray(answer, float64)
    except TimeoutError:
        return _without(recollection, f"no answer within {deadline_ms} ms")
    except Exception as error:  # a second opinion is never worth a turn
        return _without(recollection, str(error) if isinstance(error, GlyphoxaError) else repr(error))
    if opinions.shape != (len(hits),) or not np.isfinite(opinions).all():
        return _without(recollection, f"it gave no number to each of {len(hits)} texts")
    return replace(recollection, hits=blended(hits, opinions))


def blended(hits: Sequence[Hit], opinions: NDArray[float64]) -> tuple[Hit, ...]:
    """Hits by algorithm and reranker, best first; equal ones stay in their order.

    Args:
        opinions: Of the reranker, shape (hits,).
    """
    algorithm = _spread(np.array([hit.score for hit in hits], float64))
    opinions = _spread(opinions)
    final = _ALGORITHM * algorithm + _RERANKER * opinions
    return tuple(
        replace(
            hits[at],
            score=float(final[at]),
            why={**hits[at].why, "algorithm": float(algorithm[at]), "reranker": float(opinions[at])},
        )
        for at in np.argsort(-final, kind="stable")
    )


def _spread(values: NDArray[float64]) -> NDArray[float64]:
    low, high = values.min(), values.max()
    return np.ones_like(values) if high == low else (values - low) / (high - low)


def _without(recollection: Recollection, reason: str) -> Recollection:
    return replace(recollection, left_out=(*recollection.left_out, f"rerank: {reason}"))
