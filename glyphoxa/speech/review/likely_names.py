"""How like each name of a campaign some words are, by spelling and by sound."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler, Levenshtein

from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.language.words import fold, words
from glyphoxa.speech.names.gazetteer import Gazetteer, Name
from glyphoxa.speech.review.doubt import Span

LEAST_LIKENESS = 0.5
LEAST_FOR_WORDS = 0.7
"""For words that all stand in a dictionary: they may well be what was said."""
LEAST_OF_WORDS = 0.8
"""For names that are made of dictionary words ("Hope"): hearing such words is no sign of the name."""
MARGIN = 0.1
"""Another name may be more like by so much; beyond it, that one is meant or none.

Small models replace whatever they are shown, so these bound the damage whatever a model says. Of 1,114 ordinary words
in clean sentences (tuning half of the spoken set) 81 % are like some name by 0.5, 8 % by 0.7; of the 294 wrong forms
that the stage by sound misses, the right name passes for 85 of 107 with an odd word and 57 of 187 without.
"""

MOST_NAMES = 60
_MOST_QUERIES = 8
_PER_QUERY = 8

Similarities = np.ndarray[Any, np.dtype[np.float32]]


class LikelyNames:
    """The names of one gazetteer, laid out for comparison with all of them at once. Built once for a gazetteer."""

    def __init__(self, gazetteer: Gazetteer) -> None:
        self.gazetteer = gazetteer
        self._names = [name for name in gazetteer.names if name.kind != "learned"]
        self._at = {name.joined: at for at, name in enumerate(self._names)}
        self._spellings = [name.joined for name in self._names]
        self._codes = [name.codes[0] if name.codes else "" for name in self._names]
        self._has_code = np.array([bool(code) for code in self._codes], dtype=bool)
        self._coder = gazetteer.coder

    def likeness(self, heard: str) -> Similarities:
        """How like each name the words are, 0 to 1, in the order of the names."""
        letters = fold(heard)
        spelling = _compared(letters, self._spellings, JaroWinkler.similarity)
        edits = _compared(letters, self._spellings, Levenshtein.normalized_similarity)
        by_letters = (spelling + edits) * np.float32(0.5)
        codes = self._coder(letters) if self._coder is not None else ()
        if not codes or not self._names:
            return by_letters
        sound = np.max([_compared(code, self._codes, Levenshtein.normalized_similarity) for code in codes], axis=0)
        return np.where(self._has_code, 0.6 * by_letters + 0.4 * sound, by_letters).astype(np.float32)

    def supports(self, heard: str, name: Name) -> float | None:
        """How like the name the words are, if it may be meant by them; None if it may not."""
        at = self._at.get(name.joined)
        if at is None:
            return None
        likeness = self.likeness(heard)
        its_own = float(likeness[at])
        is_enough = its_own >= self._least(heard, name) and its_own >= float(likeness.max()) - MARGIN
        return its_own if is_enough else None

    def _least(self, heard: str, name: Name) -> float:
        if name.is_ordinary:
            return LEAST_OF_WORDS
        vocabulary = self.gazetteer.vocabulary
        are_ordinary = all(vocabulary.is_ordinary(word.folded) for word in words(heard))
        return LEAST_FOR_WORDS if are_ordinary else LEAST_LIKENESS

    def pick(
        self,
        text: str,
        doubtful: Sequence[Span],
        *,
        nearby: Container[EntityId] = frozenset(),
        limit: int = MOST_NAMES,
    ) -> list[str]:
        """The names worth telling a model about: those most like the doubtful words, best first, then those of the
        scene; at most `limit`.
        """
        scores: dict[int, float] = {}
        for heard in _queries(text, doubtful):
            likeness = self.likeness(heard)
            for at in np.argsort(-likeness, kind="stable")[:_PER_QUERY].tolist():
                scores[at] = max(float(likeness[at]), scores.get(at, 0.0))
        likely = sorted(scores, key=lambda at: (-scores[at], at))
        here = (at for at, name in enumerate(self._names) if name.kind == "name" and name.entity_id in nearby)
        return list(dict.fromkeys(self._names[at].text for at in (*likely, *here)))[:limit]


def _compared(one: str, others: Sequence[str], scorer: Any) -> Similarities:
    if not others:
        return np.zeros(0, dtype=np.float32)
    compared: Similarities = process.cdist([one], others, scorer=scorer, dtype=np.float32)[0]
    return compared


def _queries(text: str, doubtful: Sequence[Span]) -> Iterator[str]:
    """What names are compared with: whole spans first, then their words."""
    spans = [[w for w in words(text) if span.start <= w.start and w.end <= span.end] for span in doubtful]
    whole = ["".join(word.folded for word in spoken) for spoken in spans]
    single = [word.folded for spoken in spans if len(spoken) > 1 for word in spoken if len(word.folded) >= 4]
    yield from [query for query in dict.fromkeys((*whole, *single)) if query][:_MOST_QUERIES]
