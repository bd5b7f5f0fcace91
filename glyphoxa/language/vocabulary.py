"""Ordinary words, which are unlikely to be misheard names."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from glyphoxa.language.lexicon import data_file, lexicon

_ELONGATED = re.compile(r"(.)\1\1")
_REPEATED = re.compile(r"(.{1,3}?)\1{2,}")
UNLISTED = 100
ORDINARY = 60
"""Larger dictionaries list words that nobody says, and that may sound like a name."""
_UTTERED = 35
_FEW_NAMES, _PEOPLES = 20, 40
"""Names in dictionaries of SCOWL up to 20 are few, and John is one. Those up to 40 have no other first name."""
_AT_TABLES = 35
_ENDINGS = ("s", "es", "ed", "d", "ing", "er", "ers", "est", "ly", "y", "ish", "less", "ness", "like")


@dataclass(frozen=True)
class Vocabulary:
    """The ordinary words of a language. Words are given folded (see `glyphoxa.language.words.fold`).

    Attributes:
        stop: Words too common to identify a name: articles, pronouns, prepositions, auxiliaries.
        common: Lower-case dictionary words, each with the size of the smallest dictionary that lists it: 10 for the
            commonest to 70 (sizes of SCOWL). Empty for a language without a list.
        proper: Names in a dictionary: persons, places. The same sizes.
    """

    stop: frozenset[str]
    common: Mapping[str, int]
    proper: Mapping[str, int]
    is_known: bool = True
    """The lists cover nearly the whole language, so an unlisted word is suspicious."""

    def is_ordinary(self, word: str) -> bool:
        """Whether it is a word of the language, also inflected, drawn out ("nooo") or repeated ("hahaha")."""
        return self.rarity(word) <= ORDINARY

    def is_proper(self, word: str) -> bool:
        return self.proper.get(word, UNLISTED) <= ORDINARY

    def is_common_knowledge(self, name: str) -> bool:
        """Whether everybody knows it: an abbreviation (GPS), or a people, a faith or a holiday.

        These are the names in small dictionaries; larger ones list persons and towns.
        """
        return (name.isupper() and len(name) > 1) or _FEW_NAMES < self.proper.get(name.casefold(), 0) <= _PEOPLES

    def rarity(self, word: str) -> int:
        """How rare it is: 0 for a stop word, the size of the dictionary that lists it, or `UNLISTED`."""
        if word in self.stop:
            return 0
        size = self.common.get(word)
        if size is not None:
            return size
        if word.isdigit() or _ELONGATED.search(word) or _REPEATED.fullmatch(word):
            return _UTTERED
        stems = (self._stem_size(word.removesuffix(end), end) for end in _ENDINGS if word.endswith(end))
        return min(stems, default=UNLISTED)

    def _stem_size(self, stem: str, ending: str) -> int:
        if ending != "s" and len(stem) < (5 if ending in ("er", "ers", "y") else 4):
            return UNLISTED
        sizes = [self.common.get(stem, UNLISTED)]
        if ending[0] in "ei":
            sizes.append(self.common.get(stem + "e", UNLISTED))
        if stem[-1:] == stem[-2:-1]:
            sizes.append(self.common.get(stem[:-1], UNLISTED))
        return min(sizes)


@cache
def vocabulary_of(language: str) -> Vocabulary:
    """The vocabulary of a language tag, read once. A language without one gets empty sets."""
    common, proper = _sized(data_file(language, "words.txt.gz"))
    common |= dict.fromkeys(_listed(data_file(language, "table.txt")), _AT_TABLES)
    is_known = bool(lexicon("speech", language).value("word_list_is_complete"))
    return Vocabulary(frozenset(_listed(data_file(language, "stop.txt"))), common, proper, is_known)


def _sized(file: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Common words and proper names, each with the size of the smallest dictionary that lists it."""
    common: dict[str, int] = {}
    proper: dict[str, int] = {}
    for line in gzip.decompress(file.read_bytes()).decode("utf-8").splitlines() if file.is_file() else ():
        size, *listed = line.split()
        for word in listed:
            if word.islower():
                common[word] = int(size)
            else:
                proper[word.lower()] = int(size)
    return common, proper


def _listed(file: Path) -> list[str]:
    text = file.read_text(encoding="ascii") if file.is_file() else ""
    return [word for line in text.splitlines() if not line.startswith("#") for word in line.split()]
