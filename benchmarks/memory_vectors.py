"""Embeddings for a hundred thousand turns without the minutes that a model would take.

A few thousand distinct turns are embedded by the shipped model; every other turn gets the embedding of one of them,
moved so far that their cosine is about 0.8. An index has the same work with them as with real ones: as many clusters
as people have topics. Where the model is not on this machine, the centres are chosen at random.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.weights.store import WeightStore as Weights
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.providers.registry import EMBEDDINGS, find
from glyphoxa.recall.semantic.embedder import Embedder

if TYPE_CHECKING:
    from glyphoxa.adapters.local.minilm import MiniLm

DIMENSIONS: Final = 384
Kind = Literal["real", "invented"]
_MOVED: Final = 0.75  # the noise's length: a cosine of 1 / sqrt(1 + 0.75²) = 0.8 to where it came from

MINILM = find(EMBEDDINGS, "minilm").weights[0]


class Embeddings:
    """
    Args:
        model: None: texts get vectors that only depend on their spelling.
    """

    def __init__(self, model: MiniLm | None, *, seed: int) -> None:
        self._model = model
        self._dice = np.random.default_rng(seed)
        self._centres: NDArray[float32] = _unit(self._dice.standard_normal((2_000, DIMENSIONS)).astype(float32))

    @classmethod
    def load(cls, kind: Kind | None, *, seed: int) -> Embeddings:
        """
        Args:
            kind: None: the model if it is here.

        Raises:
            NotFound: The model is asked for and not here.
        """
        if kind == "invented":
            return cls(None, seed=seed)
        try:
            from glyphoxa.adapters.local.minilm import MiniLm

            return cls(MiniLm(Weights(Settings().models.dir).path(MINILM)), seed=seed)
        except GlyphoxaError:
            if kind == "real":
                raise
            return cls(None, seed=seed)

    @property
    def kind(self) -> Kind:
        return "invented" if self._model is None else "real"

    def learn(self, texts: Sequence[str]) -> None:
        """What the vectors of all other texts are near to."""
        if self._model is not None:
            self._centres = self._model.embed(texts)

    @property
    def embedder(self) -> Embedder:
        """For a store."""
        return Embedder(MINILM if self._model is not None else "invented", DIMENSIONS, self.embed)

    async def embed(self, texts: list[str]) -> NDArray[float32]:
        """As the product does it, in a thread."""
        if self._model is not None:
            embedded: NDArray[float32] = await asyncio.to_thread(self._model.embed, texts)
            return embedded
        return np.stack([self._spelled(text) for text in texts])

    def invented(self, n: int) -> NDArray[float32]:
        """`n` more vectors of turns: float32, rows of unit length."""
        near = self._centres[self._dice.integers(0, len(self._centres), n)]
        return self._moved(near, self._dice)

    def _spelled(self, text: str) -> NDArray[float32]:
        dice = np.random.default_rng(zlib.crc32(text.encode()))
        near = self._centres[dice.integers(0, len(self._centres), 1)]
        vector: NDArray[float32] = self._moved(near, dice)[0]
        return vector

    @staticmethod
    def _moved(rows: NDArray[float32], dice: np.random.Generator) -> NDArray[float32]:
        return _unit(rows + dice.standard_normal(rows.shape, float32) * float32(_MOVED / DIMENSIONS**0.5))


def _unit(rows: NDArray[float32]) -> NDArray[float32]:
    unit: NDArray[float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(float32)
    return unit
