"""By which terms talk is found, and what kind of utterance may answer a question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag
from functools import lru_cache

import Stemmer

from glyphoxa.language.asking import IRREGULAR
from glyphoxa.language.vocabulary import primary_language, vocabulary_of
from glyphoxa.language.words import Word, words
from glyphoxa.recall.temporal.reader import tells_time
from glyphoxa.recall.temporal.words import read_words

# -- terms
#
# By which words talk is found: stemmed in the campaign's language, and names as they are.
#
# A name stands in the index twice, unstemmed (`=grimjaw`) and as any word: a question that writes it like a name finds
# only the name ("Has Will come?" nothing that somebody will do), one in small letters, as a recogniser may give it,
# finds it as well.

NAME = "="
MOST_WORDS = 200
"""Of a question: beyond that it is a speech, and its end is what is asked."""
_STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nb": "norwegian", "nl": "dutch", "nn": "norwegian",
    "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
_NOUNS_ARE_CAPITAL = frozenset(("de",))
_CACHE = 50_000


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """What is looked for.

    Attributes:
        words: Terms of the index, each once, in the order in which they were said.
    """

    words: tuple[str, ...]


class Terms:
    """The terms of one language.

    Args:
        language: BCP 47 tag. Without a stemmer for it words are found as they are, without a list of its stop words by
            how rare they are alone.
    """

    def __init__(self, language: str) -> None:
        primary = primary_language(language)
        self.language = language
        self._stop = vocabulary_of(language).stop
        self._capital_says_name = primary not in _NOUNS_ARE_CAPITAL
        read_words(primary)  # whoever waits for sound shall not wait for its patterns later
        algorithm = _STEMMERS.get(primary)
        stem = (lambda word: word) if algorithm is None else Stemmer.Stemmer(algorithm).stemWord
        verbs = IRREGULAR.get(primary, {})
        self._stem = lru_cache(_CACHE)(lambda word: stem(verbs.get(word, word)))

    def of_turn(self, speaker: str, text: str) -> Counter[str]:
        """Of an utterance, its speaker's name among them, each with how often it is said. A capital letter at the
        beginning of a sentence may be a name's.
        """
        terms: Counter[str] = Counter()
        for word in words(speaker):
            terms.update(self._of(word, is_name=True))
        for word in words(text):
            may_be_name = self._capital_says_name and word.is_capital and word.folded not in _I
            terms.update(self._of(word, is_name=may_be_name))
        return terms

    def of_question(self, question: str) -> SearchTerms:
        """Of a question; the last 200 words of a longer one."""
        found: dict[str, None] = {}
        for word in words(question)[-MOST_WORDS:]:
            if self.is_name(word):
                found[NAME + word.folded] = None
            elif word.folded not in self._stop:
                found[self._stem(word.folded)] = None
        return SearchTerms(tuple(found))

    def stems(self, text: str) -> Iterable[str]:
        """The stems of the words of a text that are no stop words, in order."""
        return (self._stem(word.folded) for word in words(text) if word.folded not in self._stop)

    def is_name(self, word: Word) -> bool:
        """Whether it is written as nothing but a name is."""
        return self._capital_says_name and word.is_capital and not word.opens and word.folded not in _I

    def _of(self, word: Word, *, is_name: bool) -> Iterable[str]:
        if is_name:
            yield NAME + word.folded
        if word.folded not in self._stop:
            yield self._stem(word.folded)


_I = frozenset(("i", "im", "ill", "id", "ive"))


# -- traits
#
# What kind of utterance it is, as far as that tells whether it may answer a question.

_ASKS = re.compile(r"[?？][\s\"'”’»)\]]*$")
_DIGITS = re.compile(r"\d")


class Trait(IntFlag):
    """
    Attributes:
        ASKS: It ends with a question.
        TELLS_TIME: It says when something was ("yesterday", "in June").
        TELLS_NUMBER: There is a number in it.
    """

    ASKS = 1
    TELLS_TIME = 2
    TELLS_NUMBER = 4


def traits_of(text: str, *, language: str) -> Trait:
    found = Trait(0)
    if _ASKS.search(text):
        found |= Trait.ASKS
    if tells_time(text, language=language):
        found |= Trait.TELLS_TIME
    if _DIGITS.search(text):
        found |= Trait.TELLS_NUMBER
    return found
