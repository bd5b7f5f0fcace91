"""The utterances that one viewer may know, in order: everything a ranking looks at, and nothing else.

An NPC's view contains only what it witnessed. Places, neighbours, sessions, lengths and frequencies are counted in it,
so utterances that only others heard change none of its results.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy import bool_, float32, int32, int64, uint8
from numpy.typing import NDArray

from glyphoxa.domain.ids import NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.recall.terms import Trait
from glyphoxa.recall.vectors import NOWHERE, grown
from glyphoxa.transcript.ports import FeedUtterance

# -- utterance table
#
# All utterances of an index, in columns.
#
# There is no object for each: the garbage collector would scan a hundred thousand of them repeatedly, and audio would
# wait for a tenth of a second.

ROW: Final = np.dtype(
    [
        ("change_seq", int64),
        ("at_ms", int64),
        ("session", int32),
        ("ordinal", int32),
        ("length", int32),
        ("speaker", int32),
        ("speaker_id", int32),
        ("audience", int32),
        ("traits", uint8),
        ("is_told", bool_),
    ]
)
"""Numbers only: `length` in terms, `speaker` the name, `audience` the set of witnesses, `is_told` false for utterances
that were rolled back or changed since.
"""

_NO_CHANGE_SEQ: Final = -1
"""For a row that belongs to no view."""

T = TypeVar("T", bound=Hashable)


class Numbered(Generic[T]):
    """Repeated values, each with a number from 0."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self.values)

    def of(self, value: T) -> int:
        """Return the number of a value; the next one if it is new."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


class UtteranceTable:
    """
    Attributes:
        speakers: Their names.
        audiences: The sets of witnesses.
    """

    def __init__(self) -> None:
        self.sessions = Numbered[SessionId]()
        self.speakers = Numbered[str]()
        self.audiences = Numbered[frozenset[NpcId]]()
        self._speaker_ids = Numbered[SpeakerId]()
        self._utterances: list[UtteranceId] = []
        self._texts: list[str] = []
        self._table = np.zeros(64, ROW)

    def __len__(self) -> int:
        return len(self._utterances)

    @property
    def table(self) -> NDArray[Any]:
        """Return the rows, of type `ROW`; one for each utterance."""
        return self._table[: len(self)]

    def text(self, row: int) -> str:
        return self._texts[row]

    def said(self, row: int) -> FeedUtterance:
        of = self._table[row]
        return FeedUtterance(
            change_seq=int(of["change_seq"]),
            utterance_id=self._utterances[row],
            session_id=self.sessions.values[of["session"]],
            ordinal=int(of["ordinal"]),
            speaker_id=self._speaker_ids.values[of["speaker_id"]],
            speaker_name=self.speakers.values[of["speaker"]],
            text=self._texts[row],
            at_ms=int(of["at_ms"]),
            witnesses=self.audiences.values[of["audience"]],
            retracted=not of["is_told"],
        )

    def append(self, said: FeedUtterance, length: int, traits: Trait) -> int:
        """Add an utterance and return its row."""
        row = len(self)
        if row == len(self._table):
            self._table = grown(self._table)
        self._utterances.append(said.utterance_id)
        self._texts.append(said.text)
        self.put(row, said, length, traits)
        return row

    def put(self, row: int, said: FeedUtterance, length: int, traits: Trait) -> None:
        """Store everything but the words."""
        self._table[row] = (
            said.change_seq,
            said.at_ms,
            self.sessions.of(said.session_id),
            said.ordinal,
            length,
            self.speakers.of(said.speaker_name),
            self._speaker_ids.of(said.speaker_id),
            self.audiences.of(said.witnesses),
            traits,
            not said.retracted,
        )

    def bury(self, row: int) -> None:
        """Remove a row from all views."""
        self._table["is_told"][row] = False
        self._table["change_seq"][row] = _NO_CHANGE_SEQ


NEVER: Final = int(np.iinfo(int64).max)
"""The start of a session without utterances."""


@dataclass(frozen=True, slots=True)
class ViewColumns:
    """The turns of a view in the order in which they were said; arrays of one length n.

    They keep their length while the view grows; corrected utterances change in place.

    Attributes:
        rows: Rows of the index.
        sessions: The session of each turn in the view, from 0, never decreasing.
        starts: The first turn of each session.
        lengths: In terms.
        speakers: A number for each speaker.
        at_ms: Milliseconds since the Unix epoch.
        traits: See `glyphoxa.recall.terms.Trait`.
    """

    rows: NDArray[int32]
    sessions: NDArray[int32]
    starts: NDArray[int64]
    lengths: NDArray[float32]
    speakers: NDArray[int32]
    at_ms: NDArray[int64]
    traits: NDArray[uint8]

    def __len__(self) -> int:
        return len(self.rows)


class View:
    """A growing view.

    Args:
        table: All rows of the index, of type `glyphoxa.recall.witnessed.ROW`.
        chosen: Those in the view.
        session_ids: In the order of their numbers in the table; sessions with the same start are in the order of their
            ids.
    """

    def __init__(self, table: NDArray[Any], chosen: NDArray[int64], session_ids: Sequence[str]) -> None:
        rows, began = _in_order(table, chosen, session_ids)
        of_rows = {name: table[name][rows] for name in ("session", "length", "speaker", "at_ms", "traits")}
        n = self._n = len(rows)
        changes = np.flatnonzero(np.diff(of_rows["session"])) + 1
        self._starts = [0, *changes.tolist()] if n else []
        self._began = {session: at_ms for session, at_ms in enumerate(began.tolist()) if at_ms != NEVER}
        self._last_began = max(self._began.values(), default=-NEVER)
        self._last = (int(table["session"][rows[-1]]), int(table["ordinal"][rows[-1]])) if n else (NOWHERE, 0)
        self.total_length = int(of_rows["length"].sum(dtype=int64))
        """Length of all turns together, in terms."""
        self.speakers = set(np.flatnonzero(np.bincount(of_rows["speaker"])).tolist())
        """The numbers of all speakers in it."""
        of_session = np.zeros(n, int32)
        of_session[changes] = 1
        # In the order of `ViewColumns`, as all that `append` adds.
        self._held: dict[str, NDArray[Any]] = {
            "rows": grown(rows.astype(int32)),
            "sessions": grown(np.cumsum(of_session, dtype=int32)),
            "lengths": grown(of_rows["length"].astype(float32)),
            "speakers": grown(of_rows["speaker"]),
            "at_ms": grown(of_rows["at_ms"]),
            "traits": grown(of_rows["traits"]),
        }
        self._place_of = np.full(len(table), NOWHERE, int32)
        self._place_of[rows] = np.arange(n, dtype=int32)

    def __len__(self) -> int:
        return self._n

    def columns(self) -> ViewColumns:
        held = {name: values[: self._n] for name, values in self._held.items()}
        return ViewColumns(starts=np.array(self._starts, int64), **held)

    def cover(self, n_rows: int) -> None:
        """Prepare for that many rows of the index, of which most are not in this view."""
        if n_rows > len(self._place_of):
            self._place_of = grown(self._place_of, n_rows, fill=NOWHERE)

    def places(self, rows: NDArray[int32]) -> NDArray[int32]:
        """Return the places of index rows in this view; -1 for those outside it."""
        return self._place_of[rows]

    def follows(self, row: Any) -> bool:
        """Return whether a row comes after everything in this view, as new utterances do."""
        session, ordinal = self._last
        if row["session"] == session:
            return bool(row["ordinal"] > ordinal and row["at_ms"] >= self._began[session])
        return int(row["session"]) not in self._began and bool(row["at_ms"] > self._last_began)

    def append(self, at: int, row: Any) -> None:
        """Add a row that `follows`.

        Args:
            at: Its place in the table of the index.
        """
        n, session = self._n, int(row["session"])
        if n == len(self._held["rows"]):
            self._held = {name: grown(values, n + 1) for name, values in self._held.items()}
        self.cover(at + 1)
        if session != self._last[0]:
            self._starts.append(n)
            self._began[session] = self._last_began = int(row["at_ms"])
        self._last = (session, int(row["ordinal"]))
        added = (at, len(self._starts) - 1, row["length"], row["speaker"], row["at_ms"], row["traits"])
        for values, value in zip(self._held.values(), added, strict=True):
            values[n] = value
        self._place_of[at] = n
        self.speakers.add(int(row["speaker"]))
        self.total_length += int(row["length"])
        self._n += 1

    def replace(self, old: int, new: int, row: Any) -> None:
        """Replace a row by one of the same session, ordinal and speaker with corrected words."""
        place = int(self._place_of[old])
        self.cover(new + 1)
        self.total_length += int(row["length"]) - int(self._held["lengths"][place])
        for name, value in (("rows", new), ("lengths", row["length"]), ("traits", row["traits"])):
            self._held[name][place] = value
        self._place_of[old] = NOWHERE
        self._place_of[new] = place


def _in_order(
    table: NDArray[Any], chosen: NDArray[int64], session_ids: Sequence[str]
) -> tuple[NDArray[int64], NDArray[int64]]:
    """Return the rows by session start and then ordinal, and the start of each session."""
    sessions, ordinals = table["session"][chosen], table["ordinal"][chosen]
    began = began_ms(table, chosen, len(session_ids))
    by_id = np.empty(len(session_ids), int64)
    by_id[sorted(range(len(session_ids)), key=session_ids.__getitem__)] = np.arange(len(session_ids))
    position = np.empty(len(session_ids), int64)
    position[np.lexsort((by_id, began))] = np.arange(len(session_ids))
    # One key instead of two: nearly sorted data is sorted in one pass.
    return chosen[np.argsort((position[sessions] << 32) + ordinals, kind="stable")], began


def began_ms(table: NDArray[Any], rows: NDArray[int64], n_sessions: int) -> NDArray[int64]:
    """Return when each session started, as far as those rows show it."""
    began = np.full(n_sessions, NEVER, int64)
    np.minimum.at(began, table["session"][rows], table["at_ms"][rows])
    return began
