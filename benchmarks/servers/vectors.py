"""What the stand-ins for providers answer where embeddings are asked for, and how that goes wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

VectorOf = Callable[[str, int], Sequence[float]]
"""Of a text, with the dimensions that are asked for."""


def invented(text: str, dimensions: int) -> list[float]:
    """Of unit length; each text has its own."""
    raw = [byte / 127.5 - 1 for byte in hashlib.shake_256(text.encode()).digest(dimensions)]
    length = sum(value * value for value in raw) ** 0.5
    return [value / length for value in raw]


@dataclass(slots=True)
class Vectors:
    """
    Attributes:
        of: What a text's vector is.
        unasked: The dimensions when none are asked for.
        delay_ms: Before each answer.
        refusals: HTTP statuses that the next requests get instead of an answer, in order; they may be sent again.
        refuses: Texts it does not take: a request with one of them is a bad one.
        n_missing: So many vectors are left out of each answer.
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
        """Note a request. Returns the status it is refused with, or None."""
        self.requests.append(body)
        if self.refusals:
            return self.refusals.pop(0)
        return 400 if any(self.refuses(text) for text in texts) else None

    def answer(self, texts: Sequence[str], dimensions: int | None) -> list[Sequence[float]]:
        given = [self.of(text, dimensions or self.unasked) for text in texts]
        return given[: len(given) - self.n_missing]
