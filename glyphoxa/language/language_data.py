"""Words and patterns of natural languages, read from `data/LANGUAGE/TOPIC.toml`.

A key holds alternatives: words separated by commas in one string, or an array of regular expressions. A word may be a
regular expression, too. `{name}` in an alternative refers to another key of the same file.

A file may also hold texts, such as prompts. `texts` returns the English one where a language lacks it.

Code asks for a topic in one language or in all: tables mix languages, so speech is checked against the words of all.
The ordinary words of a language, which are unlikely to be misheard names, are its `Vocabulary`.
"""

from __future__ import annotations

import gzip
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

_DATA: Final = Path(__file__).parent / "data"
_PLACE: Final = re.compile(r"\{([a-z]\w*)\}")
_NOTHING: Final = "(?!)"
"""Matches no text."""


def primary_language(tag: str) -> str:
    """The language of a tag, without its region.

    >>> primary_language("de-AT")
    'de'
    """
    return tag.replace("_", "-").split("-")[0].lower()


@cache
def languages() -> tuple[str, ...]:
    """The languages that have a data folder."""
    return tuple(sorted(folder.name for folder in _DATA.iterdir() if folder.is_dir()))


def data_file(language: str, name: str) -> Path:
    """A file in the folder of a language (a BCP 47 tag); it may not exist."""
    known = primary_language(language)
    return _DATA / (known if known in languages() else "none") / name


class Lexicon:
    """A topic in one or more languages.

    Args:
        files: The content of each language's file.
    """

    def __init__(self, files: Sequence[Mapping[str, Any]]) -> None:
        self._files = files

    def __bool__(self) -> bool:
        """Whether it has data for any language."""
        return bool(self._files)

    def value(self, name: str) -> Any:
        """The value in the first language that has this key, or None."""
        return next((file[name] for file in self._files if name in file), None)

    def words(self, name: str) -> frozenset[str]:
        """The words under a key, of all languages; may be empty."""
        return frozenset(word for file in self._files for word in _alternatives(file.get(name, "")))

    def table(self, name: str) -> dict[str, frozenset[str]]:
        """The words under each key of a table, of all languages."""
        found: dict[str, frozenset[str]] = {}
        for key, words in (row for file in self._files for row in file.get(name, {}).items()):
            found[key] = found.get(key, frozenset()).union(_alternatives(words))
        return found

    def compile(self, template: str, /, *, flags: int = 0, **macros: str) -> re.Pattern[str]:
        """Compile a pattern in which `{name}` stands for the alternatives under a key, of all languages.

        Args:
            macros: Values of other names, also for use in the files.
        """
        made = {name: self._filled(text, macros) for name, text in macros.items()}
        return re.compile(self._filled(template, made), flags)

    def pattern(self, name: str, /, *, flags: int = 0, **macros: str) -> re.Pattern[str]:
        """The alternatives under one key. Matches nothing if no language has the key."""
        return self.compile(f"{{{name}}}", flags=flags, **macros)

    def _filled(self, template: str, macros: Mapping[str, str], *, may_miss: bool = True) -> str:
        def stands_for(match: re.Match[str]) -> str:
            name = match[1]
            if name in macros:
                return macros[name]
            files = [file for file in self._files if name in file or not may_miss]
            found = [
                Lexicon([file])._filled(text, macros, may_miss=False)
                for file in files
                for text in _alternatives(file[name])
            ]
            return f"(?:{'|'.join(found)})" if found else _NOTHING

        return _PLACE.sub(stands_for, template)


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of these words, the longest first; for no words, one that matches nothing."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))) or _NOTHING


def capitalises_nouns(language: str) -> bool:
    """Return whether a language writes nouns with a capital, so that a capital alone shows no name."""
    return bool(lexicon("asking", language).value("nouns_have_capitals"))


def _alternatives(value: str | Sequence[str]) -> Sequence[str]:
    return [word for word in " ".join(value.split()).split(", ") if word] if isinstance(value, str) else value


@cache
def lexicon(topic: str, language: str | None = None) -> Lexicon:
    """The lexicon of a topic in a language (a BCP 47 tag), or in all languages by default.

    A language without data has an empty lexicon: its patterns match nothing.
    """
    return _read(topic, languages() if language is None else (language,))


@cache
def texts(topic: str, language: str) -> Lexicon:
    """The texts of a topic in a language (a BCP 47 tag). `value` is English for a key that the language lacks."""
    return _read(topic, (language, "en"))


def _read(topic: str, tags: Sequence[str]) -> Lexicon:
    files = (data_file(tag, f"{topic}.toml") for tag in tags)
    return Lexicon([tomllib.loads(file.read_text("utf-8")) for file in files if file.is_file()])


# Ordinary words.

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
