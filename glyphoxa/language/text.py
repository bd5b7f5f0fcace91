"""A line of text, split once: its words, the stems of those with content, its sentences, and its language.

English and German. Function words are data: see `data/LANGUAGE/content.toml`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property, lru_cache
from importlib import resources
from itertools import pairwise
from math import fsum
from typing import Any, Final

import Stemmer

from glyphoxa.language.language_data import languages, lexicon, primary_language, vocabulary_of
from glyphoxa.language.sentences import sentences
from glyphoxa.language.words import Word, words, words_as_written

_ALL: Final = lexicon("content")
FUNCTION_WORDS: Final = _ALL.words("function")
NEGATIONS: Final = _ALL.words("negations")
GREETINGS: Final = {language: lexicon("content", language).words("greetings") for language in languages()}

_STEM: Final = 6
_SHORTEST: Final = 3
_STEMS: Final = 50_000
_REMEMBERED: Final = 512
"""Texts: each partial transcript is compared with the same recalled lines, and each sentence of a reply with the same
question, facts and lines."""

_OWN: Final = {
    language: (lexicon("content", language).words("function") | greetings) for language, greetings in GREETINGS.items()
}
_ENGLISH_ALONE: Final = _OWN["en"] - _OWN["de"]
_GERMAN_ALONE: Final = _OWN["de"] - _OWN["en"]
"""A word of both languages ("was", "am") identifies neither."""
_GERMAN_LETTERS: Final = re.compile(r"[äöüß]", re.IGNORECASE)
_OF_A_NAME: Final = re.compile(r"\b(?:(?:von|van|zu|of)(?: (?:der|dem|den|the))? )?(?<!^)(?<![.!?] )[A-ZÄÖÜ]\w+")
_LEAST: Final = 2


class Text:
    """A line of text. Each reading of it is computed once.

    Attributes:
        raw: The text as written.
    """

    def __init__(self, raw: str) -> None:
        self.raw: Final = raw
        self._telling: dict[str, frozenset[str]] = {}

    @staticmethod
    @lru_cache(_REMEMBERED)
    def of(raw: str) -> Text:
        """Return a text, the same one for the same characters."""
        return Text(raw)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its words, in order."""
        return words(self.raw)

    @cached_property
    def spoken(self) -> tuple[str, ...]:
        """Its words casefolded, with straight apostrophes and without possessive endings."""
        return tuple(word.casefold().replace("’", "'") for word in words_as_written(self.raw))

    @cached_property
    def full(self) -> tuple[str, ...]:
        """Its words as `fold` returns them, with possessive endings."""
        return tuple(word.full for word in self.words)

    @cached_property
    def named(self) -> tuple[str, ...]:
        """Its words that are written like names."""
        return tuple(word.text for word in self.words if word.is_named)

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """Its words as `fold` returns them, without possessive endings."""
        return tuple(word.folded for word in self.words)

    @cached_property
    def content(self) -> frozenset[str]:
        """The stems of its content words. "Sewed" and "sews" share one, as do "poisonous" and "poison"."""
        return frozenset(stem_of(word) for word in self.spoken if len(word) >= _SHORTEST and not is_grammatical(word))

    def stems(self, language: str) -> tuple[str, ...]:
        """Return the stems of its words in a language (BCP 47), without stop words, in order."""
        stem, stop = stemmer_of(language), vocabulary_of(language).stop
        return tuple(stem(word) for word in self.folded if word not in stop)

    def telling(self, language: str) -> frozenset[str]:
        """Return its different stems in a language."""
        if language not in self._telling:
            self._telling[language] = frozenset(self.stems(language))
        return self._telling[language]

    def shared(self, other: Text, language: str) -> float:
        """Return the share of stems in a language that both texts have, 0 to 1."""
        own, theirs = self.telling(language), other.telling(language)
        return len(own & theirs) / max(1, len(own | theirs))

    @cached_property
    def topic(self) -> frozenset[str]:
        """The stems of its words that carry a topic, so that "smiths" is "smith".

        An English "war" does, a German one does not. In a text of unknown language neither does.
        """
        found = frozenset(stem_of(word) for word in self.spoken if word.isalpha() and len(word) >= _SHORTEST)
        return found - _VAGUE.get(language_of(self.raw), _VAGUE[""])

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """Its sentences, with single spaces."""
        return tuple(sentences(self.raw))

    @cached_property
    def plain(self) -> str:
        """The text with straight apostrophes and single spaces, as patterns expect it."""
        return " ".join(self.raw.replace("’", "'").split())

    def contains(self, other: Text) -> bool:
        """Return whether all words of another text follow one another in this one."""
        return f" {' '.join(other.spoken)} " in f" {' '.join(self.spoken)} "

    @property
    def denies(self) -> bool:
        """Whether a word of the text is a negation."""
        return not NEGATIONS.isdisjoint(self.spoken)


