"""The first design of the name matcher, as a baseline for measurements. It rewrites ordinary speech.

For windows of at most the word count of the longest name, longest first and from the left: the names that share a
phonetic code (pooled over their words) are ranked by the best of three similarities (whole, without spaces, best pair
of words). The best one is taken from 0.70 on. Without such a name, plain similarity to all names counts from 0.85 on.
Double Metaphone comes from metaphone, the other codes come from jellyfish and the similarities from rapidfuzz, except
Smith-Waterman, which no small library has.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from rapidfuzz.distance import DamerauLevenshtein, Jaro, JaroWinkler, Levenshtein

from glyphoxa.domain.heard import HeardWord, PhoneticCode, Similarity
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.words import Word
from glyphoxa.names.corrector import Corrector, Match
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Name
from glyphoxa.names.sound import coder_of


def smith_waterman(one: str, other: str) -> float:
    """Return the score of the best local alignment of two words, as a share of the shorter one, 0 to 1.

    Source: T. F. Smith and M. S. Waterman, J. Mol. Biol. 147 (1981) 195-197, with the weights of their example: 1 for
    equal letters, -1/3 for others, and -(1 + k/3) for a gap of k letters.
    """
    rows = [[0.0] * (len(other) + 1)]
    for letter in one:
        row = [0.0]
        for at, theirs in enumerate(other, start=1):
            paired = rows[-1][at - 1] + (1 if letter == theirs else -1 / 3)
            gaps = [rows[-k][at] - 1 - k / 3 for k in range(1, len(rows) + 1)]
            gaps += [row[-k] - 1 - k / 3 for k in range(1, at + 1)]
            row.append(max(0.0, paired, *gaps))
        rows.append(row)
    return max(map(max, rows)) / max(1, min(len(one), len(other)))


_SIMILARITIES: Final[Mapping[Similarity, Callable[[str, str], float]]] = {
    "jaro_winkler": JaroWinkler.similarity,
    "jaro": Jaro.similarity,
    "damerau_levenshtein": DamerauLevenshtein.normalized_similarity,
    "levenshtein": Levenshtein.normalized_similarity,
    "smith_waterman": smith_waterman,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """The settings of the design.

    Attributes:
        phonetic_threshold: Minimum similarity of spellings that sound alike, 0 to 1.
        fuzzy_threshold: The same for names that do not sound alike.
        code: The phonetic code, at most `code_length` letters of it.
        similarity: The similarity of spellings. That of the edit distances is the share of letters not edited.
    """

    phonetic_threshold: float = 0.70
    fuzzy_threshold: float = 0.85
    code: PhoneticCode = "double_metaphone"
    code_length: int = 4
    similarity: Similarity = "jaro_winkler"


AS_DESIGNED: Final = Rule()


def first_corrector(gazetteer: Gazetteer, rule: Rule = AS_DESIGNED) -> Corrector:
    return Corrector(gazetteer, matcher=PlainMatcher(gazetteer, rule), most_passes=1)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A name with precomputed codes."""

    name: Name
    spaced: str
    codes: frozenset[str]


class PlainMatcher:
    """Finds names in words. Immutable, so that threads may share it."""

    def __init__(self, gazetteer: Gazetteer, rule: Rule) -> None:
        self._rule = rule
        self._coder = coder_of(rule.code, length=rule.code_length)
        self._similarity = _SIMILARITIES[rule.similarity]
        self._prepared = [
            _Prepared(name, " ".join(name.words), self._codes(name.words))
            for name in gazetteer.names
            if name.kind in ("name", "alias")
        ]
        self._widest = max((len(each.name.words) for each in self._prepared), default=0)

    def choose(
        self, spoken: Sequence[Word], heard: Sequence[HeardWord] = (), nearby: Container[EntityId] = frozenset()
    ) -> list[Match]:
        """Ignores confidences and scenes."""
        taken: set[int] = set()
        chosen: list[Match] = []
        for width in range(min(self._widest, len(spoken)), 0, -1):
            for first in range(len(spoken) - width + 1):
                covered = range(first, first + width)
                if taken.intersection(covered):
                    continue
                found = self._match([word.folded for word in spoken[first : first + width]])
                if found is not None:
                    name, score = found
                    tail = spoken[first + width - 1].tail
                    chosen.append(Match(first, first + width - 1, name, tail, score, score, reason="documents"))
                    taken.update(covered)
        return sorted(chosen, key=lambda match: match.first)

    def _match(self, heard: list[str]) -> tuple[Name, float] | None:
        codes, spaced = self._codes(heard), " ".join(heard)
        same_sound = [each for each in self._prepared if each.codes & codes]
        if same_sound:
            alike, least = [(self._of(heard, each), each) for each in same_sound], self._rule.phonetic_threshold
        else:
            alike = [(self._similarity(spaced, each.spaced), each) for each in self._prepared]
            least = self._rule.fuzzy_threshold
        score, best = max(alike, key=itemgetter(0), default=(0.0, None))
        return (best.name, score) if best is not None and score >= least else None

    def _codes(self, parts: Sequence[str]) -> frozenset[str]:
        return frozenset(code for part in parts for code in self._coder(part))

    def _of(self, heard: Sequence[str], each: _Prepared) -> float:
        whole = self._similarity(" ".join(heard), each.spaced)
        joined = self._similarity("".join(heard), each.name.joined)
        return max(whole, joined, *(self._similarity(one, other) for one in heard for other in each.name.words))
