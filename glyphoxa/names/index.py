"""Which names may be meant by what was heard: the few that are worth a close look, out of tens of thousands.

A name has features: the pairs of adjacent letters of its spelling, and the pairs of adjacent signs of its
phonetic code ("^F FK KR RT TN N$"). A set of names is one integer, bit i for the name at place i; an index
holds such a set for each feature. What was heard is looked up by adding the sets of its own features, all
names at once, in a carry-save adder of integers; the names that share most features are compared one by one.
So a different first sound ("McCraden", Vukradin) or a lost syllable costs a few features, and not the name.

Sets are integers because these are immutable: an index with one name more shares all else with the old one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
from rapidfuzz.distance import JaroWinkler, Levenshtein

from glyphoxa.names.naming import Name
from glyphoxa.names.sound import Sounder

# How alike a name and what was heard are.


edit_similarity = Levenshtein.normalized_similarity


class Spelling(NamedTuple):
    """Letters, folded and without spaces, how they sound, sign by sign, and their phonetic codes, if they matter."""

    letters: str
    sound: str
    codes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Similarity:
    """Each figure 0 to 1.

    Attributes:
        sound: Levenshtein of how they sound, sign by sign; see `glyphoxa.names.sound`.
        edits: Levenshtein of the letters.
        spelling: Jaro-Winkler of the letters.
        same_sound: They have a phonetic code in common.
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
        return overall(self.sound, self.edits, self.spelling)


def overall(sound: float, edits: float, spelling: float) -> float:
    """One figure to rank names by; half of it is the sound."""
    return 0.5 * sound + 0.3 * edits + 0.2 * spelling


def similarity_in_spelling(heard: str, name: str, *, sound: float) -> float:
    """`Similarity.overall` of two spellings whose likeness in sound is known."""
    return overall(sound, edit_similarity(heard, name), JaroWinkler.similarity(heard, name))


SHORTEST = 4
"""Shorter names are like too much: they are known by their spelling alone."""
LONGEST = 64
"""So are longer ones, which nobody says."""
LEAST_LENGTH_RATIO = 0.6
_LOOKED_AT = 40
_CHUNK_BITS = 8
_CHUNK = 1 << _CHUNK_BITS


