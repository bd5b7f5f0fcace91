"""Every utterance that an index has read, in columns.

No object stays for each: a hundred thousand of them would be looked through by the garbage collector again and again,
and whoever speaks would wait for it for a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy import bool_, int32, int64, uint8
from numpy.typing import NDArray

from glyphoxa.domain.ids import NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.recall.arrays import grown
from glyphoxa.recall.lexical.traits import Trait
from glyphoxa.transcript.feed import FeedUtterance

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
"""Numbers for everything: `length` in terms, `speaker` the name, `audience` the set of those who were there, `is_told`
false for what was rolled back or said otherwise since."""

_NO_CHANGE_SEQ: Final = -1
"""Of what is nobody's any more."""

T = TypeVar("T", bound=Hashable)


class Numbered(Generic[T]):
    """Values that come again and again, each with a number from 0."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self.values)

    def of(self, value: T) -> int:
        """Its number; the next one, if it is new."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


class UtteranceTable:
    """
    Attributes:
        speakers: Their names.
        audiences: Who was there.
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
        """Of type `ROW`; one for each utterance."""
        return self._table[: len(self)]

    @property
    def size_bytes(self) -> int:
        return self._table.nbytes

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

    def changed_before(self, change_seq: int, nth: int) -> FeedUtterance | None:
        """See `TalkIndex.changed_before`."""
        change_seqs = self.table["change_seq"]
        rows = np.flatnonzero((change_seqs < change_seq) & (change_seqs != _NO_CHANGE_SEQ))
        if not len(rows):
            return None
        at = max(0, len(rows) - nth)
        return self.said(int(rows[np.argpartition(change_seqs[rows], at)[at]]))

    def changed_between(self, after: int, until: int) -> set[UtteranceId]:
        """See `TalkIndex.changed_between`."""
        change_seqs = self.table["change_seq"]
        rows = np.flatnonzero((change_seqs > after) & (change_seqs <= until)).tolist()
        return {self._utterances[row] for row in rows}

    def append(self, said: FeedUtterance, length: int, traits: Trait) -> int:
        """Its row."""
        row = len(self)
        if row == len(self._table):
            self._table = grown(self._table)
        self._utterances.append(said.utterance_id)
        self._texts.append(said.text)
        self.put(row, said, length, traits)
        return row

    def put(self, row: int, said: FeedUtterance, length: int, traits: Trait) -> None:
        """All of it but its words."""
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
        """It is nobody's any more."""
        self._table["is_told"][row] = False
        self._table["change_seq"][row] = _NO_CHANGE_SEQ
