"""The second hop: what the best turns name leads to turns that share no word with the question.

"Where does Tamsin's brother live?": one turn says that Joren is her brother, another where Joren lives. What leads
there are rare words, names most of all: those of the first hits that only few other turns have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.knowledge import Signal, Viewer
from glyphoxa.recall.index.talk_index import TalkIndex, ViewSnapshot
from glyphoxa.recall.ranking.ranking import RankingWeights
from glyphoxa.recall.ranking.signals import SCALE, by_words, rarity
from glyphoxa.recall.terms import SearchTerms

WEIGHT: Final = 1.0
"""As much as any signal of the ranking."""
_FIRST_HITS: Final = 3
_FEWEST, _MOST = 2, 6
"""In so many turns a word must be: one alone leads nowhere, and a common one everywhere."""


def with_second_hop(weights: RankingWeights, weight: float = WEIGHT) -> RankingWeights:
    """The same ranking with this signal. It has been measured to add nothing to the others."""
    return replace(
        weights,
        by_words={**weights.by_words, Signal.SECOND_HOP: weight},
        by_words_and_meaning={**weights.by_words_and_meaning, Signal.SECOND_HOP: weight},
        extra={**weights.extra, Signal.SECOND_HOP: second_hop},
    )


def second_hop(index: TalkIndex, viewer: Viewer, asked: SearchTerms, seen: ViewSnapshot) -> NDArray[float32]:
    """The summed rarity of the words that lead to each turn, float32 of shape (n,)."""
    found = np.zeros(len(seen), float32)
    if not seen.matches:
        return found
    words = by_words(seen)
    hits = np.argpartition(-words, min(_FIRST_HITS, len(words) - 1))[:_FIRST_HITS]
    said = [index.said(int(seen.columns.rows[at])) for at in hits if words[at] > 0]
    terms = {term for one in said for term in index.terms.of_turn("", one.text)} - set(asked.words)
    for match in index.look(viewer, SearchTerms(tuple(sorted(terms)))).matches:
        if _FEWEST <= len(match.places) <= _MOST:
            places = match.places[match.places < len(seen)]  # talk may have grown since
            found[places] += rarity(match, len(seen))
    return found / np.float32(SCALE)
