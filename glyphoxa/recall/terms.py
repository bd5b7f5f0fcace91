"""Split utterances and questions into search terms, and classify utterances."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntFlag
from typing import TypeAlias

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.language.language_data import capitalises_nouns, lexicon, vocabulary_of
from glyphoxa.language.text import Text, stemmer_of
from glyphoxa.language.words import I_FORMS, Word, words
from glyphoxa.recall.table_calendar import TableTimes
from glyphoxa.recall.time_reader import MOST_CHARACTERS, MOST_WORDS, TimeAsk, read_time, read_words, tells_time

# -- terms
#
# Search terms: words stemmed in the campaign's language, and unstemmed names.
#
# The index has a name twice, unstemmed (`=grimjaw`) and as a word. A question with a capital letter finds only the name
# ("Has Will come?" does not find what somebody will do). A question in small letters, as a recogniser may write it,
# finds it as well.

NAME = "="


SearchTerms: TypeAlias = tuple[str, ...]
"""Terms of the index, each once, in the order of the question."""


class Terms:
    """The terms of one language.

    Args:
        language: BCP 47 tag. Without a stemmer, words are compared unchanged; without stop words, only rarity weighs
            them.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._stop = vocabulary_of(language).stop
        self._capital_says_name = not capitalises_nouns(language)
        read_words(language)  # load the patterns now, not while a player waits for audio
        self._stem = stemmer_of(language)

    def of_turn(self, speaker: str, text: str) -> Counter[str]:
        """Count the terms of an utterance, its speaker's name included.

        A capital letter at the start may be a name's.
        """
        terms: Counter[str] = Counter()
        for word in words(speaker):
            terms.update(self._of(word, is_name=True))
        for word in words(text):
            may_be_name = self._capital_says_name and word.is_capital and word.folded not in I_FORMS
            terms.update(self._of(word, is_name=may_be_name))
        return terms

    def of_question(self, question: str) -> SearchTerms:
        """Return the terms of a question; of a longer one, of the last 200 words."""
        found: dict[str, None] = {}
        for word in words(question)[-MOST_WORDS:]:
            if self.is_name(word):
                found[NAME + word.folded] = None
            elif word.folded not in self._stop:
                found[self._stem(word.folded)] = None
        return tuple(found)

    def is_name(self, word: Word) -> bool:
        """Return whether a word is written like a name only."""
        return self._capital_says_name and word.is_named

    def _of(self, word: Word, *, is_name: bool) -> Iterable[str]:
        if is_name:
            yield NAME + word.folded
        if word.folded not in self._stop:
            yield self._stem(word.folded)


# -- traits
#
# Properties of an utterance that show whether it may answer a question.

_ASKS = re.compile(r"[?？][\s\"'”’»)\]]*$")


class Trait(IntFlag):
    """
    Attributes:
        ASKS: It ends with a question.
        TELLS_TIME: It contains the time of an event ("yesterday", "in June").
    """

    ASKS = 1
    TELLS_TIME = 2


def traits_of(text: str, *, language: str) -> Trait:
    found = Trait(0)
    if _ASKS.search(text):
        found |= Trait.ASKS
    if tells_time(text, language=language):
        found |= Trait.TELLS_TIME
    return found


# -- question
#
# A question as recall uses it: its words, the speakers and times in it, and the text to embed.


_SHORTEST = 3
"""Letters of a short form of a name."""


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """
    Attributes:
        text: The question in the asker's words; only the end if it is very long.
        terms: Search terms, without names of speakers; see `speakers`.
        speakers: Names of heard speakers that the question contains.
        meaning: The text to embed. People say "I" about themselves: "When did I go to the fair?" is nearer to "I went
            to the fair" than the same with a name. On five conversations of LoCoMo this raises R@10 of meaning alone
            from 44.5 to 62.4.
        time: The times in it.
        now_ms: When it is asked, milliseconds since the Unix epoch.
        times: How the table counts time.
        vector: Its embedding, of unit length; None: search by words only.
    """

    text: str
    terms: SearchTerms
    speakers: frozenset[str]
    meaning: str
    time: TimeAsk
    now_ms: int
    times: TableTimes = field(default_factory=TableTimes, compare=False)
    vector: NDArray[float32] | None = field(default=None, compare=False)


def read_question(
    text: str, *, terms: Terms, speakers: Collection[str], now_ms: int, times: TableTimes | None = None
) -> RecallQuestion:
    """
    Args:
        speakers: Names of the speakers whom the viewer has heard.
        now_ms: Milliseconds since the Unix epoch.
        times: How the table counts time; by default in UTC.
    """
    times = times or TableTimes()
    text = " ".join(text[-MOST_CHARACTERS:].split())
    asked = terms.of_question(text)
    named: set[str] = set()
    spoken: set[str] = set()
    meaning = text
    for name, called in _called_in(text, speakers, terms):
        named.add(name)
        spoken |= {NAME + word.folded for word in words(called)} | Text.of(called).telling(terms.language)
        meaning = _as_self(meaning, called, terms.language)
    return RecallQuestion(
        text,
        tuple(term for term in asked if term not in spoken),
        frozenset(named),
        meaning,
        read_time(text, language=terms.language, days=times.days(now_ms), story=times.campaign),
        now_ms,
        times,
    )


def _called_in(text: str, speakers: Collection[str], terms: Terms) -> Iterator[tuple[str, str]]:
    """Yield the speakers in a question, the longest name first, each with the words for it.

    Those are the whole name, its first part, unless that is a function word, as in "The Ferryman", and a word that
    starts the first part of exactly one name ("Mel" for "Melanie") and is nobody's own.
    """
    firsts = {name: name.partition(" ")[0] for name in speakers}
    known = set(firsts.values())
    said = {word.text for word in words(text)[-MOST_WORDS:] if terms.is_name(word) and len(word.text) >= _SHORTEST}
    short: dict[str, list[str]] = {}
    for called in sorted(said - known):
        meant = [first for first in known if first.startswith(called)]
        if len(meant) == 1 and Text.of(called).stems(terms.language):
            short.setdefault(meant[0], []).append(called)
    for name in sorted(speakers, key=len, reverse=True):
        first = firsts[name]
        if first not in text and first not in short:
            continue  # most are not in the question, and a close look takes longer than all the rest
        ways = dict.fromkeys((name, first) if Text.of(first).stems(terms.language) else (name,))
        for called in (*ways, *short.get(first, ())):
            if len(called) > 1 and re.search(rf"\b{re.escape(called)}\b", text):
                yield name, called


def _as_self(text: str, name: str, language: str) -> str:
    """Replace a name by "I" and "my"; leave it in a language without words for them.

    A name is written with a capital letter, because somebody may be called Will.
    """
    own = lexicon("recall", language).value("self")
    if own is None:
        return text
    escaped = re.escape(name)
    text = re.sub(rf"\b{escaped}['’]s\b", own[1], text)
    return re.sub(rf"\b{escaped}\b", own[0], text)