_Chunk = tuple[Name | None, ...]
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True, eq=False)
class NameIndex:
    """Immutable. Holds names of `SHORTEST` to `LONGEST` letters, and learned forms unless made of ordinary words.

    No answer depends on the order in which names came in.
    """

    _chunks: tuple[_Chunk, ...]
    """The names by place, cut into pieces so that a change copies one piece and not the list."""
    _letters: Mapping[str, int]
    _sounds: Mapping[str, int]
    _lengths: Mapping[int, int]
    _free: int
    """Places below the highest one that hold no name."""

    @classmethod
    def of(cls, names: Iterable[Name]) -> NameIndex:
        held = [name for name in names if _is_held(name)]
        padded: list[Name | None] = [*held, *[None] * (-len(held) % _CHUNK)]
        return cls(
            _chunks=tuple(tuple(padded[at : at + _CHUNK]) for at in range(0, len(padded), _CHUNK)),
            _letters=_sets(held, lambda name: _pairs(name.joined)),
            _sounds=_sets(held, lambda name: _pairs_of_all(name.codes)),
            _lengths=_sets(held, lambda name: (len(name.joined),)),
            _free=(1 << len(padded)) - (1 << len(held)),
        )

    @property
    def longest(self) -> int:
        """Letters of the longest name that is held; 0 without one."""
        return max(self._lengths, default=0)

    def changed(self, *, without: Iterable[Name], having: Iterable[Name]) -> NameIndex:
        """The index without some of its names and with others. This one stays as it is."""
        without = [name for name in without if _is_held(name)]
        having = [name for name in having if _is_held(name)]
        if not without and not having:
            return self
        draft = _Draft(self)
        for name in without:
            draft.remove(name)
        for name in having:
            draft.add(name)
        return draft.finished()

    def alike(
        self, heard: str, codes: tuple[str, ...], sounder: Sounder, *, limit: int, least_shared: float = 0.0
    ) -> list[Name]:
        """The names most alike by sound and spelling, whatever they begin with, best first.

        Args:
            heard: Folded, without spaces.
            codes: Its phonetic codes; none where the language has no coder.
            sounder: Writes out how it sounds; see `glyphoxa.names.sound`.
            least_shared: Of the features of what was heard, 0 to 1; a name that has fewer is not looked at.
        """
        candidates = self._looked_at(heard, codes, least_shared)
        if not candidates:
            return []
        sound = sounder(heard)
        by_sound = [(-edit_similarity(sound, name.sound), name.joined, name) for name in candidates]
        by_sound.sort(key=itemgetter(0, 1))
        # Half of the worth is in the sound: what does not sound alike need not be spelled out.
        scored = [
            (-similarity_in_spelling(heard, name.joined, sound=-unlike), joined, name)
            for unlike, joined, name in by_sound[: 2 * limit]
        ]
        scored.sort(key=itemgetter(0, 1))
        return [name for _, _, name in scored[:limit]]

    def _looked_at(self, heard: str, codes: tuple[str, ...], least_shared: float) -> list[Name]:
        """The names that share most features with what was heard; not many more than `_LOOKED_AT`."""
        length = len(heard)
        low, high = length * LEAST_LENGTH_RATIO, length / LEAST_LENGTH_RATIO
        eligible = 0
        for its_length, names in self._lengths.items():
            if low <= its_length <= high:
                eligible |= names
        if eligible.bit_count() > _LOOKED_AT or (least_shared and eligible):
            eligible = self._most_alike(heard, codes, eligible, least_shared)
        return _members(self._chunks, eligible)

    def _most_alike(self, heard: str, codes: tuple[str, ...], eligible: int, least_shared: float) -> int:
        letters, sounds = _pairs(heard), _pairs_of_all(codes)
        sets = [found for pair in letters if (found := self._letters.get(pair))]
        sets += [found for pair in sounds if (found := self._sounds.get(pair))]
        # Without a single common feature there is nothing to compare.
        least = max(1, math.ceil(least_shared * (len(letters) + len(sounds))))
        if len(sets) < least:
            return 0
        digits = _added(sets)
        eligible &= _in_at_least(digits, least)
        if eligible.bit_count() <= _LOOKED_AT:
            return eligible
        surely = 0
        for digit in reversed(digits):
            more = eligible & digit
            if (surely | more).bit_count() <= _LOOKED_AT:
                surely |= more
                eligible ^= more
            else:
                eligible = more
        # What is left has the same count. Cut by length, not by place: the answer must not depend on history.
        return surely | self._closest_in_length(eligible, len(heard), _LOOKED_AT - surely.bit_count())

    def _closest_in_length(self, names: int, length: int, room: int) -> int:
        chosen = 0
        for distance in range(length):
            lengths = self._lengths.get(length - distance, 0) | self._lengths.get(length + distance, 0)
            more = chosen | (names & lengths)
            if more.bit_count() > room and (chosen or more.bit_count() > 4 * _LOOKED_AT):
                return chosen
            chosen = more
        return chosen


class _Draft:
    """A copy of an index on which changes are made before it is frozen again."""

    def __init__(self, index: NameIndex) -> None:
        self._chunks = list(index._chunks)
        self._letters = dict(index._letters)
        self._sounds = dict(index._sounds)
        self._lengths = dict(index._lengths)
        self._free = index._free

    def add(self, name: Name) -> None:
        if not self._free:
            self._free = ((1 << _CHUNK) - 1) << (len(self._chunks) * _CHUNK)
            self._chunks.append((None,) * _CHUNK)
        bit = self._free & -self._free
        self._free ^= bit
        self._put(bit.bit_length() - 1, name)
        self._flip(name, bit)

    def remove(self, name: Name) -> None:
        at = self._place(name)
        bit = 1 << at
        self._free |= bit
        self._put(at, None)
        self._flip(name, bit)

    def finished(self) -> NameIndex:
        return NameIndex(tuple(self._chunks), self._letters, self._sounds, self._lengths, self._free)

    def _flip(self, name: Name, bit: int) -> None:
        _flip(self._letters, _pairs(name.joined), bit)
        _flip(self._sounds, _pairs_of_all(name.codes), bit)
        _flip(self._lengths, (len(name.joined),), bit)

    def _place(self, name: Name) -> int:
        suspects = self._lengths[len(name.joined)]
        for pair in _pairs(name.joined):
            suspects &= self._letters[pair]
        # Other names are left only if they have all these pairs and no letter more: seldom any.
        while suspects:
            at = (suspects & -suspects).bit_length() - 1
            held = self._chunks[at >> _CHUNK_BITS][at & (_CHUNK - 1)]
            if held is not None and held.joined == name.joined:
                return at
            suspects &= suspects - 1
        raise KeyError(name.text)

    def _put(self, at: int, name: Name | None) -> None:
        number, place = at >> _CHUNK_BITS, at & (_CHUNK - 1)
        chunk = self._chunks[number]
        self._chunks[number] = (*chunk[:place], name, *chunk[place + 1 :])


