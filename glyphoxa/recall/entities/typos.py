"""Which word is meant by one that is misspelt, where one typo is forgiven.

One typo is a letter too many, too few, another one, or two that changed places (F. Damerau, "A technique for computer
detection and correction of spelling errors", 1964), behind the first two letters. In a short word one letter makes
another name: there only a doubled letter may be written once, or a single one twice. A number is never one digit off.

A word is found by what is left of it without one of its letters, as two words that are one typo apart have such a rest
in common (W. Garbe, symmetric deletion, SymSpell, 2012).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from rapidfuzz.distance import OSA

SHORTEST_FORGIVEN: Final = 5
"""Letters of a word in which any typo is forgiven, as it is written and as it should be: "Mara" is not "Marta"."""
SHORTEST_DOUBLED: Final = 4
"""The same for a letter that is doubled, or should be: "eror"."""
LONGEST_FORGIVEN: Final = 32
"""Longer than any word of a name: what it costs to look one up grows with the square of its letters."""
SURE_LETTERS: Final = 2
"""Letters at the beginning of a word that must be right: "mango" is not "Mongo"."""


class Typos:
    """Words by their misspellings. Each counts as often as it was added."""

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}
        # Tuples: nearly all have one member, and a set takes four times as much memory.
        self._by_rest: dict[str, tuple[str, ...]] = {}

    def add(self, words: Iterable[str]) -> None:
        for word in filter(may_bear_a_typo, words):
            self._uses[word] = self._uses.get(word, 0) + 1
            if self._uses[word] == 1:
                for rest in _rests(word):
                    self._by_rest[rest] = (*self._by_rest.get(rest, ()), word)

    def remove(self, words: Iterable[str]) -> None:
        for word in filter(may_bear_a_typo, words):
            self._uses[word] -= 1
            if not self._uses[word]:
                del self._uses[word]
                for rest in _rests(word):
                    others = tuple(each for each in self._by_rest.pop(rest) if each != word)
                    if others:
                        self._by_rest[rest] = others

    def meant_by(self, written: str) -> list[str]:
        """The words one typo away, in order of the alphabet."""
        near = {word for rest in _rests(written) for word in self._by_rest.get(rest, ())}
        return sorted(word for word in near if _is_one_typo(written, word))


def may_bear_a_typo(word: str) -> bool:
    """Whether it is long enough, and no number."""
    if not SHORTEST_DOUBLED <= len(word) <= LONGEST_FORGIVEN:
        return False
    return word.isalpha() or not any(char.isdigit() for char in word)


def _is_one_typo(written: str, meant: str) -> bool:
    if OSA.distance(written, meant, score_cutoff=1) != 1:
        return False
    if min(len(written), len(meant)) >= SHORTEST_FORGIVEN:
        return True
    return len(written) != len(meant) and _undoubled(written) == _undoubled(meant)


def _undoubled(word: str) -> str:
    return "".join(char for char, _ in groupby(word))


def _rests(word: str) -> set[str]:
    """The word, and what is left of it without one letter that is not among the sure ones."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(SURE_LETTERS, len(word)))}
