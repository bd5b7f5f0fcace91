"""Index the utterances of one campaign in memory: speaker, time, witnesses, words and meaning.

It grows from a `TalkFeed` and has no data of its own: an index rebuilt from the same utterances gives the same answers.
Several threads search it while one thread adds to it. Both operations are short and take a lock.
"""

from __future__ import annotations

import itertools
import struct
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy import bool_, float32, int32, int64
from numpy.typing import NDArray

from glyphoxa.domain.ids import SessionId, UtteranceId
from glyphoxa.domain.knowledge import Dm, Viewer
from glyphoxa.language.text import Text
from glyphoxa.recall.terms import NAME, SearchTerms, Terms, Trait, traits_of
from glyphoxa.recall.vectors import NOWHERE, Vectors
from glyphoxa.recall.witnessed import NEVER, UtteranceTable, View, ViewColumns, began_ms
from glyphoxa.transcript.ports import Embedding, FeedUtterance

# -- postings
#
# Which turns contain a term, and how often. They are stored as bytes, because objects would number millions.

_POSTED: Final = struct.Struct("=ii")


class Postings:
    def __init__(self) -> None:
        self._of_term: dict[str, bytearray] = {}

    def put(self, row: int, counts: Mapping[str, int]) -> None:
        """Add the terms of a new turn.

        Args:
            row: Higher than all earlier ones.
            counts: How often each term occurs.
        """
        for term, count in counts.items():
            posting = self._of_term.get(term)
            if posting is None:
                posting = self._of_term[term] = bytearray()
            posting += _POSTED.pack(row, count)

    def of(self, term: str) -> tuple[NDArray[int32], NDArray[int32]]:
        """Return the rows that contain a term, in order, and how often each does; both of shape (n,)."""
        # A copy, because a buffer that is exported cannot grow.
        rows, counts = np.frombuffer(bytes(self._of_term.get(term, b"")), int32).reshape(-1, 2).T
        return rows, counts


# -- views
#
# The views of the latest viewers, updated while the transcript grows and changes.

_MOST_VIEWS: Final = 16


class Views:
    """
    Args:
        utterances: All that were read. The caller reports each change of them here.
    """

    def __init__(self, utterances: UtteranceTable) -> None:
        self._utterances = utterances
        self._views: OrderedDict[str | None, View] = OrderedDict()
        self._stale: set[str | None] = set()

    def of(self, viewer: Viewer) -> View:
        """Return the view of one viewer; it grows with the transcript."""
        key = None if isinstance(viewer, Dm) else str(viewer)
        if key is not None and not key:
            raise ValueError("memory is queried for DM or for an NPC, not for ''")
        view = self._views.get(key)
        if view is None or key in self._stale:
            utterances, rows = self._utterances, self._utterances.table
            was_there = np.array([key is None or key in audience for audience in utterances.audiences.values], bool_)
            chosen = np.flatnonzero(rows["is_told"] & was_there[rows["audience"]])
            view = self._views[key] = View(rows, chosen, utterances.sessions.values)
            self._stale.discard(key)
        view.cover(len(self._utterances))
        self._views.move_to_end(key)
        while len(self._views) > _MOST_VIEWS:
            gone, _ = self._views.popitem(last=False)
            self._stale.discard(gone)
        return view

    def added(self, row: int, said: FeedUtterance) -> None:
        """Add a new utterance."""
        of = self._utterances.table[row]
        for viewer, view in self._views.items():
            if viewer not in self._stale and _may_know(viewer, said):
                if view.follows(of):
                    view.append(row, of)
                else:
                    self._stale.add(viewer)

    def changed(self, was: FeedUtterance, now: FeedUtterance) -> None:
        """Update who may know an utterance."""
        self._stale |= self._knowing(was) ^ self._knowing(now)

    def replaced(self, old: int, new: int, was: FeedUtterance, now: FeedUtterance) -> None:
        """Move an utterance to another row after its words changed."""
        knew, know = self._knowing(was), self._knowing(now)
        if was.speaker_name != now.speaker_name:
            self._stale |= knew | know
            return
        self._stale |= knew ^ know
        for viewer in (knew & know) - self._stale:
            self._views[viewer].replace(old, new, self._utterances.table[new])

    def _knowing(self, said: FeedUtterance) -> set[str | None]:
        return {viewer for viewer in self._views if _may_know(viewer, said)}


