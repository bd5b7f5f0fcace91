"""Embedders whose vectors tell which edition they are of, and a watch that no two editions are ever compared."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy import float32, int32
from numpy.typing import NDArray

from glyphoxa.recall.vectors import VectorsNow


def tagged(
    embed: Callable[[str], NDArray[float32]], tag: float, *, dimensions: int
) -> Callable[[str], NDArray[float32]]:
    """
    Args:
        embed: A model of fewer dimensions than that.
        tag: The last number of each vector, below 1.
    """

    def embed_tagged(text: str) -> NDArray[float32]:
        vector = np.zeros(dimensions, float32)
        meaning = embed(text)
        vector[: len(meaning)] = meaning * np.float32(np.sqrt(1 - tag**2))
        vector[-1] = tag
        return vector

    return embed_tagged


def watch_editions(patch: pytest.MonkeyPatch) -> set[float]:
    """From now on each comparison of vectors of two editions fails. Returns the tags that were asked with, so far."""
    asked_with: set[float] = set()
    compare = VectorsNow.cosines

    def watched(self: VectorsNow, question: NDArray[float32], places: NDArray[int32], n_turns: int) -> NDArray[float32]:
        if len(self.owners):
            tags = {float(tag) for block in self.blocks for tag in block[:, -1] if tag}
            assert tags == {float(question[-1])}
            asked_with.add(round(float(question[-1]), 3))
        return compare(self, question, places, n_turns)

    patch.setattr(VectorsNow, "cosines", watched)
    return asked_with
