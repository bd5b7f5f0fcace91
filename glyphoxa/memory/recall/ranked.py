"""A view in the light of a question: what of it is best, and how each turn is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy import bool_, float32
from numpy.typing import NDArray

from glyphoxa.domain.knowledge import Viewer
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.ports.talk_feed import Said
from glyphoxa.memory.recall.asked import Question
from glyphoxa.memory.recall.ranking import Ranking
from glyphoxa.memory.recall.several import POOL, apart, wants_several
from glyphoxa.memory.recall.talk_index import Seen, TalkIndex
from glyphoxa.memory.recall.when.fit import Fit

_FITS: Final = 0.5
"""A turn that fits the time of the question so well is told with that reason."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A view in the light of a question.

    Attributes:
        changes: Of the index, before it was looked at.
        vector: Of the question, if it has one.
        is_about_it: Turns that have something of the question themselves.
        may_be_told: Turns that are not in the prompt already.
        apart: See `Weights`.
    """

    index: TalkIndex
    changes: int
    viewer: Viewer
    question: Question
    vector: NDArray[float32] | None
    seen: Seen
    ranking: Ranking
    fit: Fit | None
    is_about_it: NDArray[bool_]
    may_be_told: NDArray[bool_]
    apart: float

    def items(self, limit: int) -> list[Recalled]:
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

    def recalled(self, at: int, *, score: float = 1.0) -> Recalled:
        said = self._said(at)
        cosines = self.seen.cosines
        reason = f"witnessed in session {said.session_id}"
        if self.fit is not None and self.fit.scores[at] >= _FITS:
            reason = f"{reason}; {self.fit.reason}"
        shares = self.ranking.shares.items()
        return Recalled(
            text=f"{'You' if str(said.speaker_id) == self.viewer else said.speaker_name} said: {said.text}",
            source="said",
            score=score,
            session_id=said.session_id,
            utterance_id=said.utterance_id,
            reason=reason,
            at_ms=said.at_ms,
            speaker_id=said.speaker_id,
            similarity=None if cosines is None or np.isnan(cosines[at]) else float(cosines[at]),
            signals={name: round(float(values[at]), 4) for name, values in shares if values[at]},
        )

    def _said(self, at: int) -> Said:
        return self.index.said(int(self.seen.columns.rows[at]))


def _with_neighbours(found: NDArray[bool_], seen: Seen) -> NDArray[bool_]:
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
