"""Finds names that the campaign does not know yet, by how they are written and introduced."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from math import exp
from typing import Final, TypeAlias

from glyphoxa.language.language_data import (
    UNLISTED,
    Vocabulary,
    capitalises_nouns,
    lexicon,
    primary_language,
    vocabulary_of,
)
from glyphoxa.language.roles import ARTICLES, KIN, TITLES, trades_of
from glyphoxa.language.text import Weights, log_odds, shipped
from glyphoxa.language.words import I_FORMS, Word, words

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
_OF_SHAPE: Final = 0.65
_LEAST: Final = 0.5
"""Probability of a name. `python -m benchmarks.new_names` measures it."""
_LEAST_ASKED: Final = 0.2
"""The same in a question."""
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


Signs: TypeAlias = frozenset[str]
Spans: TypeAlias = Collection[tuple[int, int]]
_Run: TypeAlias = tuple[Word, ...]


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
        self._weights: Weights = shipped(__package__, "new_names")["de" if self._has_capital_nouns else "en"]
        self._least = _LEAST_ASKED if is_asked else _LEAST

    def names_in(self, text: str, *, taken: Spans, nobody: Collection[str]) -> Iterator[NewName]:
        """Return the new names in a text.

        Args:
            taken: Spans of known names. A new name may contain some of them: "Thornmere Mill".
            nobody: Normalised names outside the story: those of the players.
        """
        weighed = self.candidates_in(text, taken=taken, nobody=nobody)
        return (name for name, _ in weighed if name.confidence >= self._least)

    def candidates_in(self, text: str, *, taken: Spans, nobody: Collection[str]) -> Iterator[tuple[NewName, Signs]]:
        """Yield what is written like a name, with the signs by which a fitted model weighs it. See `names_in`."""
        spoken, at = words(text), 0
        while at < len(spoken) and _is_mixed_case(spoken):
            run = self._run(spoken, at, taken)
            place, name = self._trimmed(spoken, at, run, taken)
            if name and self._may_be_new(text, name, taken, nobody):
                written = text[name[0].start : name[-1].end - len(name[-1].tail)]
                signs = self._signs(text, spoken, place, name, taken)
                sure = round(1 / (1 + exp(-log_odds(signs, self._weights))), 2)
                yield NewName(written, self._kind(spoken, place, name), name[0].start, name[-1].end, sure), signs
            at += max(len(run), 1)

    def terms_in(self, text: str, *, taken: Spans, nobody: Collection[str]) -> Iterator[NewName]:
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
            yield name
        for before, word, after in zip(spoken, spoken[1:], (*spoken[2:], None), strict=False):
            is_alone = after is None or not (after.joins and after.is_capital)
            is_free = word.folded not in nobody and not _overlaps(word, spans)
            if is_alone and is_free and self._is_called_the(before, word):
                yield NewName(word.text, CONCEPT, word.start, word.end, _OF_SHAPE)

    def _is_called_the(self, before: Word, word: Word) -> bool:
        """Return whether a word is a name only because it has a capital after an article."""
        if self._has_capital_nouns or before.folded not in ARTICLES or not word.joins or word.opens or word.tail:
            return False
        known = word.folded in TITLES or is_occupation(word.folded) or any(word.folded in of for of in _KINDS.values())
        is_of_the_story = word.folded not in _NOT_OF_THE_STORY
        return self._may_be_of_a_name(word) and not known and is_of_the_story and len(word.text) > 2

    def _is_shaped(self, word: Word, nobody: Collection[str]) -> bool:
        if word.folded in nobody or word.folded in _NOT_OF_THE_STORY or not word.text.isalpha():
            return False
        if word.text.isupper():
            return len(word.text) >= _SHORTEST and _NUMERAL.fullmatch(word.text) is None
        inside = next((n for n, letter in enumerate(word.text) if n and letter.isupper()), 0)
        return inside > 0 and word.text[:inside].lower() not in _PREFIXES

    def _run(self, spoken: _Run, at: int, taken: Spans) -> _Run:
        """Return the run of capitalised words from this position. Only behind "of" it contains known names."""
        if not self._may_be_of_a_name(spoken[at]) or _overlaps(spoken[at], taken):
            return ()
        end = at + 1
        while end < len(spoken) and end - at < _MAX_WORDS and spoken[end].joins and not spoken[end - 1].tail:
            is_free = not _overlaps(spoken[end], taken) or _overlaps(spoken[end - 1], taken)
            if self._may_be_of_a_name(spoken[end]) and is_free:
                end += 1
            elif (n := self._joining(spoken, end)) > 0:
                end += n + 1
            else:
                break
        return spoken[at:end]

    def _joining(self, spoken: _Run, at: int) -> int:
        """Count the small words between two parts of a name: "of", "of the"."""
        is_joined = spoken[at].folded in _JOINED_BY or (self._is_asked and spoken[at].folded == "the")
        if self._has_capital_nouns or not is_joined:
            return 0
        n = 2 if at + 1 < len(spoken) and spoken[at + 1].folded == "the" else 1
        return n if at + n < len(spoken) and self._may_be_of_a_name(spoken[at + n]) else 0

    def _trimmed(self, spoken: _Run, at: int, run: _Run, taken: Spans) -> tuple[int, _Run]:
        """Return the run and its place without the words around a name, but with a known one: "Thornmere Mill"."""
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
        if not self._has_capital_nouns and not any(map(self._is_unheard, run)):
            while run and at and run[0].joins and not spoken[at - 1].tail and _overlaps(spoken[at - 1], taken):
                at, run = at - 1, (spoken[at - 1], *run)
        return at, run

    def _may_be_new(self, text: str, run: _Run, taken: Spans, nobody: Collection[str]) -> bool:
        name, first = "".join(each.folded for each in run), run[0]
        if len(name) < _SHORTEST or not {name, *(each.folded for each in run)}.isdisjoint(nobody):
            return False
        if len(run) > 1 or _CALLED.search(text[max(first.start - 40, 0) : first.start]):
            return not all(_overlaps(each, taken) for each in run)
        if self._is_asked and not self._has_capital_nouns:
            return not first.opens and first.folded not in TITLES
        is_listed = not self._is_unheard(first) and first.folded not in self._vocabulary.proper
        return not is_listed and not (self._has_capital_nouns and first.opens)

    def _signs(self, text: str, spoken: _Run, at: int, run: _Run, taken: Spans) -> Signs:
        """Return the signs of a run of words for the model that tells whether it is a new name."""
        n, n_unlisted, end = len(run), sum(map(self._is_unheard, run)), at + len(run)
        number = "one" if n == 1 else "several"
        shape = f"{number} {'listed' if not n_unlisted else 'unlisted' if n_unlisted == n else 'partly listed'}"
        folded = [each.folded for each in run]
        before, after = text[: run[0].start].rstrip(), text[run[-1].end : run[-1].end + 1]
        is_followed = end < len(spoken) and spoken[end].joins
        signs = {
            f"{min(n, 4)} words": True,
            shape: True,
            f"{shape}, opens a {'clause' if is_followed else 'gap'}": run[0].opens,
            f"{number}, rarity up to {max(map(self._rarity, folded))}": not n_unlisted,
            f"{number}, proper {max(self._vocabulary.proper.get(word, 0) for word in folded)}": True,
            f"before: {self._listed(spoken[at - 1]) if at and run[0].joins else before[-1:]}": True,
            f"after: {self._listed(spoken[end]) if is_followed else after}": True,
            f"{number}, like a noun": at > 0 and spoken[at - 1].folded in _BEFORE_NOUNS,
            f"{number}, an adjective first": self._has_capital_nouns and self._begins_a_name(run[0]),
            "called": _CALLED.search(f"{before[-40:]} ") is not None,
            "a title": n > 1 and folded[0] in TITLES,
            "a joining word": not all(each.is_capital for each in run),
            "in brackets": before.rfind("(") > before.rfind(")") or before.rfind("[") > before.rfind("]"),
            "a known part": any(_overlaps(each, taken) for each in run),
            f"a line of {len(spoken).bit_length()} bits": True,
            **{f"a word of {kind}": not of.isdisjoint(folded) for kind, of in _KINDS.items()},
        }
        return frozenset(sign for sign, has in signs.items() if has)

    def _listed(self, word: Word) -> str:
        return word.folded if self._rarity(word.folded) < UNLISTED else "an unlisted word"

    def _may_be_of_a_name(self, word: Word) -> bool:
        if not word.is_capital or word.text.isupper() or word.folded in I_FORMS:
            return False
        return "'" not in word.text[:-2] or self._is_unheard(word)  # "K'varn" may be one, "You're" may not

    def _begins_a_name(self, word: Word) -> bool:
        return word.folded in TITLES or (
            not word.opens
            and any(word.folded.endswith(ending) for ending in _ADJECTIVE_ENDINGS)
            and word.folded not in self._vocabulary.stop
            and self._rarity(word.folded) < UNLISTED
        )

    def _is_unheard(self, word: Word) -> bool:
        return (
            self._rarity(word.folded) >= UNLISTED
            and word.folded not in _NOT_OF_THE_STORY
            and not (self._has_capital_nouns and is_occupation(word.text.lower()))
        )

    def _kind(self, spoken: _Run, at: int, run: _Run) -> str:
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
def name_finder(language: str, *, is_asked: bool = False) -> NameFinder:
    """Return the finder for a language; the same one for the same tag."""
    return NameFinder(language, is_asked=is_asked)


def names_in(text: str, *, language: str) -> list[str]:
    """Return the names written within the sentences of a text, each once, in order.

    >>> names_in("What did Lady Ambrose say of the Tower of Ashur on Monday?", language="en")
    ['Lady Ambrose', 'Tower of Ashur']
    >>> names_in("Was hat Ritter Gottwin am Montag zu meinem Bruder gesagt?", language="de")
    ['Ritter Gottwin']
    """
    finder = name_finder(primary_language(language), is_asked=True)
    found = finder.names_in(text, taken=(), nobody=())
    return list(dict.fromkeys(name.text for name in found))


def _overlaps(word: Word, spans: Spans) -> bool:
    return any(start < word.end and word.start < end for start, end in spans)


def _is_mixed_case(spoken: _Run) -> bool:
    """Return whether the text has mixed case. Otherwise capitals do not indicate names."""
    return any(word.is_capital for word in spoken) and any(not word.is_capital for word in spoken)
