from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from numpy import float32
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Embedder:
    """A model that turns texts into vectors.

    Attributes:
        name: Of the model and its version. Vectors of different names are never compared.
        dimensions: Of each vector.
        embed: Texts to float32, shape (len(texts), dimensions), rows of unit length. None: cannot now.
    """

    name: str
    dimensions: int
    embed: Callable[[list[str]], Awaitable[NDArray[float32] | None]]
