"""The names in a text: one index of spellings, one scan over it, and the rules of a reading as arguments.

A spelling is a name in folded letters without spaces (`glyphoxa.names.naming`), so case, accents and spaces do not
matter. It may have several bearers; the caller decides which of them count, so that a name the caller ignores hides no
other and corrects no typo. Sounds are compared in `glyphoxa.names.gazetteer`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final, TypeVar

from rapidfuzz import process
from rapidfuzz.distance import OSA

from glyphoxa.domain.ids import EntityId
from glyphoxa.language.words import Word, words
from glyphoxa.names.naming import Entry, Name, Speech, names_of

_SHORTEST_PLURAL: Final = 4
"""Letters of a name that may have a plural or lose one."""
_BEGINNING: Final = 4
"""Letters by which most words are known not to begin a name."""
_REACH: Final = 8
"""Words between the start of a name and a typo in it."""

IsWanted = Callable[[EntityId], bool]
_Held = TypeVar("_Held")


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a text; case, spaces and accents may differ.

    Attributes:
        first: Index of its first word.
        last: Index of its last word, inclusive.
        start: First character; `end` is one past the last, including a possessive ending.
        is_typo: The text spells it with one letter different.
    """

    name: Name
    first: int
    last: int
    start: int
    end: int
    is_typo: bool = False

    def is_inside(self, other: Mention) -> bool:
        """Return whether it is a part of a longer one."""
        is_as_long = (self.first, self.last) == (other.first, other.last)
        return other.first <= self.first and self.last <= other.last and not is_as_long


