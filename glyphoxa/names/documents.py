"""The first design of the name matcher, as a baseline for measurements. It rewrites ordinary speech.

For windows of at most the word count of the longest name, longest first and from the left: the names that
share a Double Metaphone code (four letters, pooled over their words) are ranked by the best of three
Jaro-Winkler similarities (whole, without spaces, best pair of words) and the best one is taken from 0.70 on;
without such a name, plain similarity to all names counts from 0.85 on. The similarity is jellyfish's, the
library that the design was written for.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from jellyfish import jaro_winkler_similarity

from glyphoxa.domain.heard import HeardWord
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.words import Word
from glyphoxa.names.corrector import Corrector, Match
from glyphoxa.names.gazetteer import Gazetteer, Name
from glyphoxa.names.sound import coder_for

_CODE_LENGTH = 4
_PHONETIC_THRESHOLD, _FUZZY_THRESHOLD = 0.70, 0.85


def documents_corrector(
    gazetteer: Gazetteer,
    *,
    phonetic_threshold: float = _PHONETIC_THRESHOLD,
    fuzzy_threshold: float = _FUZZY_THRESHOLD,
) -> Corrector:
    """
    Args:
        phonetic_threshold: Minimum Jaro-Winkler similarity of spellings that sound alike, 0 to 1.
        fuzzy_threshold: The same for names that do not sound alike.
    """
    matcher = PlainMatcher(gazetteer, phonetic_threshold, fuzzy_threshold)
    return Corrector(gazetteer, matcher=matcher, most_passes=1)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A name with precomputed codes."""

    name: Name
    spaced: str
    codes: frozenset[str]


class PlainMatcher:
    def __init__(self, gazetteer: Gazetteer, phonetic_threshold: float, fuzzy_threshold: float) -> None:
        self._phonetic_threshold = phonetic_threshold
        self._fuzzy_threshold = fuzzy_threshold
        self._coder = coder_for("en", code_length=_CODE_LENGTH)
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
        codes = self._codes(heard)
        same_sound = [each for each in self._prepared if each.codes & codes]
        best = max(
            ((_similarity(heard, each), each.name) for each in same_sound), key=lambda found: found[0], default=None
        )
        if best is not None and best[0] >= self._phonetic_threshold:
            return best[1], best[0]
        if same_sound:
            return None
        spaced = " ".join(heard)
        fuzzy = max(
            ((jaro_winkler_similarity(spaced, each.spaced), each.name) for each in self._prepared),
            key=lambda found: found[0],
            default=None,
        )
        return (fuzzy[1], fuzzy[0]) if fuzzy is not None and fuzzy[0] >= self._fuzzy_threshold else None

    def _codes(self, parts: Sequence[str]) -> frozenset[str]:
        if self._coder is None:
            return frozenset()
        return frozenset(code for part in parts for code in self._coder(part))


def _similarity(heard: Sequence[str], each: _Prepared) -> float:
    whole = jaro_winkler_similarity(" ".join(heard), each.spaced)
    joined = jaro_winkler_similarity("".join(heard), each.name.joined)
    return max(whole, joined, *(jaro_winkler_similarity(one, other) for one in heard for other in each.name.words))
