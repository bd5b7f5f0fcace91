"""Ordinary words: what speech is made of, and so the last thing to be taken for a misheard name."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from glyphoxa.speech.phonetics import primary_language

_ELONGATED = re.compile(r"(.)\1\1")
_REPEATED = re.compile(r"(.{1,3}?)\1{2,}")
_ENDINGS = ("s", "es", "ed", "d", "ing", "er", "ers", "est", "ly", "y", "ish", "less", "ness", "like")


@dataclass(frozen=True)
class Vocabulary:
    """The ordinary words of a language. Words are given folded (see `glyphoxa.speech.words.fold`).

    Attributes:
        stop: Words too common to carry a name: articles, pronouns, prepositions, auxiliaries.
        common: Words that stand in a dictionary with a small letter; empty for a language without a list.
        proper: Names that stand in a dictionary: persons, places.
    """

    stop: frozenset[str]
    common: frozenset[str]
    proper: frozenset[str]

    @property
    def is_known(self) -> bool:
        """There is a list for this language: a word that is not in it is worth a second look."""
        return bool(self.common)

    def is_ordinary(self, word: str) -> bool:
        """Whether it is a word of the language, also inflected, drawn out ("nooo") or repeated ("hahaha")."""
        if word in self.stop or word in self.common:
            return True
        if word.isdigit() or _ELONGATED.search(word) or _REPEATED.fullmatch(word):
            return True
        return any(word.endswith(end) and self._is_stem(word.removesuffix(end), end) for end in _ENDINGS)

    def is_proper(self, word: str) -> bool:
        return word in self.proper

    def _is_stem(self, stem: str, ending: str) -> bool:
        if ending != "s" and len(stem) < (5 if ending in ("er", "ers", "y") else 4):
            return False
        return (
            stem in self.common
            or (stem + "e" in self.common and ending[0] in "ei")
            or (stem[-1:] == stem[-2:-1] and stem[:-1] in self.common)
        )


@cache
def vocabulary_of(language: str) -> Vocabulary:
    """The vocabulary of a language tag, read once. A language without one gets empty sets."""
    match primary_language(language):
        case "en":
            packed = (files("glyphoxa.speech") / "data" / "words-en.txt.gz").read_bytes()
            listed = gzip.decompress(packed).decode("ascii").split()
            common = {word for word in listed if word.islower()}
            return Vocabulary(
                stop=frozenset(_listed("stop-en.txt")),
                common=frozenset(common.union(_listed("table-en.txt"))),
                proper=frozenset(word.lower() for word in listed if not word.islower()),
            )
        case "de":
            return Vocabulary(stop=frozenset(_listed("stop-de.txt")), common=frozenset(), proper=frozenset())
        case _:
            return Vocabulary(stop=frozenset(), common=frozenset(), proper=frozenset())


def _listed(file: str) -> list[str]:
    text = (files("glyphoxa.speech") / "data" / file).read_text(encoding="ascii")
    return [word for line in text.splitlines() if not line.startswith("#") for word in line.split()]
