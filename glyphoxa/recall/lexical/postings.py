"""Which turns have a term, and how often. They are kept as bytes: an object for each would be some millions."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy import int32
from numpy.typing import NDArray

_POSTED: Final = struct.Struct("=ii")
_ENTRY_BYTES, _TERM_BYTES = 9, 300
"""What a term of a turn takes in memory, and each term by itself; as measured."""


class Postings:
    """
    Attributes:
        size_bytes: About what they take in memory.
    """

    def __init__(self) -> None:
        self._of_term: dict[str, bytearray] = {}
        self.size_bytes = 0

    def put(self, row: int, counts: Mapping[str, int]) -> None:
        """The terms of a new turn.

        Args:
            row: After those of all others.
            counts: How often it has each.
        """
        for term, count in counts.items():
            posting = self._of_term.get(term)
            if posting is None:
                posting = self._of_term[term] = bytearray()
                self.size_bytes += _TERM_BYTES
            posting += _POSTED.pack(row, count)
        self.size_bytes += _ENTRY_BYTES * len(counts)

    def of(self, term: str) -> tuple[NDArray[int32], NDArray[int32]]:
        """The rows that have a term, in order, and how often each has it; both of shape (n,)."""
        # A copy: what is looked at cannot grow.
        rows, counts = np.frombuffer(bytes(self._of_term.get(term, b"")), int32).reshape(-1, 2).T
        return rows, counts
