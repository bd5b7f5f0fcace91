"""What embedding far away has in common: texts as a provider takes them, and vectors as it must have given them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import Unavailable
from glyphoxa.recall.vectors import WrongDimensions

_MOST_BYTES = 8_000
"""Of one text: models read 8,192 tokens (Gemini's first 2,048, and leaves the rest), and no token is less than a byte.
Talk comes in pieces of a few hundred bytes; this is for what is no talk."""

Ask = Callable[[list[str]], Awaitable[Sequence[Sequence[float]]]]


async def embed_in_batches(
    texts: Sequence[str], ask: Ask, *, model: str, dimensions: int, most_texts: int
) -> NDArray[float32]:
    """float32, shape (len(texts), dimensions), rows of unit length; a row that the provider could not give is not
    finite or zero.

    Args:
        ask: One request.
        model: For messages.
        most_texts: Of one request.

    Raises:
        Unavailable: The provider gave another number of vectors than there are texts.
        WrongDimensions: They have other dimensions.
    """
    rows = np.empty((len(texts), dimensions), float32)
    at = 0
    for batch in _batches([_sendable(text) for text in texts], most_texts):
        vectors = await ask(batch)
        if len(vectors) != len(batch):
            raise Unavailable(f"{model} gave {len(vectors)} vectors for {len(batch)} texts")
        for vector in vectors:
            if len(vector) != dimensions:
                raise WrongDimensions(model=model, wanted=dimensions, given=len(vector))
            rows[at] = _unit(vector)
            at += 1
    return rows


def _batches(texts: Sequence[str], most_texts: int) -> Iterator[list[str]]:
    for at in range(0, len(texts), most_texts):
        yield list(texts[at : at + most_texts])


def _sendable(text: str) -> str:
    """Without half characters, which cannot be sent, and not too long; never empty, which is refused."""
    return text.encode("utf-8", "replace")[:_MOST_BYTES].decode("utf-8", "ignore") or " "


def _unit(vector: Sequence[float]) -> NDArray[float32]:
    """A vector that was cut off to fewer dimensions is no longer of unit length."""
    whole = np.asarray(vector, np.float64)
    length = np.linalg.norm(whole)
    unit: NDArray[float32] = (whole / length if np.isfinite(length) and length > 0 else whole).astype(float32)
    return unit
