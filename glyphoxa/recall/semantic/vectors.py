"""The vectors of a campaign's talk, and how near each is to a question.

They are kept in blocks, so that talk may grow while it is searched and nothing is copied: growing one array of 150 MB
would hold up whoever speaks for as long as it takes to move it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy import bool_, float32, int32, intp
from numpy.typing import NDArray

# -- arrays
#
# Arrays that grow with the talk.


NOWHERE: Final = -1
"""The place of what is not there."""
_SPARE: Final = 1.5


def grown(array: NDArray[Any], least: int = 64, fill: int = 0) -> NDArray[Any]:
    """A longer copy; what is added is not told from the outside."""
    longer = np.zeros(max(least, int(len(array) * _SPARE)), array.dtype)
    if fill:
        longer[len(array) :] = fill
    longer[: len(array)] = array
    return longer


_BLOCK_BYTES = 1 << 24
"""With smaller ones a thread asks for the interpreter more often than it works."""


@dataclass(frozen=True, slots=True)
class VectorsNow:
    """What is there at one moment. It stays as it is while more comes.

    Attributes:
        owners: Whose each vector is, by its row in the index; shape (n,).
        is_further: Of the pieces of one turn all but the first; shape (n,).
    """

    blocks: Sequence[NDArray[float32]]
    owners: NDArray[int32]
    is_further: NDArray[bool_]

    def cosines(self, question: NDArray[float32], places: NDArray[int32], n_turns: int) -> NDArray[float32]:
        """Of each turn of a view, shape (n_turns,): the nearest of its pieces speaks for it. NaN for those without.

        Args:
            question: Of unit length, as all of them are.
            places: Where the owners stand in the view; -1 for those that are not in it.
        """
        found = np.full(n_turns, np.nan, float32)
        n, size = len(self.owners), len(self.blocks[0]) if self.blocks else 1
        products = np.empty(n, float32)
        for at, block in zip(range(0, n, size), self.blocks, strict=False):
            # As fast as a product of matrices, which waits for memory as this does, and takes one core instead of all:
            # threads that spin beside speech made it five times as slow (46 ms for 100,000 turns, p95 188 ms).
            np.vecdot(block[: n - at], question, out=products[at : at + size])
        first = (places != NOWHERE) & ~self.is_further
        found[places[first]] = products[first]
        more = np.flatnonzero(self.is_further)
        more = more[places[more] != NOWHERE]
        np.fmax.at(found, places[more], products[more])
        return found


class Vectors:
    """
    Args:
        dimensions: Of each.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._block = max(64, _BLOCK_BYTES // (4 * dimensions))
        self._blocks: list[NDArray[float32]] = []
        self._owners = np.zeros(64, int32)
        self._is_further = np.zeros(64, bool_)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def size_bytes(self) -> int:
        return self._n * 4 * self.dimensions + self._owners.nbytes + self._is_further.nbytes

    def put(self, row: int, pieces: NDArray[float32]) -> None:
        """
        Args:
            pieces: Shape (pieces, dimensions).
        """
        if self._n + len(pieces) > len(self._owners):
            self._owners = grown(self._owners, self._n + len(pieces))
            self._is_further = grown(self._is_further, self._n + len(pieces))
        for at, piece in enumerate(pieces):
            if self._n == self._block * len(self._blocks):
                # Of memory that is not written to the system gives none.
                self._blocks.append(np.zeros((self._block, self.dimensions), float32))
            self._blocks[-1][self._n % self._block] = piece
            self._owners[self._n] = row
            self._is_further[self._n] = at > 0
            self._n += 1

    def now(self) -> VectorsNow:
        return VectorsNow(tuple(self._blocks), self._owners[: self._n], self._is_further[: self._n])

    def first_of(self, rows: NDArray[int32]) -> NDArray[float32]:
        """The first vector of each of those rows, shape (len(rows), dimensions); zeros where there is none."""
        found = np.zeros((len(rows), self.dimensions), float32)
        where = np.full(int(max(rows.max(initial=0), self._owners[: self._n].max(initial=0))) + 1, NOWHERE, intp)
        firsts = np.flatnonzero(~self._is_further[: self._n])
        where[self._owners[firsts]] = firsts
        for at, vector in enumerate(where[rows].tolist()):
            if vector != NOWHERE:
                found[at] = self._blocks[vector // self._block][vector % self._block]
        return found
