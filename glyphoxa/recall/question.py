"""A question as memory reads it: its words, whom it names, what it says of time, and how its meaning is asked for."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.language.vocabulary import primary_language
from glyphoxa.language.words import words
from glyphoxa.recall.temporal.days import Days
from glyphoxa.recall.temporal.evenings import TableTimes
from glyphoxa.recall.temporal.reader import TimeAsk, read_time
from glyphoxa.recall.terms import MOST_WORDS, NAME, SearchTerms, Terms

MOST_CHARACTERS = 2_000
"""Of a question; the end of a longer one is what is asked."""
_ANY_DAY_MS = 1_700_000_000_000
"""That a time is told does not depend on the day."""
_SHORTEST = 3
"""Letters of a short form of a name."""
_SELF = {"en": ("I", "my"), "de": ("ich", "mein")}


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """
    Attributes:
        text: As it was asked, its end if it is very long.
        terms: What is looked for among words; the names of speakers are not among them, see `speakers`.
        speakers: Names of those who were heard speaking and whom the question names.
        meaning: What is embedded. Who tells of themselves says "I": "When did I go to the fair?" is nearer to "I went
            to the fair" than the same with a name. On five conversations of LoCoMo this raises R@10 of meaning alone
            from 44.5 to 62.4.
        time: What it says of time.
        now_ms: When it is asked, milliseconds since the Unix epoch.
        times: How the table tells it.
        vector: What it means, of unit length; None: it is asked by its words alone.
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
        speakers: Names of those whom the one who remembers has heard.
        now_ms: Milliseconds since the Unix epoch.
        times: How the table tells the time; by default in UTC.
    """
    times = times or TableTimes()
    text = " ".join(text[-MOST_CHARACTERS:].split())
    asked = terms.of_question(text)
    named: set[str] = set()
    spoken: set[str] = set()
    meaning = text
    short = _short_names(text, speakers, terms)
    for name in sorted(speakers, key=len, reverse=True):
        if name.partition(" ")[0] not in text and name not in short:
            continue  # most are not named, and to look for them closely takes longer than all the rest
        for called in (*_ways_to_call(name, terms), *short.get(name, ())):
            if re.search(rf"\b{re.escape(called)}\b", text):
                named.add(name)
                spoken |= {NAME + word.folded for word in words(called)} | set(terms.stems(called))
                meaning = _as_self(meaning, called, terms.language)
    return RecallQuestion(
        text,
        SearchTerms(tuple(term for term in asked.words if term not in spoken)),
        frozenset(named),
        meaning,
        _read_time(text, terms.language, now_ms, times),
        now_ms,
        times,
    )


def asks_for_a_time(text: str, *, language: str) -> bool:
    """Whether a question asks for what happened, or tells when: more than what is like it bears on it."""
    ask = read_time(text[-MOST_CHARACTERS:], language=language, days=Days(_ANY_DAY_MS))
    return ask.asks_for_recap or ask.asks_for_order or ask.tells_a_time


def _read_time(text: str, language: str, now_ms: int, times: TableTimes) -> TimeAsk:
    days = Days(now_ms, times.zone)
    ask = read_time(text, language=language, days=days, story=times.story)
    if ask.window is None:
        return ask
    # Only where a day is told does it matter whether it still is the one on which the evening began.
    here = times.days(now_ms)
    return ask if here == days else read_time(text, language=language, days=here, story=times.story)


def _ways_to_call(name: str, terms: Terms) -> list[str]:
    """Somebody's whole name, and the first part of it: unless that is a little word, as in "The Ferryman"."""
    first = name.partition(" ")[0]
    ways = [name] if first == name or not any(terms.stems(first)) else [name, first]
    return [way for way in ways if len(way) > 1]


def _short_names(text: str, speakers: Collection[str], terms: Terms) -> dict[str, list[str]]:
    """Words of a question that are the beginning of the first part of one name and of no other, as "Mel" is of
    "Melanie": by the name of whom they mean. Whoever is called so in full is meant.
    """
    said = {word.text for word in words(text)[-MOST_WORDS:] if terms.is_name(word) and len(word.text) >= _SHORTEST}
    if not said:
        return {}
    by_first: dict[str, list[str]] = {}
    for name in speakers:
        by_first.setdefault(name.partition(" ")[0], []).append(name)
    found: dict[str, list[str]] = {}
    for short in sorted(said - by_first.keys()):
        meant = [first for first in by_first if first.startswith(short)]
        if len(meant) == 1 and any(terms.stems(short)):
            for name in by_first[meant[0]]:
                found.setdefault(name, []).append(short)
    return found


def _as_self(text: str, name: str, language: str) -> str:
    """With "I" and "my" in place of a name; the name itself in a language whose words for them are not known here. A
    name is written with a capital letter: somebody may be called Will.
    """
    if not name.strip() or name not in text:
        return text
    own = _SELF.get(primary_language(language))
    if own is None:
        return text
    escaped = re.escape(name)
    text = re.sub(rf"\b{escaped}['’]s\b", own[1], text)
    return re.sub(rf"\b{escaped}\b", own[0], text)