def content_of(texts: Iterable[str]) -> frozenset[str]:
    """Return the stems of the content words of several texts."""
    return frozenset[str]().union(*(Text.of(text).content for text in texts))


def _forms(language: str) -> Mapping[str, str]:
    verbs = (verb.split() for verb in lexicon("asking", language).words("irregular"))
    return {form: base for base, *forms in verbs for form in forms}


_IRREGULAR: Final[Mapping[str, Mapping[str, str]]] = {language: _forms(language) for language in languages()}
"""Irregular forms that a stemmer misses, by language, each with its verb ("stole": "steal").

Forms that are also other words ("left", "wound", "bore", "found") map to the verb too: question and transcript are
treated the same.
"""


@cache
def stemmer_of(language: str) -> Callable[[str], str]:
    """Return the function from a word to its stem by Snowball in a language (BCP 47); without one it changes nothing.

    An irregular form has the stem of its verb.
    """
    primary = primary_language(language)
    try:
        stem: Callable[[str], str] = Stemmer.Stemmer({"nb": "no", "nn": "no"}.get(primary, primary)).stemWord
    except KeyError:
        stem = str
    verbs = _IRREGULAR.get(primary, {})
    return lru_cache(_STEMS)(lambda word: stem(verbs.get(word, word)))


_ENGLISH, _GERMAN = stemmer_of("en"), stemmer_of("de")


@lru_cache(20_000)
def stem_of(word: str) -> str:
    """Return the stem of an English or German word in lower case: at most its first letters."""
    return _GERMAN(_ENGLISH(word))[:_STEM]  # whatever its language


_VAGUE: Final = {
    language: frozenset(map(stem_of, content.words("vague") | content.words("little")))
    for language, content in (("", _ALL), ("en", lexicon("content", "en")), ("de", lexicon("content", "de")))
}
"""The stems of common words without a topic, by language; "" for all together."""
_GRAMMATICAL: Final = FUNCTION_WORDS | NEGATIONS


def is_grammatical(word: str) -> bool:
    """Return whether a casefolded word is a function word or a negation."""
    return word in _GRAMMATICAL


def stem_of_content(word: str) -> str:
    """Return the stem of a content word; any other word as it is."""
    return word if is_grammatical(word) else stem_of(word)


def phrases(text: str, form: Callable[[str], str] = stem_of_content) -> frozenset[str]:
    """Return the words of a text and its pairs of neighbours, for a model that judges how a text is worded.

    The ends of the text count as words.

    Args:
        form: Returns the form of a word that counts.
    """
    spoken = " ".join(Text.of(text).spoken).replace("n't", " not").replace("cannot", "can not").split()
    forms = ["<", *map(form, spoken), ">"]
    return frozenset((*forms, *(f"{first} {second}" for first, second in pairwise(forms))))


Weights = Mapping[str, float]
"""The weight of each sign of a fitted model, and the intercept as ""."""


@cache
def shipped(package: str, name: str) -> Any:
    """Return what `NAME.json` of a package holds: `Weights`, or those of several models by their names."""
    return json.loads(resources.files(package).joinpath(f"{name}.json").read_text("utf-8"))


def log_odds(signs: Iterable[str], weights: Weights) -> float:
    """Return the log odds of a fitted model for what has these signs, whatever their order."""
    return weights[""] + fsum(weights.get(sign, 0.0) for sign in signs)


def language_of(text: str, *, least: int = _LEAST) -> str:
    """Return `en`, `de`, or an empty string if the words do not identify the language. Names identify none.

    Args:
        least: How many more words of one language than of the other the text must have.

    >>> language_of("Was kostet ein Bier bei dir?")
    'de'
    >>> language_of("Bodo!")
    ''
    """
    found = Text(_OF_A_NAME.sub(" ", text)).spoken
    n_english = sum(word in _ENGLISH_ALONE for word in found)
    n_german = sum(word in _GERMAN_ALONE or bool(_GERMAN_LETTERS.search(word)) for word in found)
    if n_english - n_german >= least:
        return "en"
    return "de" if n_german - n_english >= least else ""
