"""Embedders for tests: what texts have in common decides how near they are, and nothing has to be loaded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.recall.vectors import Embedder


def an_embedder(
    embed: Callable[[list[str]], Awaitable[NDArray[float32]]], *, name: str = "twin", dimensions: int = 384
) -> Embedder:
    return Embedder(name, dimensions, embed)


def embedder_of_one_topic(*, dimensions: int = 8) -> Embedder:
    """All texts are as near to each other as can be."""

    async def embed(texts: list[str]) -> NDArray[float32]:
        return np.full((len(texts), dimensions), dimensions**-0.5, float32)

    return Embedder("one topic", dimensions, embed)


def embedder_of_topics(axes: Mapping[str, int], *, name: str = "twin", dimensions: int = 384) -> Embedder:
    """Texts on the same topic point the same way; those on none point nowhere near another.

    Args:
        axes: Words, each with the axis it points along, below 100.
    """

    async def embed(texts: list[str]) -> NDArray[float32]:
        rows = np.zeros((len(texts), dimensions), dtype=float32)
        for row, text in zip(rows, texts, strict=True):
            for word, axis in axes.items():
                row[axis] += word in text.lower()
            if not row.any():
                row[100 + sum(map(ord, text)) % (dimensions - 100)] = 1
        unit: NDArray[float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    return Embedder(name, dimensions, embed)
