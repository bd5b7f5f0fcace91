"""What a language must tell for its times to be read: tables, no decisions.

All words are folded (see `glyphoxa.speech.language.words.fold`): "März" is "marz". A phrase is a regular expression
over such words set apart by single spaces, in which `{n}` stands for an amount, `{u}` for a unit, `{o}` for an ordinal,
`{w}` for a weekday and `{s}` for a season. Its repetitions are bounded, so that reading stays linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Relation = Literal["before", "after", "since", "until", "during"]
Part = Literal["beginning", "middle", "end"]

SESSION, WEEKEND, NIGHT = 0.0, -1.0, -2.0
"""Units that are no number of days."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """
    Attributes:
        kind: What it says; `glyphoxa.recall.temporal.reader` knows them.
        begins: One of these words must be there: most phrases need not be looked for.
    """

    kind: str
    begins: frozenset[str]
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class TimeWords:
    """One language.

    Attributes:
        months: To 1 to 12.
        doubtful: Months and seasons that are ordinary words as well, and need more than themselves.
        month_after: Words after which a doubtful month is one.
        tens: Words that an ordinal behind them is added to: "twenty" in "twenty-fifth".
        units: To days, or one of the units that are none.
        seasons: To the number of their first month.
        relations: Words that stand before a moment, or before an event.
        vague: Amounts that are no numbers.
        dates_only: Of the relations those that stand before dates alone, and before no event.
        needs_article: Of the relations those that may as well be of place: an event follows them with an article.
        needs_clause: Those that begin a clause, and so stand before a pronoun or an article.
        pairs: Two words that are one relation, to the one that stands for it ("prior to").
        clause_begins: Pronouns and articles.
        asks_alone: A relation that alone before a sentence asks for its time.
        stops: Where the words of an event end, as another clause begins.
        hollow: Words that alone name no event.
        day_first: Whether "8.5.2023" is certain to be in May.
        in_year: Words after which four digits are a year.
        day_words: "day", before a number of the story.
        on_day: Words after which the name of a day of the story is one.
        parts: What stands before a span and means only its beginning, middle or end.
        amount: An amount of time at the end of a text ("two weeks", "the Monday").
        tells: Words by which a turn tells a time.
        tells_phrases: Likewise, of more than one word.
    """

    months: Mapping[str, int]
    doubtful: frozenset[str]
    month_after: frozenset[str]
    numbers: Mapping[str, int]
    ordinals: Mapping[str, int]
    tens: Mapping[str, int]
    units: Mapping[str, float]
    weekdays: Mapping[str, int]
    seasons: Mapping[str, int]
    relations: Mapping[str, Relation]
    vague: frozenset[str]
    dates_only: frozenset[str]
    needs_article: frozenset[str]
    needs_clause: frozenset[str]
    pairs: Mapping[tuple[str, str], str]
    articles: frozenset[str]
    clause_begins: frozenset[str]
    asks_alone: frozenset[str]
    stops: frozenset[str]
    hollow: frozenset[str]
    day_first: bool
    in_year: frozenset[str]
    day_words: frozenset[str]
    on_day: frozenset[str]
    parts: tuple[tuple[Part, re.Pattern[str]], ...]
    amount: re.Pattern[str]
    phrases: tuple[Phrase, ...]
    tells: frozenset[str]
    tells_phrases: re.Pattern[str]
    triggers: frozenset[str]


def compiled(phrases: Iterable[tuple[str, str, str]], words: Mapping[str, Iterable[str]]) -> tuple[Phrase, ...]:
    """Phrases from kind, the words that one of must be there, and pattern.

    Args:
        words: What fills a slot of a pattern: `n` numbers, `o` ordinals (both also as digits) and so on.
    """
    digits = {"n": r"|\d{1,3}", "o": r"|\d{1,3}(?:st|nd|rd|th)"}
    slots = {slot: any_of(choice) + digits.get(slot, "") for slot, choice in words.items()}
    found = []
    for kind, begins, pattern in phrases:
        text = pattern
        for slot, choice in slots.items():
            text = text.replace("{" + slot + "}", f"(?P<{slot}>{choice})")
        found.append(Phrase(kind, frozenset(begins.split()), whole(text)))
    return tuple(found)


def day_before(at: int, tokens: Sequence[str], words: TimeWords) -> tuple[int | None, int]:
    """The number that an ordinal gives which ends there, and its first word: two in "twenty fifth"."""
    day = words.ordinals.get(tokens[at]) if 0 <= at < len(tokens) else None
    if day is not None and day < 10 and at and tokens[at - 1] in words.tens:
        return words.tens[tokens[at - 1]] + day, at - 1
    return day, at


def whole(pattern: str) -> re.Pattern[str]:
    """It matches whole words only."""
    return re.compile(rf"(?<!\S)(?:{pattern})(?!\S)")


def any_of(words: Iterable[str]) -> str:
    """The longest first."""
    return "|".join(sorted(words, key=len, reverse=True))


def set_of(*lines: str) -> frozenset[str]:
    """The words of those lines."""
    return frozenset(" ".join(lines).split())