def _may_know(viewer: str | None, said: FeedUtterance) -> bool:
    return not said.retracted and (viewer is None or viewer in said.witnesses)


_CHANGES = itertools.count(1)
_BETWEEN_BREATHS = 20
_BREATH_S = 0.000_05
"""This many utterances take three milliseconds. Without the rest, audio and other work would get the interpreter
only after five (`sys.getswitchinterval`), each time. With it, half of all waits during 100,000 turns are at most 0.6
ms instead of 5.3 ms. Reading takes a tenth longer, or a fifth if it rests twice as often."""


@dataclass(frozen=True, slots=True)
class TermMatch:
    """Where a term of the question occurs in a view.

    Attributes:
        places: Turns that contain it, each once; int32.
        counts: How often each contains it; float32.
    """

    places: NDArray[int32]
    counts: NDArray[float32]


@dataclass(frozen=True, slots=True)
class ViewSnapshot:
    """A view at one moment, with what is needed to rank it.

    Attributes:
        cosines: Similarity of each turn to the question, shape (n,), NaN where a turn has no vector yet; None if the
            question has none.
    """

    columns: ViewColumns
    mean_length: float
    matches: tuple[TermMatch, ...]
    cosines: NDArray[float32] | None = None

    def __len__(self) -> int:
        return len(self.columns)


