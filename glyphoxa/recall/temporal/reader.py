"""Reads what a question says of time: "last week", "before the feast", "the first time we met".

Rules over the words of a language, and no library: a general date parser (dateparser) takes milliseconds to look
through a sentence, knows nothing of sessions and events, and reads "may" and "second" as dates. Reading takes about
0.1 ms and knows no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from glyphoxa.recall.temporal.ask import NO_TIME, TimeAsk
from glyphoxa.recall.temporal.days import Days
from glyphoxa.recall.temporal.reading import Reading
from glyphoxa.recall.temporal.story import Story, names_in_story
from glyphoxa.recall.temporal.words import TimeWords
from glyphoxa.recall.temporal.words_de import GERMAN
from glyphoxa.recall.temporal.words_en import ENGLISH
from glyphoxa.speech.language.phonetics import primary_language
from glyphoxa.speech.language.words import words

MOST_CHARACTERS: Final = 2_000
MOST_WORDS: Final = 200
"""Only the end of a long speech is read: it is what is asked."""
_LANGUAGES: Final[Mapping[str, TimeWords]] = {"en": ENGLISH, "de": GERMAN}


def read_time(question: str, *, language: str, days: Days, story: Story | None = None) -> TimeAsk:
    """What the question says of time. Of a language without tables nothing is read; no text is an error.

    Args:
        language: BCP 47 tag: "en", "de-AT".
        days: From which "last week" counts.
        story: If it counts its days: then those are read as well.

    >>> read_time("What happened last session?", language="en", days=Days(now_ms=0)).place
    SessionReference(kind='session', back=1, number=None, relation='during', part=None)
    """
    table = _LANGUAGES.get(primary_language(language))
    if table is None:
        return NO_TIME
    left_out = max(0, len(question) - MOST_CHARACTERS)
    spoken = words(question[left_out:])[-MOST_WORDS:]
    tokens = {word.full for word in spoken}
    may_tell = bool(tokens & table.triggers) or any(token.isdecimal() for token in tokens)
    if not may_tell and (story is None or tokens.isdisjoint(names_in_story(story.calendar))):
        return NO_TIME
    return Reading(question, left_out, spoken, table, days, story).read()


def tells_time(text: str, *, language: str) -> bool:
    """Whether an utterance tells when something was: "yesterday", "two weeks ago", "in June 2023".

    An answer to "when did ...": on five conversations of LoCoMo, 0.2 more for such turns raises the mean reciprocal
    rank of temporal questions by 6.2 points (95 % interval 4.0 to 8.7).
    """
    table = _LANGUAGES.get(primary_language(language))
    if table is None:
        return False
    spoken = [word.full for word in words(text)]
    if any(word in table.tells or _is_year(word) for word in spoken):
        return True
    return table.tells_phrases.search(" ".join(spoken)) is not None


def _is_year(word: str) -> bool:
    return len(word) == 4 and word[:2] in ("19", "20") and word.isdecimal()