class NameReader:
    """An index of names to look for. Changes come from one thread; a change takes time for each name of its entity.

    Args:
        names: Those that never change; the names of one spelling keep their order.

    Attributes:
        claims: All names with a spelling.
    """

    def __init__(self, speech: Speech, names: Iterable[Name] = ()) -> None:
        self._speech = speech
        self._put: dict[EntityId, tuple[Name, ...]] = {}
        self.claims: dict[str, tuple[Name, ...]] = {}
        for name in names:
            self.claims[name.joined] = (*self.claims.get(name.joined, ()), name)
        self._spellings = sorted(self.claims)
        self._beginnings = {joined[:n] for joined in self.claims for n in range(1, _BEGINNING + 1)}
        self._typos = Typos()

    def put(self, entry: Entry) -> None:
        """Set all names of an entity. They may be written with a typo."""
        self.remove(entry.entity_id)
        self._put[entry.entity_id] = names_of(entry, self._speech)
        for name in self._put[entry.entity_id]:
            if name.joined not in self.claims:
                insort(self._spellings, name.joined)
                self._beginnings.update(name.joined[:n] for n in range(1, _BEGINNING + 1))
            self.claims[name.joined] = (*self.claims.get(name.joined, ()), name)
            self._typos.add({*name.words, name.joined})

    def remove(self, entity_id: EntityId) -> None:
        """Remove the names that were `put`; does nothing if there are none."""
        for name in self._put.pop(entity_id, ()):
            self._typos.remove({*name.words, name.joined})
            others = tuple(other for other in self.claims.pop(name.joined) if other.entity_id != entity_id)
            if others:
                self.claims[name.joined] = others
            else:
                del self._spellings[bisect_left(self._spellings, name.joined)]

    def spelled_from(
        self,
        spoken: Sequence[Word],
        first: int,
        held: Callable[[str], _Held | None],
        *,
        plural: Callable[[str], _Held | None],
        singular: Callable[[str], _Held | None] | None = None,
    ) -> Iterable[tuple[int, _Held]]:
        """Yield what begins at this word, each with the index of its last word; shorter ones first.

        The last word may also be in the possessive.

        Args:
            held: Returns what a spelling stands for; None for nothing.
            plural: The same for a name that the text has in the plural: one of two "Zhentarims" is a Zhentarim.
            singular: The same for one that the text has in the singular: one of the "failed messages" is a failed
                message. Only ordinary words have one: Mara is none of the "Maras".
        """
        if spoken[first].folded[:_BEGINNING] not in self._beginnings:
            return ()
        return self._scan(spoken, first, held, plural, singular)

    def _scan(
        self,
        spoken: Sequence[Word],
        first: int,
        held: Callable[[str], _Held | None],
        plural: Callable[[str], _Held | None],
        singular: Callable[[str], _Held | None] | None,
    ) -> Iterator[tuple[int, _Held]]:
        spellings = self._spellings
        stem = ""
        for last in range(first, len(spoken)):
            word = spoken[last]
            if last > first and not word.joins:
                return
            bare = stem + word.folded
            found = held(stem + word.full) if word.tail else None
            if found is None:
                found = held(bare)
            if found is None and len(bare) >= _SHORTEST_PLURAL:
                if bare.endswith("s"):
                    found = plural(bare[:-1]) if len(bare) > _SHORTEST_PLURAL else None
                elif singular is not None and self._speech.vocabulary.is_ordinary(word.folded):
                    found = singular(bare + "s")
            if found is not None:
                yield last, found
            stem += word.full
            following = bisect_right(spellings, stem)
            if following == len(spellings) or not spellings[following].startswith(stem):
                return

    def mentions(self, text: str, is_wanted: IsWanted) -> list[Mention]:
        """Return the names in a text by position, longer ones first, then by bearer; also names within names.

        One typo is forgiven in one word of a name (`Typos`). An ordinary word is not a typo, unless it is written as a
        name.

        Args:
            is_wanted: Selects bearers. Names of others change nothing.
        """
        spoken = _with_tight_joins(words(text), text)
        found: dict[tuple[EntityId, int, int], Mention] = {}
        named: set[int] = set()
        for first in range(len(spoken)):
            for last, names in self._borne_from(spoken, first, is_wanted):
                named.update(range(first, last + 1))
                for name in names:
                    found[name.entity_id, first, last] = _mention(name, spoken, first, last)
        is_shouted = text.isupper()
        for at, word in enumerate(spoken):
            if at not in named and self._may_be_a_typo(word, is_shouted=is_shouted):
                for meant in self._meant_by(word):
                    for each in self._mentions_over(spoken, at, meant, is_wanted):
                        found.setdefault((each.name.entity_id, each.first, each.last), each)
        return sorted(found.values(), key=lambda each: (each.first, -each.last, each.name.entity_id))

    def _mentions_over(self, spoken: Sequence[Word], at: int, meant: str, is_wanted: IsWanted) -> Iterator[Mention]:
        """Yield the names over one place if another word were there."""
        begin = max(0, at - _REACH)
        put_right = spoken[at]._replace(folded=meant, full=meant, tail="")
        window = [*spoken[begin:at], put_right, *spoken[at + 1 : at + 1 + _REACH]]
        for first in range(at - begin + 1):
            for last, names in self._borne_from(window, first, is_wanted):
                if begin + last >= at:
                    for name in names:
                        yield _mention(name, spoken, begin + first, begin + last, is_typo=True)

    def _borne_from(
        self, spoken: Sequence[Word], first: int, is_wanted: IsWanted
    ) -> Iterator[tuple[int, Sequence[Name]]]:
        """Yield the names that begin at this word, those with the same spelling together."""

        def borne(spelling: str) -> Sequence[Name] | None:
            names = [name for name in self.claims.get(spelling, ()) if is_wanted(name.entity_id)]
            # "Marek" is the bearer of that name, not everybody whose name contains it.
            return [name for name in names if name.kind != "short"] or names or None

        for last, names in self.spelled_from(spoken, first, borne, plural=borne, singular=borne):
            if not any(name.is_faint for name in names) or is_written_as_a_name(spoken, first, last):
                yield last, names

    def _may_be_a_typo(self, word: Word, *, is_shouted: bool) -> bool:
        if not may_bear_a_typo(word.folded):
            return False
        is_written_as_name = word.is_capital and not word.opens and not is_shouted
        return is_written_as_name or not self._speech.vocabulary.is_ordinary(word.full)

    def _meant_by(self, word: Word) -> list[str]:
        """Return the words it may misspell, also with the possessive as a part of the name ("Marek's wife")."""
        return sorted({*self._typos.meant_by(word.folded), *(self._typos.meant_by(word.full) if word.tail else ())})