class TalkIndex:
    """
    Args:
        terms: Terms of the campaign's language.
    """

    def __init__(self, terms: Terms, *, dimensions: int) -> None:
        self.terms = terms
        self.change_seq = -1
        """Number of the latest change in this index."""
        self.changes = next(_CHANGES)
        """Changes with everything that may change an answer; no other index has or had the same value."""
        self._lock = threading.RLock()
        self._utterances = UtteranceTable()
        self.text = self._utterances.text
        self.said = self._utterances.said
        self._row_of: dict[UtteranceId, int] = {}
        self._session_numbers: dict[SessionId, int] | None = None
        self._postings = Postings()
        self._views = Views(self._utterances)
        self._vectors = Vectors(dimensions)
        self._unembedded: dict[UtteranceId, int] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, utterance: UtteranceId) -> bool:
        return utterance in self._row_of

    @property
    def n_vectors(self) -> int:
        return len(self._vectors)

    @property
    def dimensions(self) -> int:
        return self._vectors.dimensions

    # -- adding

    def put(self, said: Iterable[FeedUtterance]) -> None:
        """Add new and changed utterances, in the order of their changes."""
        for n, one in enumerate(said, start=1):
            terms = self.terms.of_turn(one.speaker_name, one.text)
            traits = traits_of(one.text, language=self.terms.language)
            # One at a time: a search then waits for one utterance, not for all of them.
            with self._lock:
                self._put(one, terms, traits)
            if not n % _BETWEEN_BREATHS:
                time.sleep(_BREATH_S)

    def put_meanings(self, meanings: Iterable[Embedding]) -> None:
        """Add vectors. Skips those of unknown utterances, of utterances that have one, and of other dimensions."""
        for meaning in meanings:
            with self._lock:
                if meaning.vectors.shape[1:] != (self._vectors.dimensions,):
                    continue
                row = self._unembedded.pop(meaning.utterance_id, None)
                if row is not None:
                    self.changes = next(_CHANGES)
                    self._vectors.put(row, meaning.vectors)

    def unembedded(self, *, limit: int) -> list[UtteranceId]:
        """Return utterances whose vectors are missing here, the latest first."""
        with self._lock:
            return list(itertools.islice(reversed(self._unembedded), limit))

    def want_no_meanings(self, *, before: UtteranceId) -> None:
        """Stop reporting those before that change as `unembedded`."""
        with self._lock:
            later: list[UtteranceId] = []
            row = self._row_of[before]
            for utterance in reversed(self._unembedded):
                if self._unembedded[utterance] < row:
                    break
                later.append(utterance)
            self._unembedded = {utterance: self._unembedded[utterance] for utterance in reversed(later)}

    # -- searching

    def rows_of(self, utterances: Iterable[UtteranceId]) -> list[int]:
        """Return the rows of those that are present."""
        return [row for utterance in utterances if (row := self._row_of.get(utterance)) is not None]

    def told_at_ms(self) -> NDArray[int64]:
        """Return the times of everything that anybody may recall, whoever was present."""
        with self._lock:
            kept = self._utterances.table
            told: NDArray[int64] = kept["at_ms"][kept["is_told"]]
            return told

    def session_numbers(self) -> dict[SessionId, int]:
        """Return the campaign's sessions by start, from 1.

        They include those that the viewer missed: "the last session" is the table's.
        """
        with self._lock:
            if self._session_numbers is None:
                kept, sessions = self._utterances.table, self._utterances.sessions.values
                began = began_ms(kept, np.flatnonzero(kept["is_told"]), len(sessions)).tolist()
                ordered = sorted((at_ms, session) for at_ms, session in zip(began, sessions, strict=True))
                ids = [session for at_ms, session in ordered if at_ms != NEVER]
                self._session_numbers = {session: number for number, session in enumerate(ids, start=1)}
            return self._session_numbers

    def session_starts(self) -> dict[SessionId, int]:
        """Return when each session began, in milliseconds since the Unix epoch, also if all of it was retracted."""
        with self._lock:
            kept, sessions = self._utterances.table, self._utterances.sessions.values
            return dict(zip(sessions, began_ms(kept, np.arange(len(kept)), len(sessions)).tolist(), strict=True))

    def speakers(self, viewer: Viewer) -> dict[str, int]:
        """Return the names of the speakers whom the viewer has heard, with their numbers."""
        with self._lock:
            heard = self._views.of(viewer).speakers
            return {self._utterances.speakers.values[number]: number for number in sorted(heard)}

    def look(self, viewer: Viewer, asked: SearchTerms, vector: NDArray[float32] | None = None) -> ViewSnapshot:
        """Return what a ranking needs for one question in the name of a viewer.

        Args:
            vector: The question's embedding, of unit length.
        """
        with self._lock:
            view = self._views.of(viewer)
            columns = view.columns()
            matches = tuple(match for term in asked if (match := self._match(view, term)) is not None)
            mean_length = view.total_length / len(view) if len(view) else 0.0
            if vector is None:
                return ViewSnapshot(columns, mean_length, matches)
            vectors = self._vectors.now()
            places = view.places(vectors.owners)
        # This is the slowest part, and nobody needs to wait for it.
        return ViewSnapshot(columns, mean_length, matches, vectors.cosines(vector, places, len(columns)))

    def vectors_at(self, columns: ViewColumns, places: Sequence[int]) -> NDArray[float32]:
        """Return the first vector of each of those turns, shape (len(places), dimensions); zeros without one."""
        with self._lock:
            return self._vectors.first_of(columns.rows[np.asarray(places, int32)])

    # -- internals

    def _put(self, said: FeedUtterance, terms: Counter[str], traits: Trait) -> None:
        self.change_seq = max(self.change_seq, said.change_seq)
        self.changes = next(_CHANGES)
        self._session_numbers = None
        before = self._row_of.get(said.utterance_id)
        if before is None:
            self._views.added(self._new_row(said, terms, traits), said)
            return
        old = self._utterances.said(before)
        if (old.text, old.speaker_name) == (said.text, said.speaker_name):
            self._utterances.put(before, said, int(self._utterances.table[before]["length"]), traits)
            self._views.changed(old, said)
            return
        # The old row stays and belongs to no view.
        self._utterances.bury(before)
        self._unembedded.pop(said.utterance_id, None)
        self._views.replaced(before, self._new_row(said, terms, traits), old, said)

    def _new_row(self, said: FeedUtterance, terms: Counter[str], traits: Trait) -> int:
        row = self._utterances.append(said, terms.total(), traits)
        self._row_of[said.utterance_id] = row
        self._unembedded[said.utterance_id] = row
        self._postings.put(row, terms)
        return row

    def _match(self, view: View, term: str) -> TermMatch | None:
        found = self._in_view(view, term)
        if found is None and term.startswith(NAME):
            # Only the question writes it like a name.
            stem = next(iter(Text(term[len(NAME) :]).stems(self.terms.language)), None)
            found = None if stem is None else self._in_view(view, stem)
        return found

    def _in_view(self, view: View, term: str) -> TermMatch | None:
        rows, counts = self._postings.of(term)
        places = view.places(rows)
        there = places != NOWHERE
        return TermMatch(places[there], counts[there].astype(float32)) if there.any() else None
