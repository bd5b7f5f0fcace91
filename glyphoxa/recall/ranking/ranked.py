"""A view in the light of a question: what of it is best, and how each turn is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy import bool_, float32
from numpy.typing import NDArray

from glyphoxa.domain.knowledge import Viewer
from glyphoxa.domain.recalled import RecalledUtterance, Signal
from glyphoxa.recall.index.talk_index import TalkIndex, ViewSnapshot
from glyphoxa.recall.question import RecallQuestion
from glyphoxa.recall.ranking.ranking import POOL, Ranking, RankingWeights, apart, rank, wants_several
from glyphoxa.recall.ranking.time_fit import Fit, fit_of
from glyphoxa.transcript.feed import FeedUtterance
from glyphoxa.transcript.ports import TalkQuery

_FITS: Final = 0.5
"""A turn that fits the time of the question so well is told with that reason."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A view in the light of a question.

    Attributes:
        changes: Of the index, before it was looked at.
        is_about_it: Turns that have something of the question themselves.
        may_be_told: Turns that are not in the prompt already, and were said in the time that is asked for.
        apart: See `RankingWeights`.
        is_of_then: The question tells days that are over.
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
    apart: float
    is_of_then: bool

    def items(self, limit: int) -> list[RecalledUtterance]:
        """The best that are about it, or beside what is."""
        return [self.recalled(at, score=score) for at, score in self.best(limit)]

    def best(self, limit: int) -> list[tuple[int, float]]:
        """Where those stand in the view, each with its score, 0 to 1. Not always falling: see `apart`."""
        scores = self.ranking.scores
        among = _with_neighbours(self.is_about_it, self.seen) & self.may_be_told
        best = _best(scores, among, max(limit, POOL) + 1)
        if self.apart and wants_several(self.question.text, language=self.index.terms.language):
            best = apart(best, scores, self.seen.columns.sessions, cost=self.apart)
        found = [at for at in best[: limit + 1] if not self.is_the_question(at)][:limit]
        if not found:
            return []
        least, most = float(scores.min()), float(scores[found].max())
        return [(at, _relative(float(scores[at]), least, most)) for at in found]

    def is_the_question(self, at: int) -> bool:
        """It may be in the log already, under an id that the caller does not know."""
        return self.index.text(self._row(at)).casefold() == self.question.text.casefold()

    def recalled(self, at: int, *, score: float = 1.0) -> RecalledUtterance:
        said = self._said(at)
        cosines = self.seen.cosines
        reason = f"witnessed in session {said.session_id}"
        signals = {name: round(float(values[at]), 4) for name, values in self.ranking.shares.items() if values[at]}
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
    """All that a viewer may know of, as it is now. What was said at another time than the query's is not told, and
    still leads to what is.
    """
    changes, between = index.changes, query.between
    seen = index.look(viewer, asked.terms, asked.vector)
    fit = fit_of(asked, index, viewer, seen)
    heard = index.speakers(viewer)
    also = {name: signal(index, viewer, asked.terms, seen) for name, signal in weights.extra.items()}
    if fit is not None:
        also[Signal.TIME] = fit.prior
    speakers = frozenset(heard[name] for name in asked.speakers if name in heard)
    ranking = rank(asked, seen, speakers=speakers, also=also, weights=weights)
    may_be_told = ~np.isin(seen.columns.rows, index.rows_of(query.exclude))
    if between.after_ms is not None:
        may_be_told &= seen.columns.at_ms >= between.after_ms
    if between.before_ms is not None:
        may_be_told &= seen.columns.at_ms < between.before_ms
    about = _is_about_it(seen, weights.min_cosine)
    story = asked.times.story
    is_of_then = asked.time.tells_what_is_over(now_ms=asked.now_ms, story_day=None if story is None else story.today)
    return Ranked(
        *(index, changes, viewer, asked, query, seen, ranking, fit, about, may_be_told),
        apart=weights.apart,
        is_of_then=is_of_then,
    )


def _is_about_it(seen: ViewSnapshot, min_cosine: float) -> NDArray[bool_]:
    """Whether a turn shares a word with the question, or is near to it in meaning. A session that is spoken of in the
    question makes its turns likelier, none of them relevant.
    """
    found = np.zeros(len(seen), bool_)
    for match in seen.matches:
        found[match.places] = True
    if seen.cosines is not None:
        found |= seen.cosines >= min_cosine  # false for one that has none
    return found


def _with_neighbours(found: NDArray[bool_], seen: ViewSnapshot) -> NDArray[bool_]:
    """An answer need not repeat the words of its question: it follows within two turns."""
    widened = found.copy()
    for distance in (1, 2):
        same = seen.columns.sessions[distance:] == seen.columns.sessions[:-distance]
        widened[distance:] |= found[:-distance] & same
        widened[:-distance] |= found[distance:] & same
    return widened


def _best(scores: NDArray[float32], among: NDArray[bool_], limit: int) -> list[int]:
    """The places of the highest scores, the later first among equals."""
    places = np.flatnonzero(among)
    n = min(limit, len(places))
    if n <= 0:
        return []
    values = scores[places]
    candidates = places[values >= np.partition(values, -n)[-n]]
    order = np.lexsort((-candidates, -scores[candidates]))
    return [int(at) for at in candidates[order][:n]]


def _relative(score: float, least: float, best: float) -> float:
    return (score - least) / (best - least) if best > least else 1.0
