"""Rank the turns of a view by how much they bear on a question: a weighted sum of signals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy import bool_, float32
from numpy.typing import NDArray

from glyphoxa.domain.knowledge import RecalledUtterance, Signal, Viewer
from glyphoxa.recall.signals import Fit, fit_of, signals_of
from glyphoxa.recall.talk_index import TalkIndex, ViewSnapshot
from glyphoxa.recall.terms import RecallQuestion
from glyphoxa.transcript.ports import FeedUtterance, TalkQuery

Scores = NDArray[float32]

BY_WORDS: Final[Mapping[Signal, float]] = {
    Signal.WORDS: 5.0,
    Signal.LED_UP: 3.5,
    Signal.SCENE: 10.0,
    Signal.SPEAKER: 1.0,
    Signal.ASKS: -1.0,
    Signal.ANSWERS: 5.0,
    Signal.TELLS_TIME: 2.5,
    Signal.TIME: 6.5,
}
BY_WORDS_AND_MEANING: Final[Mapping[Signal, float]] = {
    Signal.WORDS: 2.5,
    Signal.LED_UP: 2.5,
    Signal.SCENE: 14.0,
    Signal.SPEAKER: 1.2,
    Signal.ASKS: -1.0,
    Signal.ANSWERS: 2.5,
    Signal.TELLS_TIME: 2.5,
    Signal.TIME: 6.5,
    Signal.MEANING: 3.0,
    Signal.MEANING_BEFORE: 0.2,
    Signal.MEANING_AFTER: 0.6,
    Signal.MEANING_ANSWERS: 1.0,
    Signal.MEANING_NEAR: 2.5,
}


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """The weight of each signal; a signal without one counts 0.

    Learnt by a listwise softmax (Cao et al., 2007) from five conversations of LoCoMo and, at three tenths of the
    weight, three evenings of Critical Role, then rounded. `docs/measurements.md` shows how it does on other
    transcripts.

    Attributes:
        by_words: Used without the question's vector: on partial transcripts, or when the vector is late.
        min_cosine: Without a common word, a lower similarity does not bear on the question. True hits can be as low: at
            0.25, questions in other words lose 2.9 points of R@10. Selection decides later what enters a prompt.
    """

    by_words: Mapping[Signal, float] = field(default_factory=lambda: BY_WORDS)
    by_words_and_meaning: Mapping[Signal, float] = field(default_factory=lambda: BY_WORDS_AND_MEANING)
    min_cosine: float = 0.15


DEFAULT: Final = RankingWeights()


@dataclass(frozen=True, slots=True)
class Ranking:
    """
    Attributes:
        scores: Shape (n,), higher is better: the weighted sum of the signals.
        signals: Those with a weight, each of shape (n,).
    """

    scores: Scores
    signals: Mapping[Signal, Scores]
    weights: Mapping[Signal, float]

    def shares_of(self, at: int) -> dict[Signal, float]:
        """Return the parts of one turn's score, without signals that add nothing."""
        found = {name: self.weights[name] * float(values[at]) for name, values in self.signals.items()}
        return {name: round(share, 4) for name, share in found.items() if share}


def rank(
    question: RecallQuestion,
    seen: ViewSnapshot,
    *,
    speakers: frozenset[int] = frozenset(),
    also: Mapping[Signal, Scores] = MappingProxyType({}),
    weights: RankingWeights = DEFAULT,
) -> Ranking:
    """
    Args:
        speakers: Numbers of the speakers whom the question names.
        also: Further signals that were computed for this question: the fit in time.
    """
    signals = signals_of(question, seen, speakers) | dict(also)
    table = weights.by_words if seen.cosines is None else weights.by_words_and_meaning
    weighed = {name: signals[name] for name in table if name in signals}
    scores, share = np.zeros(len(seen), float32), np.empty(len(seen), float32)
    for name, values in weighed.items():
        scores += np.multiply(values, np.float32(table[name]), out=share)
    return Ranking(scores, weighed, table)


# -- ranked
#
# A view, ranked by a question: the best turns, and how each is presented.


