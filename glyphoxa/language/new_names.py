"""Finds names that the campaign does not know yet, by how they are written and introduced."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from glyphoxa.language.lexicon import capitalises_nouns, lexicon, primary_language
from glyphoxa.language.titles import ARTICLES, KIN, TITLES
from glyphoxa.language.trades import trades_of
from glyphoxa.language.vocabulary import UNLISTED, Vocabulary, vocabulary_of
from glyphoxa.language.words import Word, fold, words

_WORDS: Final = lexicon("chronicle")
_RANKS: Final = _WORDS.words("ranks")
"""Ranks, which count like trades."""
_ENDINGS: Final = tuple(_WORDS.words("trade_endings"))


def is_occupation(word: str) -> bool:
    """Return whether a word names a trade or a rank.

    Args:
        word: In lower case.
    """
    return word in _RANKS or word.endswith(_ENDINGS) or bool(trades_of(word))


def occupation_in(noun: str) -> str | None:
    """Return the words up to a trade or rank."""
    spoken = noun.split()
    for n, word in enumerate(spoken, start=1):
        if is_occupation(word.lower()):
            return " ".join(spoken[:n])
    return None


_JOINED_BY: Final = _WORDS.words("joined_by")
_KINDS: Final = {
    "location": _WORDS.words("places"),
    "faction": _WORDS.words("factions"),
    "item": _WORDS.words("items"),
}
_INTO: Final = _WORDS.words("into")
_MY: Final = _WORDS.words("my")
_BEFORE_NOUNS: Final = _WORDS.words("before_nouns")
"""German: words that precede nouns but not names."""
_NOT_OF_THE_STORY: Final = _WORDS.words("not_of_the_story")
_CALLED: Final = _WORDS.compile(r"\b{called}\s+(?:the |der |die |das )?$", flags=re.IGNORECASE)
_CASTS: Final = _WORDS.compile(r"\b{casts}\W+(?:\w+\W+)?$", flags=re.IGNORECASE)
"""The following name is a spell or a feat."""
_OF_SHAPE: Final = 0.65
_SHORTEST: Final = 3
_MAX_WORDS: Final = 6
"""Maximum words of a name."""
CONCEPT: Final = "concept"
"""Type of a coined term: a name that nothing shows to be a person, a place, a group or a thing."""
_NUMERAL: Final = re.compile("[IVXLCDM]+")
_PREFIXES: Final = _WORDS.words("name_prefixes")
_ADJECTIVE_ENDINGS: Final = tuple(_WORDS.words("adjective_endings"))
"""German: nouns have capitals, but adjectives only as parts of names."""


@dataclass(frozen=True, slots=True)
class NewName:
    """A possible new name.

    Attributes:
        start: Offset of its first character; `end` is one past its last, including a possessive ending.
        confidence: Confidence that it is a name.
    """

    text: str
    type: str
    start: int
    end: int
    confidence: float


class NameFinder:
    """Finds new names in utterances of one language (BCP 47 tag).

    Args:
        is_asked: The texts ask or answer: inside a sentence, all words that are written like names are names, ordinary
            ones included ("the Red Hand"). A single word that opens a sentence is none.
    """

    def __init__(self, language: str, *, is_asked: bool = False) -> None:
        self._is_asked = is_asked
        self._vocabulary: Vocabulary = vocabulary_of(language)
        self._has_capital_nouns = capitalises_nouns(language)
        self._rarity = lru_cache(8192)(self._vocabulary.rarity)

    def names_in(self, text: str, *, taken: Collection[tuple[int, int]], nobody: Collection[str]) -> Iterator[NewName]:
        """Yield the new names in a text.

        Args:
            taken: Spans of known names.
            nobody: Normalised names outside the story: those of the players.
        """
        spoken = words(text)
        if not _is_mixed_case(spoken):
            return
        at = 0
        while at < len(spoken):
            run = self._run(spoken, at, taken)
            if run:
                found = self._judged(text, spoken, at, run, nobody)
                if found is not None:
                    yield found
            at += max(len(run), 1)

    def terms_in(self, text: str, *, taken: Collection[tuple[int, int]], nobody: Collection[str]) -> Iterator[NewName]:
        """Yield what `names_in` yields, and other words that are written like terms.

        Those are words in capitals ("ORACLE") or with capitals inside ("GeoNet"), and ordinary ones with a capital
        after an article ("the Geometers"). In a line in capitals, no word is a term.
        """
        spoken = words(text)
        n_loud = sum(word.text.isupper() and len(word.text) > 1 for word in spoken)
        if not _is_mixed_case(spoken) or 2 * n_loud > len(spoken):
            return
        spans = list(taken)
        for word in spoken:
            if self._is_shaped(word, nobody) and not _overlaps(word, spans):
                spans.append((word.start, word.end))
                yield NewName(word.text, CONCEPT, word.start, word.end, _OF_SHAPE)
        for name in self.names_in(text, taken=spans, nobody=nobody):
            spans.append((name.start, name.end))
            if not _is_cast(text[: name.start]):
                yield name
        for before, word, after in zip(spoken, spoken[1:], (*spoken[2:], None), strict=False):
            is_alone = after is None or not (after.joins and after.is_capital)
            is_free = word.folded not in nobody and not _overlaps(word, spans) and not _is_cast(text[: word.start])
            if is_alone and is_free and self._is_called_the(before, word):
                yield NewName(word.text, CONCEPT, word.start, word.end, _OF_SHAPE)

    def _is_called_the(self, before: Word, word: Word) -> bool:
        """Return whether a word is a name only because it has a capital after an article."""
        if self._has_capital_nouns or before.folded not in ARTICLES or not word.joins or word.opens or word.tail:
            return False
        known = word.folded in TITLES or is_occupation(word.folded) or any(word.folded in of for of in _KINDS.values())
        return _may_be_of_a_name(word, ()) and not known and word.folded not in _NOT_OF_THE_STORY and len(word.text) > 2

    def _is_shaped(self, word: Word, nobody: Collection[str]) -> bool:
        if word.folded in nobody or word.folded in _NOT_OF_THE_STORY or not word.text.isalpha():
            return False
        if word.text.isupper():
            return len(word.text) >= _SHORTEST and _NUMERAL.fullmatch(word.text) is None
        inside = next((n for n, letter in enumerate(word.text) if n and letter.isupper()), 0)
        return inside > 0 and word.text[:inside].lower() not in _PREFIXES

    def _run(self, spoken: tuple[Word, ...], at: int, taken: Collection[tuple[int, int]]) -> tuple[Word, ...]:
        """Return the run of capitalised words from this position."""
        if not _may_be_of_a_name(spoken[at], taken):
            return ()
        end = at + 1
        while end < len(spoken) and end - at < _MAX_WORDS and spoken[end].joins and not spoken[end - 1].tail:
            if _may_be_of_a_name(spoken[end], taken):
                end += 1
            elif (n := self._joining(spoken, end, taken)) > 0:
                end += n + 1
            else:
                break
        return spoken[at:end]

    def _joining(self, spoken: tuple[Word, ...], at: int, taken: Collection[tuple[int, int]]) -> int:
        """Count the small words between two parts of a name: "of", "of the"."""
        is_joined = spoken[at].folded in _JOINED_BY or (self._is_asked and spoken[at].folded == "the")
        if self._has_capital_nouns or not is_joined:
            return 0
        n = 2 if at + 1 < len(spoken) and spoken[at + 1].folded == "the" else 1
        return n if at + n < len(spoken) and _may_be_of_a_name(spoken[at + n], taken) else 0

    def _trimmed(self, spoken: tuple[Word, ...], at: int, run: tuple[Word, ...]) -> tuple[int, tuple[Word, ...]]:
        """Return the run and its place without the words around a name."""
        # The first word of a sentence is capitalised anyway, so it must not be an ordinary word.
        while run and (run[0].opens or run[0].folded in _NOT_OF_THE_STORY) and not self._is_unheard(run[0]):
            if run[0].folded in TITLES and len(run) > 1:
                break
            run, at = run[1:], at + 1
        while run and not run[0].is_capital:
            run, at = run[1:], at + 1  # "of the Grennock" is the end of a truncated name
        if len(run) > 1 and run[0].folded in KIN and at and spoken[at - 1].folded in _MY:
            run, at = run[1:], at + 1  # "my brother Odo" is called Odo
        if self._is_asked and self._has_capital_nouns:
            # A noun behind a title is a name, and so is one behind a capitalised adjective: "die Rote Hand".
            while run and not self._is_unheard(run[0]) and not (len(run) > 1 and self._begins_a_name(run[0])):
                run, at = run[1:], at + 1
            while len(run) > 1 and not self._is_unheard(run[-1]) and not self._begins_a_name(run[-2]):
                run = run[:-1]
        while run and run[-1].folded in _NOT_OF_THE_STORY and not (self._is_asked and len(run) > 1):
            run = run[:-1]
        return at, run

    def _judged(
        self, text: str, spoken: tuple[Word, ...], at: int, run: tuple[Word, ...], nobody: Collection[str]
    ) -> NewName | None:
        at, run = self._trimmed(spoken, at, run)
        if not run or (self._is_asked and len(run) == 1 and (run[0].opens or run[0].folded in TITLES)):
            return None
        is_titled = len(run) > 1 and run[0].folded in TITLES
        name = text[run[0].start : run[-1].end - len(run[-1].tail)]
        if len(fold(name)) < _SHORTEST or fold(name) in nobody or any(each.folded in nobody for each in run):
            return None
        before = text[: run[0].start]
        is_called = _CALLED.search(before[-40:]) is not None
        unheard = sum(self._is_unheard(each) for each in run)
        kind = self._kind(spoken, at, run)
        if self._has_capital_nouns:
            sure = 0.85 if is_called else 0.75 if unheard and is_titled else 0.6 if unheard == len(run) else 0.0
            sure = sure or (0.65 if self._is_asked and len(run) > 1 else 0.0)
            if sure < 0.7 and len(run) == 1 and (run[0].opens or (at and spoken[at - 1].folded in _BEFORE_NOUNS)):
                sure = 0.0
        elif is_called or is_titled:
            sure = 0.85
        elif unheard and (len(run) > 1 or not run[0].opens):
            sure = 0.75
        elif unheard:
            # "Balgus said" may be a name; "Urgh!" is not.
            sure = 0.6 if at + 1 < len(spoken) and spoken[at + 1].joins else 0.0
        elif (len(run) > 1 or self._is_asked) and not run[0].opens and not _is_cast(before):
            sure = 0.65
        else:
            sure = 0.0
        if not sure:
            return None
        return NewName(name, kind, run[0].start, run[-1].end, sure)

    def _begins_a_name(self, word: Word) -> bool:
        return word.folded in TITLES or (
            not word.opens
            and any(word.folded.endswith(ending) for ending in _ADJECTIVE_ENDINGS)
            and word.folded not in self._vocabulary.stop
            and self._rarity(word.folded) < UNLISTED
            and word.folded not in self._vocabulary.proper
        )

    def _is_unheard(self, word: Word) -> bool:
        return (
            self._rarity(word.folded) >= UNLISTED
            and word.folded not in _NOT_OF_THE_STORY
            and not (self._has_capital_nouns and is_occupation(word.text.lower()))
        )

    def _kind(self, spoken: tuple[Word, ...], at: int, run: tuple[Word, ...]) -> str:
        inside = {each.folded for each in run}
        around = inside | {each.folded for each in spoken[max(at - 3, 0) : at]}
        if run[0].folded in TITLES:
            return "npc"
        for kind, signs in _KINDS.items():
            if inside & signs or (around & signs and "of" in around):
                return kind
        if at and spoken[at - 1].folded in _INTO:
            return "location"
        return CONCEPT if at and run[0].joins and spoken[at - 1].folded in ARTICLES else "npc"


@cache
def _finder(language: str) -> NameFinder:
    return NameFinder(language, is_asked=True)


def names_in(text: str, *, language: str) -> list[str]:
    """Return the names written within the sentences of a text, each once, in order.

    >>> names_in("What did Lady Ambrose say of the Tower of Ashur on Monday?", language="en")
    ['Lady Ambrose', 'Tower of Ashur']
    >>> names_in("Was hat Ritter Gottwin am Montag zu meinem Bruder gesagt?", language="de")
    ['Ritter Gottwin']
    """
    found = _finder(primary_language(language)).names_in(text, taken=(), nobody=())
    return list(dict.fromkeys(name.text for name in found))


def _may_be_of_a_name(word: Word, taken: Collection[tuple[int, int]]) -> bool:
    return (
        word.is_capital
        and not word.text.isupper()
        and word.text.lower() not in ("i", "i'm", "i'll", "i've", "i'd")
        and "'" not in word.text[:-2]
        and not _overlaps(word, taken)
    )


def _is_cast(before: str) -> bool:
    return _CASTS.search(before[-20:]) is not None


def _overlaps(word: Word, spans: Collection[tuple[int, int]]) -> bool:
    return any(start < word.end and word.start < end for start, end in spans)


def _is_mixed_case(spoken: tuple[Word, ...]) -> bool:
    """Return whether the text has mixed case. Otherwise capitals do not indicate names."""
    return any(word.is_capital for word in spoken) and any(not word.is_capital for word in spoken)
