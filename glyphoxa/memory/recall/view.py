"""The talk that one may know of, in its order: everything a ranking looks at, and nothing else.

An NPC's view holds only what it witnessed. Places, neighbours, sessions, lengths and frequencies are counted in it, so
that what somebody else heard changes nothing of what this one is reminded of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import float32, int32, int64
from numpy.typing import NDArray

NOWHERE = -1
_SPARE = 1.5


@dataclass(frozen=True, slots=True)
class Columns:
    """The turns of a view, in the order in which they were said; arrays of one length n.

    Attributes:
        rows: Of the index.
        sessions: Which session of the view a turn belongs to, from 0, never decreasing.
        starts: The first turn of each session.
        lengths: In terms.
        speakers: A number for each speaker.
        at_ms: Milliseconds since the Unix epoch.
    """

    rows: NDArray[int32]
    sessions: NDArray[int32]
    starts: NDArray[int64]
    lengths: NDArray[float32]
    speakers: NDArray[int32]
    at_ms: NDArray[int64]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Place:
    """What a view must know of a row."""

    row: int
    session: str
    floor: int
    at_ms: int
    length: int
    speaker: int


class View:
    """A growing view. Its columns are valid until the next change.

    Args:
        places: In any order.
        n_rows: Of the index.
    """

    def __init__(self, places: Sequence[Place], n_rows: int) -> None:
        began: dict[str, int] = {}
        for place in places:
            began[place.session] = min(place.at_ms, began.get(place.session, place.at_ms))
        ordered = sorted(places, key=lambda place: (began[place.session], place.session, place.floor))
        self._began = began
        self._n = len(ordered)
        self._starts: list[int] = []
        self._last: tuple[str, int] = ("", 0)
        self.total_length = 0
        """Of all turns together, in terms."""
        capacity = max(64, int(self._n * _SPARE))
        self._rows = np.zeros(capacity, int32)
        self._sessions = np.zeros(capacity, int32)
        self._lengths = np.zeros(capacity, float32)
        self._speakers = np.zeros(capacity, int32)
        self._at_ms = np.zeros(capacity, int64)
        self._place_of = np.full(max(64, int(n_rows * _SPARE)), NOWHERE, int32)
        for at, place in enumerate(ordered):
            self._set(at, place)

    def __len__(self) -> int:
        return self._n

    def columns(self) -> Columns:
        n = self._n
        return Columns(
            self._rows[:n],
            self._sessions[:n],
            np.array(self._starts, int64),
            self._lengths[:n],
            self._speakers[:n],
            self._at_ms[:n],
        )

    def places(self, rows: NDArray[int32]) -> NDArray[int32]:
        """Where rows of the index stand in this view; -1 for those that are not in it."""
        return self._place_of[rows]

    def follows(self, place: Place) -> bool:
        """Whether it belongs behind everything that is here: what is said now does."""
        session, floor = self._last
        if place.session == session:
            return place.floor > floor and place.at_ms >= self._began[session]
        return place.session not in self._began and all(place.at_ms > began for began in self._began.values())

    def append(self, place: Place) -> None:
        """Put in one that `follows`."""
        if self._n == len(self._rows):
            for name in ("_rows", "_sessions", "_lengths", "_speakers", "_at_ms"):
                setattr(self, name, _grown(getattr(self, name), self._n + 1))
        if place.row >= len(self._place_of):
            self._place_of = _grown(self._place_of, place.row + 1, fill=NOWHERE)
        self._began.setdefault(place.session, place.at_ms)
        self._set(self._n, place)
        self._n += 1

    def _set(self, at: int, place: Place) -> None:
        if not self._starts or place.session != self._last[0]:
            self._starts.append(at)
        self._last = (place.session, place.floor)
        self._rows[at] = place.row
        self._sessions[at] = len(self._starts) - 1
        self._lengths[at] = place.length
        self._speakers[at] = place.speaker
        self._at_ms[at] = place.at_ms
        self._place_of[place.row] = at
        self.total_length += place.length


def _grown(array: NDArray[Any], least: int, fill: int = 0) -> NDArray[Any]:
    grown = np.full(max(least, int(len(array) * _SPARE)), fill, array.dtype)
    grown[: len(array)] = array
    return grown