_FITS: Final = 0.5
"""From this fit in time on, a turn is presented with that reason."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A view, ranked by a question.

    Attributes:
        changes: Number of the index's latest change before the look-up.
        is_about_it: Turns that match the question themselves.
        may_be_told: Turns that are not in the prompt already, and were said in the time that is asked for.
        is_of_then: The question contains past days.
    """

    index: TalkIndex
    changes: int
    viewer: Viewer
    question: RecallQuestion
    query: TalkQuery
    seen: ViewSnapshot
    ranking: Ranking
    fit: Fit | None
    is_about_it: NDArray[bool_]
    may_be_told: NDArray[bool_]
    is_of_then: bool

    def items(self, limit: int) -> list[RecalledUtterance]:
        """Return the best turns that match the question, or are next to one that does."""
        return [self.recalled(at, score=score) for at, score in self.best(limit)]

    def best(self, limit: int) -> list[tuple[int, float]]:
        """Return their places in the view, each with its score from 0 to 1."""
        scores = self.ranking.scores
        among = _with_neighbours(self.is_about_it, self.seen) & self.may_be_told
        found = [at for at in _best(scores, among, limit + 1) if not self.is_the_question(at)][:limit]
        if not found:
            return []
        least, most = float(scores.min()), float(scores[found].max())
        return [(at, (float(scores[at]) - least) / (most - least) if most > least else 1.0) for at in found]

    def is_the_question(self, at: int) -> bool:
        """The utterance may already be in the log under an id that the caller does not know."""
        return self.index.text(self._row(at)).casefold() == self.question.text.casefold()

    def recalled(self, at: int, *, score: float = 1.0) -> RecalledUtterance:
        said = self._said(at)
        cosines = self.seen.cosines
        reason = f"witnessed in session {said.session_id}"
        signals = self.ranking.shares_of(at)
        if self.fit is not None and self.fit.scores[at] >= _FITS:
            reason = f"{reason}; {self.fit.reason}"
            if self.is_of_then:
                signals[Signal.THEN] = 1.0
        return RecalledUtterance(
            said.utterance_id,
            said.session_id,
            said.speaker_id,
            said.speaker_name,
            said.text,
            said.at_ms,
            is_own=str(said.speaker_id) == self.viewer,
            score=score,
            reason=reason,
            similarity=None if cosines is None or np.isnan(cosines[at]) else float(cosines[at]),
            signals=signals,
        )

    def _said(self, at: int) -> FeedUtterance:
        return self.index.said(self._row(at))

    def _row(self, at: int) -> int:
        return int(self.seen.columns.rows[at])


def rank_view(
    index: TalkIndex, viewer: Viewer, asked: RecallQuestion, query: TalkQuery, weights: RankingWeights
) -> Ranked:
    """Rank all that a viewer may know now. Turns later than the query are not returned, but may lead to others."""
    changes, between = index.changes, query.between
    seen = index.look(viewer, asked.terms, asked.vector)
    fit = fit_of(asked, index, seen)
    heard = index.speakers(viewer)
    also = {} if fit is None else {Signal.TIME: fit.prior}
    speakers = frozenset(heard[name] for name in asked.speakers if name in heard)
    ranking = rank(asked, seen, speakers=speakers, also=also, weights=weights)
    excluded = index.rows_of(query.exclude)
    may_be_told = np.isin(seen.columns.rows, excluded, invert=True) if excluded else np.ones(len(seen), bool_)
    if between.after_ms is not None:
        may_be_told &= seen.columns.at_ms >= between.after_ms
    if between.before_ms is not None:
        may_be_told &= seen.columns.at_ms < between.before_ms
    if query.session is not None:
        ids = [index.said(int(row)).session_id for row in seen.columns.rows[seen.columns.starts]]
        may_be_told &= np.isin(seen.columns.sessions, [nth for nth, id_ in enumerate(ids) if id_ == query.session])
    if query.speaker:
        may_be_told &= np.isin(seen.columns.speakers, [heard[name] for name in heard if query.is_by(name)])
    about = _is_about_it(seen, weights.min_cosine)
    is_of_then = asked.time.tells_what_is_over(now_ms=asked.now_ms, story_day=asked.times.campaign.today)
    return Ranked(
        *(index, changes, viewer, asked, query, seen, ranking, fit, about, may_be_told),
        is_of_then=is_of_then,
    )


def _is_about_it(seen: ViewSnapshot, min_cosine: float) -> NDArray[bool_]:
    """Return whether a turn shares a word with the question or is near to it in meaning.

    A session that the question names raises the score of its turns, but that alone makes none of them relevant.
    """
    found = np.zeros(len(seen), bool_)
    for match in seen.matches:
        found[match.places] = True
    if seen.cosines is not None:
        found |= seen.cosines >= min_cosine  # false if there is none
    return found


def _with_neighbours(found: NDArray[bool_], seen: ViewSnapshot) -> NDArray[bool_]:
    """An answer need not repeat the question's words: it follows within two turns."""
    widened = found.copy()
    for distance in (1, 2):
        same = seen.columns.sessions[distance:] == seen.columns.sessions[:-distance]
        widened[distance:] |= found[:-distance] & same
        widened[:-distance] |= found[distance:] & same
    return widened


def _best(scores: NDArray[float32], among: NDArray[bool_], limit: int) -> list[int]:
    """Return the places of the highest scores, the later first among equals."""
    places = np.flatnonzero(among)
    n = min(limit, len(places))
    if n <= 0:
        return []
    values = scores[places]
    candidates = places[values >= np.partition(values, -n)[-n]]
    order = np.lexsort((-candidates, -scores[candidates]))
    return [int(at) for at in candidates[order][:n]]
