"""Candidate names for what was heard: the few worth a close comparison, out of tens of thousands.

The features of a name are the pairs of adjacent letters of its spelling, and the pairs of adjacent symbols of its
phonetic codes ("^F FK KR RT TN N$"). The names that share most features with what was heard are compared one by one. So
a different first sound ("McCraden", Vukradin) or a lost syllable costs only a few features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy import int64
from numpy.typing import NDArray
from rapidfuzz.distance import JaroWinkler, Levenshtein

from glyphoxa.names.naming import Name
from glyphoxa.names.sound import Sounder

edit_similarity = Levenshtein.normalized_similarity
SHORTEST = 4
"""Shorter names are too similar to each other: they match by spelling only."""
LONGEST = 64
"""Longer names match by spelling only; nobody says them."""
MIN_LENGTH_RATIO = 0.6
_LOOKED_AT = 40

Places = NDArray[int64]


class Spelling(NamedTuple):
    """Folded letters without spaces, their sound as symbols, and their phonetic codes if needed."""

    letters: str
    sound: str
    codes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Similarity:
    """Similarity of a name and what was heard. Each figure 0 to 1.

    Attributes:
        sound: Levenshtein of the sounds, by symbol; see `glyphoxa.names.sound`.
        edits: Levenshtein of the letters.
        spelling: Jaro-Winkler of the letters.
        same_sound: They share a phonetic code.
    """

    sound: float
    edits: float
    spelling: float
    same_sound: bool

    @classmethod
    def of(cls, heard: Spelling, name: Spelling) -> Similarity:
        return cls(
            edit_similarity(heard.sound, name.sound),
            edit_similarity(heard.letters, name.letters),
            JaroWinkler.similarity(heard.letters, name.letters),
            any(code in name.codes for code in heard.codes),
        )

    @property
    def overall(self) -> float:
        """One figure to rank names by; sound counts half."""
        return 0.5 * self.sound + 0.3 * self.edits + 0.2 * self.spelling


def likeness(letters: str, sound: str, name: Name) -> float:
    """Return `Similarity.overall` of a name and what was heard, given folded letters and their sound."""
    return Similarity.of(Spelling(letters, sound), Spelling(name.joined, name.sound)).overall


class NameIndex:
    """Immutable. Contains names of `SHORTEST` to `LONGEST` letters, and learned forms unless made of ordinary words.

    Results do not depend on the order of the names.
    """

    def __init__(self, names: Iterable[Name]) -> None:
        self._names = sorted(filter(_is_held, names), key=attrgetter("joined"))
        self._lengths = np.array([len(name.joined) for name in self._names], dtype=int64)
        self._letters = _places_by_feature(self._names, lambda name: _pairs(name.joined))
        """Positions of the names with a pair of letters; `_sounds` of phonetic symbols."""
        self._sounds = _places_by_feature(self._names, lambda name: _pairs_of_all(name.codes))

    @property
    def longest(self) -> int:
        """Letters of the longest indexed name; 0 if there is none."""
        return int(self._lengths.max(initial=0))

    def alike(
        self, heard: str, codes: tuple[str, ...], sounder: Sounder, *, limit: int, least_shared: float = 0.0
    ) -> list[Name]:
        """The names most similar in sound and spelling, whatever their first letter, best first.

        Args:
            heard: Folded, without spaces.
            codes: Its phonetic codes; empty if the language has no coder.
            sounder: Converts letters to sounds; see `glyphoxa.names.sound`.
            least_shared: Minimum share of the heard features, 0 to 1, that a name must have.
        """
        candidates = self._looked_at(heard, codes, least_shared)
        if not candidates:
            return []
        sound = sounder(heard)
        # Sound counts half: if it differs too much, the spelling need not be compared.
        candidates.sort(key=lambda name: (-edit_similarity(sound, name.sound), name.joined))
        return sorted(candidates[: 2 * limit], key=lambda name: (-likeness(heard, sound, name), name.joined))[:limit]

    def _looked_at(self, heard: str, codes: tuple[str, ...], least_shared: float) -> list[Name]:
        """The names of similar length that share most features with what was heard, at most `_LOOKED_AT`."""
        letters, sounds = _pairs(heard), _pairs_of_all(codes)
        sets = [found for pair in letters if (found := self._letters.get(pair)) is not None]
        sets += [found for pair in sounds if (found := self._sounds.get(pair)) is not None]
        # Without a common feature there is nothing to compare.
        least = max(1, math.ceil(least_shared * (len(letters) + len(sounds))))
        if len(sets) < least:
            return []
        shared = np.bincount(np.concatenate(sets), minlength=len(self._names))
        low, high = len(heard) * MIN_LENGTH_RATIO, len(heard) / MIN_LENGTH_RATIO
        lengths = self._lengths
        found = np.flatnonzero((shared >= least) & (lengths >= low) & (lengths <= high))
        if len(found) > _LOOKED_AT:
            order = np.lexsort((np.abs(lengths[found] - len(heard)), -shared[found]))
            found = found[order[:_LOOKED_AT]]
        return [self._names[place] for place in found.tolist()]


def _is_held(name: Name) -> bool:
    # A learned form may recur with small differences ("Gobblegool", "Gobblegul").
    return not (name.kind == "learned" and name.is_ordinary) and SHORTEST <= len(name.joined) <= LONGEST


def _pairs(text: str) -> set[str]:
    """Adjacent characters, including start and end.

    >>> sorted(_pairs("abc"))
    ['^a', 'ab', 'bc', 'c$']
    """
    return {one + other for one, other in zip("^" + text, text + "$", strict=True)}


def _pairs_of_all(codes: tuple[str, ...]) -> set[str]:
    return _pairs(codes[0]) if len(codes) == 1 else {pair for code in codes for pair in _pairs(code)}


def _places_by_feature(names: Sequence[Name], features_of: Callable[[Name], Iterable[str]]) -> dict[str, Places]:
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        for feature in features_of(name):
            places.setdefault(feature, []).append(place)
    return {feature: np.array(listed, dtype=int64) for feature, listed in places.items()}
