"""Content words of a sentence, and its language.

English and German. Function words are data: see `data/LANGUAGE/content.toml`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import Any, Final

import Stemmer

from glyphoxa.language.lexicon import languages, lexicon, primary_language
from glyphoxa.language.words import words

_ALL: Final = lexicon("content")
FUNCTION_WORDS: Final = _ALL.words("function")
NEGATIONS: Final = _ALL.words("negations")
GREETINGS: Final = {language: lexicon("content", language).words("greetings") for language in languages()}

_STEM: Final = 6
_SHORTEST: Final = 3

_OWN: Final = {
    language: (lexicon("content", language).words("function") | greetings) for language, greetings in GREETINGS.items()
}
_ENGLISH_ALONE: Final = _OWN["en"] - _OWN["de"]
_GERMAN_ALONE: Final = _OWN["de"] - _OWN["en"]
"""A word of both languages ("was", "am") identifies neither."""
_GERMAN_LETTERS: Final = re.compile(r"[äöüß]", re.IGNORECASE)
_OF_A_NAME: Final = re.compile(r"\b(?:(?:von|van|zu|of)(?: (?:der|dem|den|the))? )?(?<!^)(?<![.!?] )[A-ZÄÖÜ]\w+")
_LEAST: Final = 2


def straight(text: str) -> str:
    """Return the text with straight apostrophes and single spaces, as patterns expect it."""
    return " ".join(text.replace("’", "'").split())


def spoken_words(text: str) -> list[str]:
    """Return the words casefolded, with straight apostrophes and without possessive endings."""
    return [word.text.casefold().replace("’", "'") for word in words(text)]


def content_words(text: str) -> frozenset[str]:
    """Return the stems of the content words. "Sewed" and "sews" share one, as do "poisonous" and "poison"."""
    return frozenset(
        stem_of(word) for word in spoken_words(text) if len(word) >= _SHORTEST and not is_grammatical(word)
    )


def stemmer_of(language: str) -> Callable[[str], str]:
    """Return Snowball's function from a word to its stem in a language (BCP 47); without one it changes nothing."""
    primary = primary_language(language)
    try:
        stem: Callable[[str], str] = Stemmer.Stemmer({"nb": "no", "nn": "no"}.get(primary, primary)).stemWord
    except KeyError:
        return str
    return stem


_ENGLISH, _GERMAN = stemmer_of("en"), stemmer_of("de")


@lru_cache(20_000)
def stem_of(word: str) -> str:
    """Return the stem of an English or German word in lower case: at most its first letters."""
    return _GERMAN(_ENGLISH(word))[:_STEM]  # whatever its language


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
    spoken = " ".join(spoken_words(text)).replace("n't", " not").replace("cannot", "can not").split()
    forms = ["<", *map(form, spoken), ">"]
    return frozenset((*forms, *(f"{first} {second}" for first, second in pairwise(forms))))


Weights = Mapping[str, float]
"""The weight of each sign of a fitted model, and the intercept as ""."""


@cache
def shipped(package: str, name: str) -> Any:
    """Return what `NAME.json` of a package holds: `Weights`, or those of several models by their names."""
    return json.loads(resources.files(package).joinpath(f"{name}.json").read_text("utf-8"))


def log_odds(signs: Iterable[str], weights: Weights) -> float:
    """Return the log odds of a fitted model for what has these signs."""
    return weights[""] + sum(weights.get(sign, 0.0) for sign in signs)


def denies(text: str) -> bool:
    """Return whether a word of the text is a negation."""
    return not NEGATIONS.isdisjoint(spoken_words(text))


def language_of(text: str, *, least: int = _LEAST) -> str:
    """Return `en`, `de`, or an empty string if the words do not identify the language. Names identify none.

    Args:
        least: How many more words of one language than of the other the text must have.

    >>> language_of("Was kostet ein Bier bei dir?")
    'de'
    >>> language_of("Bodo!")
    ''
    """
    found = spoken_words(_OF_A_NAME.sub(" ", text))
    n_english = sum(word in _ENGLISH_ALONE for word in found)
    n_german = sum(word in _GERMAN_ALONE or bool(_GERMAN_LETTERS.search(word)) for word in found)
    if n_english - n_german >= least:
        return "en"
    return "de" if n_german - n_english >= least else ""
