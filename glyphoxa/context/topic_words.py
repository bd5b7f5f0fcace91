"""What a line is about, in the shortest forms of its words.

Names, words that ask and words of time are not counted: everything has them.
"""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.context.relevance import VAGUE
from glyphoxa.speech.language.irregular_verbs import IRREGULAR
from glyphoxa.speech.language.phonetics import primary_language
from glyphoxa.speech.language.vocabulary import vocabulary_of
from glyphoxa.speech.language.words import fold

_ENGLISH: Final = (
    "happen recall remember hear heard mention promise speak spoke talk where which whose true swore meet met"
)
_OF_TIME: Final = (
    "yesterday today tonight tomorrow last year week month night evening morning day ago time once ever always again "
    "still now recently lately"
)
_GERMAN: Final = (
    "weiss kennst kennt erinnerst gesagt erzähl erzählt gehört gesehen getroffen wohin woher welche warum wisst noch "
    "über habe hast etwas nicht stimmt mein meine meinen deine euer unser unsere meiner meinem deiner seiner geschehen"
)
_VON_ZEIT: Final = (
    "gestern heute morgen jahr woche monat nacht nachts abend tag letzte letzten letztes mal zeit früher immer wieder "
    "schon zuletzt jetzt damals"
)
_ENDINGS: Final = ("ies", "ied", "ing", "ed", "es", "en", "er", "em", "est", "st", "te", "e", "s", "n", "t", "y")
_STEM: Final = 5
_SHORTEST: Final = 3
_COMPOUND: Final = 5
"""Letters of a word that is found at the end of another: "Kessel" in "Kupferkessel"."""
_WORD: Final = re.compile(r"[^\W\d_]{3,}")


def _stem(word: str) -> str:
    while True:
        shorter = (word.removesuffix(end) for end in _ENDINGS if word.endswith(end))
        short = next((each for each in shorter if len(each) >= _SHORTEST), word)
        if short == word:
            return word[:_STEM]
        word = short


_NOTHING: Final = frozenset(
    _stem(fold(word)) for word in " ".join((_ENGLISH, _OF_TIME, _GERMAN, _VON_ZEIT, *VAGUE)).split()
)
"""What asks, and says nothing of what for."""


class TopicWords:
    """The words of a text that say what it is about.

    Args:
        language: Of the text, as a tag.
    """

    def __init__(self, text: str, language: str) -> None:
        self.language = primary_language(language)
        stop, verbs = vocabulary_of(language).stop, IRREGULAR.get(self.language, {})
        folded = [verbs.get(word, word) for word in (fold(found) for found in _WORD.findall(text)) if word not in stop]
        self._by_stem = {_stem(word): word for word in folded if _stem(word) not in _NOTHING}

    def __sub__(self, other: TopicWords) -> TopicWords:
        left = TopicWords("", self.language)
        left._by_stem = {stem: word for stem, word in self._by_stem.items() if stem not in other._by_stem}
        return left

    def __bool__(self) -> bool:
        return bool(self._by_stem)

    def __len__(self) -> int:
        return len(self._by_stem)

    def n_in(self, other: TopicWords) -> int:
        """How many of its words another text has, also as the end of a longer one."""
        others = other._by_stem
        return sum(
            stem in others or any(_is_part(word, each) for each in others.values())
            for stem, word in self._by_stem.items()
        )


def _is_part(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _COMPOUND and len(long) > len(short) and long.endswith(short)
