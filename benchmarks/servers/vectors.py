"""Answer requests for embeddings in the stand-ins, with planned failures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

VectorOf = Callable[[str, int], Sequence[float]]
"""Returns the vector of a text with the requested dimensions."""


def invented(text: str, dimensions: int) -> list[float]:
    """Return a vector of unit length that depends on the text."""
    raw = [byte / 127.5 - 1 for byte in hashlib.shake_256(text.encode()).digest(dimensions)]
    length = sum(value * value for value in raw) ** 0.5
    return [value / length for value in raw]


@dataclass(slots=True)
class Vectors:
    """
    Attributes:
        of: Returns a text's vector.
        unasked: The dimensions if none are requested.
        delay_ms: Before each answer.
        refusals: HTTP statuses that the next requests get instead of an answer, in order; they may be retried.
        refuses: Rejected texts: a request with one of them is a bad one.
        n_missing: This many vectors are missing from each answer.
        requests: The bodies, in order, refused ones too.
    """

    of: VectorOf = invented
    unasked: int = 32
    delay_ms: float = 0
    refusals: list[int] = field(default_factory=list)
    refuses: Callable[[str], bool] = lambda _text: False
    n_missing: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)

    def take(self, body: dict[str, Any], texts: Sequence[str]) -> int | None:
        """Record a request. Return the status with which it is refused, or None."""
        self.requests.append(body)
        if self.refusals:
            return self.refusals.pop(0)
        return 400 if any(self.refuses(text) for text in texts) else None

    def answer(self, texts: Sequence[str], dimensions: int | None) -> list[Sequence[float]]:
        given = [self.of(text, dimensions or self.unasked) for text in texts]
        return given[: len(given) - self.n_missing]
