"""Talk of one campaign in memory: who said what, when, before whom, by which words it is found and what it means.

It is grown from a `TalkFeed` and holds nothing of its own: built anew from the same talk it gives the same answers.
Searched from several threads while one grows it; both are short, and a lock keeps them apart.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import float32, int32, uint8
from numpy.typing import NDArray

from glyphoxa.domain.ids import SessionId, UtteranceId
from glyphoxa.domain.knowledge import Dm, Viewer
from glyphoxa.memory.ports.talk_feed import Meaning, Said
from glyphoxa.memory.recall.terms import NAME, Asked, Terms
from glyphoxa.memory.recall.traits import traits_of
from glyphoxa.memory.recall.view import NOWHERE, Columns, Place, View

_MOST_VIEWS = 16
_SPARE = 1.5


@dataclass(frozen=True, slots=True)
class Match:
    """Where a term of the question stands in a view.

    Attributes:
        term: As it was asked for.
        times: How often the question has it.
        places: Turns that have it, each once; int32.
        counts: How often each has it; float32.
    """

    term: str
    times: int
    places: NDArray[int32]
    counts: NDArray[float32]


@dataclass(frozen=True, slots=True)
class Seen:
    """A view as it was at one moment, with what it takes to rank it.

    Attributes:
        traits: Of each turn, see `Trait`; shape (n,).
        cosines: Of each turn's meaning and the question's, shape (n,), NaN where a turn has none yet; None when the
            question has none.
    """

    columns: Columns
    mean_length: float
    traits: NDArray[uint8]
    matches: tuple[Match, ...]
    cosines: NDArray[float32] | None = None

    def __len__(self) -> int:
        return len(self.columns)


class TalkIndex:
    """
    Args:
        terms: Of the campaign's language.
        dimensions: Of the vectors.
    """

    def __init__(self, terms: Terms, *, dimensions: int) -> None:
        self.terms = terms
        self.mark = -1
        """Of the latest change that is in here."""
        self.changes = 0
        """Counted up with whatever may change an answer."""
        self._lock = threading.RLock()
        self._said: list[Said] = []
        self._lengths = array("i")
        self._traits = array("B")
        self._row_of: dict[UtteranceId, int] = {}
        self._speakers: dict[str, int] = {}
        self._sessions: dict[SessionId, int] = {}
        self._postings: dict[str, tuple[array[int], array[int]]] = {}
        self._views: OrderedDict[str | None, View] = OrderedDict()
        self._stale: set[str | None] = set()
        self._vectors = np.zeros((0, dimensions), float32)
        self._owners = np.zeros(0, int32)
        self._n_vectors = 0
        self._unembedded: dict[UtteranceId, int] = {}
        self._n_dead = 0
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def n_vectors(self) -> int:
        return self._n_vectors

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory."""
        return self._bytes + self._vectors.nbytes + sum(len(view) for view in self._views.values()) * 28

    @property
    def wastes(self) -> bool:
        """Whether more of it is dead than alive: better built anew."""
        return self._n_dead > 1_000 + len(self._row_of)

    # -- growing

    def put(self, said: Iterable[Said]) -> None:
        """Take in what is new or has changed, in the order of the marks."""
        for one in said:
            terms = self.terms.of_turn(one.speaker_name, one.text)
            with self._lock:
                self._put(one, terms)

    def put_meanings(self, meanings: Iterable[Meaning]) -> None:
        """Take in vectors; those of utterances that are not here, or have some already, are left."""
        with self._lock:
            for meaning in meanings:
                row = self._unembedded.pop(meaning.utterance_id, None)
                if row is not None:
                    self.changes += 1
                    self._put_vectors(row, meaning.vectors)

    def unembedded(self, *, limit: int) -> list[UtteranceId]:
        """Utterances whose vectors are not here, the latest first."""
        with self._lock:
            return list(reversed(self._unembedded))[:limit]

    # -- asking

    def said(self, row: int) -> Said:
        return self._said[row]

    def places_of(self, viewer: Viewer, utterances: Iterable[UtteranceId]) -> NDArray[int32]:
        """Where those of them that the viewer may know of stand in its view."""
        with self._lock:
            rows = [self._row_of[utterance] for utterance in utterances if utterance in self._row_of]
            places = self._view(viewer).places(np.array(rows, int32))
            there: NDArray[int32] = places[places != NOWHERE]
            return there

    def session_numbers(self) -> dict[SessionId, int]:
        """The campaign's sessions by when they began, from 1, also those the viewer was not at: "the last session" is
        the table's.
        """
        with self._lock:
            ordered = sorted(self._sessions, key=lambda session: (self._sessions[session], session))
        return {session: number for number, session in enumerate(ordered, start=1)}

    def speakers(self, viewer: Viewer) -> dict[str, int]:
        """The names of those whom the viewer has heard, with their numbers."""
        with self._lock:
            heard = set(np.unique(self._view(viewer).columns().speakers).tolist())
            return {name: number for name, number in self._speakers.items() if number in heard}

    def look(self, viewer: Viewer, asked: Asked, vector: NDArray[float32] | None = None) -> Seen:
        """What a ranking needs for one question in the name of a viewer.

        Args:
            vector: Of the question, of unit length.
        """
        with self._lock:
            view = self._view(viewer)
            columns = view.columns()
            matches = tuple(
                match for term, times in asked.words.items() if (match := self._match(view, term, times)) is not None
            )
            traits = np.array(self._traits, uint8)[columns.rows]
            mean_length = view.total_length / len(view) if len(view) else 0.0
            n_vectors, vectors, owners = self._n_vectors, self._vectors, self._owners
            places = view.places(owners[:n_vectors]) if vector is not None and n_vectors else np.zeros(0, int32)
        cosines = None
        if vector is not None:
            cosines = _cosines(vectors[:n_vectors], vector, places, len(columns))
        return Seen(columns, mean_length, traits, matches, cosines)

    def vectors_at(self, columns: Columns, places: Sequence[int]) -> NDArray[float32]:
        """The first vector of each of those turns, shape (len(places), dimensions); zeros where there is none."""
        with self._lock:
            found = np.zeros((len(places), self._vectors.shape[1]), float32)
            if not self._n_vectors:
                return found
            owners = self._owners[: self._n_vectors]
            order = np.argsort(owners, kind="stable")
            rows = columns.rows[np.asarray(places, int32)]
            at = np.searchsorted(owners, rows, sorter=order)
            at[at == len(order)] = 0
            hit = owners[order[at]] == rows
            found[hit] = self._vectors[order[at[hit]]]
            return found

    # -- inside

    def _put(self, said: Said, terms: dict[str, int]) -> None:
        self.mark = max(self.mark, said.mark)
        self.changes += 1
        before = self._row_of.get(said.utterance_id)
        if before is not None:
            old = self._said[before]
            if (old.text, old.speaker_name) == (said.text, said.speaker_name):
                self._said[before] = said
                if (old.witnesses, old.struck) != (said.witnesses, said.struck):
                    self._stale |= set(self._views)
                return
            # The old row stays where it is, and belongs to nobody any more.
            self._unembedded.pop(said.utterance_id, None)
            self._n_dead += 1
            self._stale |= set(self._views)
        row = len(self._said)
        self._said.append(said)
        self._row_of[said.utterance_id] = row
        self._lengths.append(sum(terms.values()))
        self._traits.append(traits_of(said.text, language=self.terms.language))
        self._unembedded[said.utterance_id] = row
        self._speakers.setdefault(said.speaker_name, len(self._speakers))
        if not said.struck:
            first = self._sessions.get(said.session_id, said.at_ms)
            self._sessions[said.session_id] = min(first, said.at_ms)
        for term, count in terms.items():
            posting = self._postings.get(term)
            if posting is None:
                posting = self._postings[term] = (array("i"), array("i"))
                self._bytes += 300
            posting[0].append(row)
            posting[1].append(count)
        self._bytes += 8 * len(terms) + 600 + len(said.text)
        place = self._place(row, said)
        for viewer, view in self._views.items():
            if viewer not in self._stale and _may_know(viewer, said):
                if view.follows(place):
                    view.append(place)
                else:
                    self._stale.add(viewer)

    def _put_vectors(self, row: int, vectors: NDArray[float32]) -> None:
        least = self._n_vectors + len(vectors)
        if least > len(self._owners):
            capacity = max(256, least, int(len(self._owners) * _SPARE))
            grown, owners = np.zeros((capacity, self._vectors.shape[1]), float32), np.zeros(capacity, int32)
            grown[: self._n_vectors] = self._vectors[: self._n_vectors]
            owners[: self._n_vectors] = self._owners[: self._n_vectors]
            self._vectors, self._owners = grown, owners
        self._vectors[self._n_vectors : least] = vectors
        self._owners[self._n_vectors : least] = row
        self._n_vectors = least

    def _view(self, viewer: Viewer) -> View:
        key = None if isinstance(viewer, Dm) else str(viewer)
        if key is not None and not key:
            raise ValueError("memory is asked in the name of DM or of an NPC, not of ''")
        view = self._views.get(key)
        if view is None or key in self._stale:
            places = [
                self._place(row, said)
                for row, said in enumerate(self._said)
                if _may_know(key, said) and self._row_of[said.utterance_id] == row
            ]
            view = self._views[key] = View(places, len(self._said))
            self._stale.discard(key)
        self._views.move_to_end(key)
        while len(self._views) > _MOST_VIEWS:
            gone, _ = self._views.popitem(last=False)
            self._stale.discard(gone)
        return view

    def _place(self, row: int, said: Said) -> Place:
        speaker = self._speakers[said.speaker_name]
        return Place(row, said.session_id, said.floor, said.at_ms, self._lengths[row], speaker)

    def _match(self, view: View, term: str, times: int) -> Match | None:
        found = self._in_view(view, self._postings.get(term))
        if found is None and term.startswith(NAME):
            # It is written like a name only in the question.
            found = self._in_view(view, self._postings.get(next(iter(self.terms.stems(term[len(NAME) :])), "")))
        return None if found is None else Match(term, times, *found)

    def _in_view(
        self, view: View, posting: tuple[array[int], array[int]] | None
    ) -> tuple[NDArray[int32], NDArray[float32]] | None:
        if posting is None:
            return None
        places = view.places(np.array(posting[0], int32))
        there = places != NOWHERE
        return (places[there], np.array(posting[1], float32)[there]) if there.any() else None


def _may_know(viewer: str | None, said: Said) -> bool:
    return not said.struck and (viewer is None or viewer in said.witnesses)


def _cosines(vectors: NDArray[float32], question: NDArray[float32], places: NDArray[int32], n: int) -> NDArray[float32]:
    """The nearest of its pieces speaks for a turn."""
    found = np.full(n, np.nan, float32)
    there = places != NOWHERE
    if there.any():
        np.fmax.at(found, places[there], (vectors @ question)[there])
    return found