def _is_held(name: Name) -> bool:
    # What was heard for a name once is heard again a little differently ("Gobblegool", "Gobblegul").
    return not (name.kind == "learned" and name.is_ordinary) and SHORTEST <= len(name.joined) <= LONGEST


def _pairs(text: str) -> set[str]:
    """Adjacent signs, its start and its end included.

    >>> sorted(_pairs("abc"))
    ['^a', 'ab', 'bc', 'c$']
    """
    return {one + other for one, other in zip("^" + text, text + "$", strict=True)}


def _pairs_of_all(codes: tuple[str, ...]) -> set[str]:
    return _pairs(codes[0]) if len(codes) == 1 else {pair for code in codes for pair in _pairs(code)}


def _flip(sets: dict[_Key, int], keys: Iterable[_Key], bit: int) -> None:
    for key in keys:
        flipped = sets.get(key, 0) ^ bit
        if flipped:
            sets[key] = flipped
        else:
            del sets[key]


def _sets(names: Sequence[Name], keys_of: Callable[[Name], Iterable[_Key]]) -> dict[_Key, int]:
    places: dict[_Key, list[int]] = {}
    for at, name in enumerate(names):
        for key in keys_of(name):
            places.setdefault(key, []).append(at)
    return {key: _as_set(listed) for key, listed in places.items()}


def _as_set(places: list[int]) -> int:
    bits = bytearray((places[-1] >> 3) + 1)
    for at in places:
        bits[at >> 3] |= 1 << (at & 7)
    return int.from_bytes(bits, "little")


def _added(sets: list[int]) -> list[int]:
    """In how many of the sets each place is, as binary digits of all places: the ones first.

    >>> _added([0b11, 0b01, 0b01])
    [3, 1]
    """
    digits = [0]
    one_by_one = iter(sets)
    for first, second in zip_longest(one_by_one, one_by_one, fillvalue=0):
        ones = digits[0]
        differ = ones ^ first
        digits[0] = differ ^ second
        carried = (ones & first) | (differ & second)
        at = 1
        while carried:
            if at == len(digits):
                digits.append(carried)
                break
            digit = digits[at]
            digits[at] = digit ^ carried
            carried &= digit
            at += 1
    return digits


def _in_at_least(digits: list[int], least: int) -> int:
    """The places that are in so many of the sets that were added.

    >>> _in_at_least([0b011, 0b101], 2)
    5
    """
    more, equal = 0, -1
    for at in range(max(len(digits), least.bit_length()) - 1, -1, -1):
        digit = digits[at] if at < len(digits) else 0
        if least >> at & 1:
            equal &= digit
        else:
            more |= equal & digit
            equal &= ~digit
    return more | equal


def _members(chunks: Sequence[_Chunk], names: int) -> list[Name]:
    """The names of a set. Most of it is empty: only pieces of 64 places that hold any are gone through."""
    pieces = np.frombuffer(names.to_bytes(((names.bit_length() + 63) >> 6) << 3, "little"), dtype="<u8")
    used = pieces.nonzero()[0]
    found: list[Name] = []
    for at, piece in zip(used.tolist(), pieces[used].tolist(), strict=True):
        chunk = chunks[at >> (_CHUNK_BITS - 6)]
        before = (at << 6 & (_CHUNK - 1)) - 1
        left = piece
        while left:
            bit = left & -left
            left ^= bit
            name = chunk[before + bit.bit_length()]
            if name is not None:
                found.append(name)
    return found
