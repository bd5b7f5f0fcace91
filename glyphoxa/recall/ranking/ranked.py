"""A view in the light of a question: what of it is best, and how each turn is told."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy import bool_, float32
from numpy.typing import NDArray

from glyphoxa.domain.ids import UtteranceId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.domain.recalled import RecalledUtterance, Signal
from glyphoxa.recall.index.talk_index import TalkIndex, ViewSnapshot
from glyphoxa.recall.question import RecallQuestion
from glyphoxa.recall.ranking.ranking import Ranking, RankingWeights, rank
from glyphoxa.recall.ranking.several import POOL, apart, wants_several
from glyphoxa.recall.ranking.time_of_view import fit_of
from glyphoxa.recall.temporal.fit import Fit
from glyphoxa.transcript.feed import FeedUtterance
from glyphoxa.transcript.ports import EVER, Between

_FITS: Final = 0.5
"""A turn that fits the time of the question so well is told with that reason."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A view in the light of a question.

    Attributes:
        changes: Of the index, before it was looked at.
        vector: Of the question, if it has one.
        is_about_it: Turns that have something of the question themselves.
        may_be_told: Turns that are not in the prompt already, and were said in the time that is asked for.
        between: That time.
        apart: See `RankingWeights`.
        is_of_then: The question tells days that are over.
    """

    index: TalkIndex
    changes: int
    viewer: Viewer
    question: RecallQuestion
    vector: NDArray[float32] | None
    seen: ViewSnapshot
    ranking: Ranking
    fit: Fit | None
    is_about_it: NDArray[bool_]
    may_be_told: NDArray[bool_]
    between: Between
    apart: float
    is_of_then: bool

    def items(self, limit: int) -> list[RecalledUtterance]:
        """The best that are about it, or beside what is."""
        return [self.recalled(at, score=score) for at, score in self.best(limit)]

    def best(self, limit: int) -> list[tuple[int, float]]:
        """Where those stand in the view, each with its score, 0 to 1. Not always falling: see `several`."""
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
        return self._said(at).text.casefold() == self.question.text.casefold()

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
        return self.index.said(int(self.seen.columns.rows[at]))


def rank_view(
    index: TalkIndex,
    viewer: Viewer,
    asked: RecallQuestion,
    vector: NDArray[float32] | None,
    *,
    exclude: Collection[UtteranceId],
    between: Between = EVER,
    weights: RankingWeights,
    min_cosine: float,
    now_ms: int,
) -> Ranked:
    """All that a viewer may know of, as it is now.

    Args:
        vector: Of the question, of unit length; None: by words alone.
        exclude: What is in the prompt already.
        between: What was said at another time is not told, and still leads to what is.
        min_cosine: With no word in common, less similar than this is not about the question.
        now_ms: Milliseconds since the Unix epoch.
    """
    changes = index.changes
    seen = index.look(viewer, asked.terms, vector)
    fit = fit_of(asked, index, viewer, seen, now_ms=now_ms)
    heard = index.speakers(viewer)
    ranking = rank(
        asked,
        seen,
        speakers=frozenset(heard[name] for name in asked.speakers if name in heard),
        time=None if fit is None else fit.prior,
        extra={name: signal(index, viewer, asked.terms, seen) for name, signal in weights.extra.items()},
        weights=weights,
    )
    may_be_told = ~np.isin(seen.columns.rows, index.rows_of(exclude))
    if between.after_ms is not None:
        may_be_told &= seen.columns.at_ms >= between.after_ms
    if between.before_ms is not None:
        may_be_told &= seen.columns.at_ms < between.before_ms
    about = _is_about_it(seen, min_cosine)
    story = asked.times.story
    is_of_then = asked.time.tells_what_is_over(now_ms=now_ms, story_day=None if story is None else story.today)
    return Ranked(
        *(index, changes, viewer, asked, vector, seen, ranking, fit, about, may_be_told, between),
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
