from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import InvalidInput

Embed = Callable[[list[str]], Awaitable[NDArray[float32] | None]]


class WrongDimensions(InvalidInput):
    """A model gives vectors that no index of this database can hold: no text's fault, and no passing trouble."""

    def __init__(self, *, model: str, wanted: int, given: int) -> None:
        super().__init__(
            f"memory.embedding_dimensions is {wanted}, but the model {model} gave a vector of {given}: set it to "
            f"{given} and run `glyphoxa worker reindex`, or name another model as providers.embeddings.model"
        )


async def _nothing_to_close() -> None: ...


@dataclass(frozen=True, slots=True)
class Embedder:
    """A model that turns texts into vectors.

    Attributes:
        name: Of the model and its version. Vectors of different names are never compared.
        dimensions: Of each vector.
        embed: What shall be found, to float32 of shape (len(texts), dimensions), rows of unit length. A row that the
            model could not give is not finite or zero. None: cannot now. Raises Unavailable as long as the model is
            away, and InvalidInput about a text that it does not take.
        embed_otherwise: The same of questions, where the model tells them from what they shall find; None: it does not.
        batch: So many texts are best given at once.
        aclose: Gives back what it holds; nothing can be embedded afterwards.
    """

    name: str
    dimensions: int
    embed: Embed
    embed_otherwise: Embed | None = None
    batch: int = 16
    aclose: Callable[[], Awaitable[None]] = _nothing_to_close

    async def embed_questions(self, texts: list[str]) -> NDArray[float32] | None:
        """As `embed`, for questions."""
        return await (self.embed_otherwise or self.embed)(texts)


def is_usable(vectors: NDArray[float32]) -> bool:
    """Whether every row points somewhere. Shape (n, dimensions); without rows it is."""
    return bool(np.isfinite(vectors).all() and (not len(vectors) or np.abs(vectors).max(axis=1).min() > 0))