def _mention(name: Name, spoken: Sequence[Word], first: int, last: int, *, is_typo: bool = False) -> Mention:
    return Mention(name, first, last, spoken[first].start, spoken[last].end, is_typo)


def _with_tight_joins(spoken: Sequence[Word], text: str) -> list[Word]:
    """Words written without a space are both one name and two words: "try/catch", "Fly.io"."""
    joined = list(spoken)
    for at, (before, word) in enumerate(pairwise(spoken), start=1):
        if not word.joins and word.start - before.end == 1 and not text[before.end].isspace():
            joined[at] = word._replace(joins=True)
    return joined


def is_written_as_a_name(spoken: Sequence[Word], first: int, last: int) -> bool:
    """Whether its capital is significant: "I fear It" and "Will, come here", but not "Will you come?"."""
    is_followed = last + 1 < len(spoken) and spoken[last + 1].joins
    return spoken[first].is_capital and not (spoken[first].opens and is_followed)


# Which word a misspelt one means, where one typo is forgiven.
#
# A typo is one letter too many, too few or different, or two letters in the wrong order (F. Damerau, "A technique for
# computer detection and correction of spelling errors", 1964), after the first two letters. In a short word one letter
# makes another name: there, only a letter that is doubled or should be is forgiven. Numbers must match exactly.

SHORTEST_FORGIVEN: Final = 5
"""Letters of a word, as written and as correct, in which any typo is forgiven: "Mara" is not "Marta"."""
SHORTEST_DOUBLED: Final = 4
"""The same for a letter that is doubled or should be: "eror"."""
LONGEST_FORGIVEN: Final = 32
"""Longer than any word of a name."""
SURE_LETTERS: Final = 2
"""The first letters of a word must be right: "mango" is not "Mongo"."""


class Typos:
    """An index of words by their first letters and their length. Each word counts as often as it was added."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str, int], Counter[str]] = {}

    def add(self, words: Iterable[str]) -> None:
        for word in filter(may_bear_a_typo, words):
            self._uses.setdefault((word[:SURE_LETTERS], len(word)), Counter())[word] += 1

    def remove(self, words: Iterable[str]) -> None:
        for word in filter(may_bear_a_typo, words):
            uses = self._uses[word[:SURE_LETTERS], len(word)]
            uses[word] -= 1
            if not uses[word]:
                del uses[word]

    def meant_by(self, written: str) -> list[str]:
        """Return the words one typo away, in alphabetical order."""
        lengths = range(len(written) - 1, len(written) + 2)
        near = [word for n in lengths for word in self._uses.get((written[:SURE_LETTERS], n), ())]
        alike = process.extract(written, near, scorer=OSA.distance, score_cutoff=1, limit=None)
        return sorted(word for word, n_typos, _ in alike if n_typos and _is_forgiven(written, word))


def may_bear_a_typo(word: str) -> bool:
    """Return whether a word is long enough, and not a number."""
    if not SHORTEST_DOUBLED <= len(word) <= LONGEST_FORGIVEN:
        return False
    return word.isalpha() or not any(char.isdigit() for char in word)


def _is_forgiven(written: str, meant: str) -> bool:
    if min(len(written), len(meant)) >= SHORTEST_FORGIVEN:
        return True
    return len(written) != len(meant) and _undoubled(written) == _undoubled(meant)


def _undoubled(word: str) -> str:
    return "".join(char for char, _ in groupby(word))
