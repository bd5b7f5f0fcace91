"""Fitted models that are shipped as numbers: logistic regressions over hashed signs, and forests of decision trees.

A sign is a short text, such as a word or a part of one. Its weight stands at its CRC-32, so that a model has one size,
whatever it was fitted to. `benchmarks.address_fit` fits and writes the models; none is fitted while a table plays.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from io import BytesIO
from typing import Any, Final

import numpy as np
from numpy import float32, int16, intp
from numpy.typing import NDArray

BITS: Final = 16
"""Binary logarithm of the number of weights of a model. 5 % of the signs of the address cases share a weight then."""
_SIGNS_REMEMBERED: Final = 50_000
_LETTERS: Final = (3, 4, 5)


@lru_cache(_SIGNS_REMEMBERED)
def place_of(sign: str) -> int:
    """Return the index of a sign's weight."""
    return zlib.crc32(sign.encode()) & ((1 << BITS) - 1)


def letters_of(word: str) -> Iterator[str]:
    """Yield the parts of a word of 3 to 5 letters, its ends included: German compounds and endings have them in common.

    >>> list(letters_of("ja"))
    ['<ja', 'ja>', '<ja>']
    """
    whole = f"<{word}>"
    for n in _LETTERS:
        yield from (whole[at : at + n] for at in range(len(whole) - n + 1))


@dataclass(frozen=True, slots=True)
class Regressions:
    """Logistic regressions over the same signs.

    Attributes:
        weights: Shape (1 << BITS, number of regressions).
        bias: Shape (number of regressions).
    """

    weights: NDArray[float32]
    bias: NDArray[float32]

    def log_odds(self, signs: Iterable[str]) -> NDArray[float32]:
        """Return the log odds of each regression for something that has these signs."""
        found: NDArray[float32] = self.weights[[place_of(sign) for sign in signs]].sum(axis=0) + self.bias
        return found


@dataclass(frozen=True, slots=True)
class Forest:
    """Boosted decision trees of the same number of nodes; a leaf is its own child.

    Attributes:
        feature: The feature that each node compares; all arrays have the shape (trees, nodes).
        limit: A value up to this goes to the child `low`, a greater one to `high`.
        value: Added to the log odds by a leaf.
        depth: The most comparisons in a tree.
    """

    feature: NDArray[int16]
    limit: NDArray[float32]
    low: NDArray[int16]
    high: NDArray[int16]
    value: NDArray[float32]
    depth: int

    def log_odds(self, rows: NDArray[float32]) -> NDArray[float32]:
        """Return the log odds of each row of features; shape (rows, features)."""
        trees = np.arange(len(self.feature))
        at: NDArray[intp] = np.zeros((len(rows), len(trees)), intp)
        row = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            is_low = rows[row, self.feature[trees, at]] <= self.limit[trees, at]
            at = np.where(is_low, self.low[trees, at], self.high[trees, at])
        found: NDArray[float32] = self.value[trees, at].sum(axis=1)
        return found


@cache
def shipped_arrays(package: str, name: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of `NAME.npz` in a package."""
    with np.load(BytesIO(resources.files(package).joinpath(f"{name}.npz").read_bytes())) as held:
        return {key: held[key] for key in held.files}


@cache
def shipped_regressions(package: str, name: str) -> Regressions:
    """Return the regressions of `NAME.npz`, whose weights are whole numbers of a step."""
    held = shipped_arrays(package, name)
    return Regressions(held["weights"].astype(float32) * held["step"], held["bias"])


@cache
def shipped_forest(package: str, name: str) -> Forest:
    """Return the forest of `NAME.npz`."""
    held = shipped_arrays(package, name)
    return Forest(held["feature"], held["limit"], held["low"], held["high"], held["value"], depth=int(held["depth"]))
