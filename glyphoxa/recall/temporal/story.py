"""Days of a story that a sentence names: "day 12", "the third of Hammer", "in Hammer", "before Midwinter"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from glyphoxa.domain.calendar import StoryCalendar, StoryDays, name_words
from glyphoxa.recall.temporal.days import Days, TimeWindow
from glyphoxa.recall.temporal.words import Relation, TimeWords, day_before
from glyphoxa.speech.language.words import Word, fold

_LINKS: Final = frozenset(("of", "the", "in", "im", "des", "year", "jahr", "jahre", "jahres"))
_MOST_LINKS: Final = 3
_SHORTEST_MONTH: Final = 10
"""Shorter ones are festivals, and nobody means them by "last month"."""


@dataclass(frozen=True, slots=True)
class Story:
    """
    Attributes:
        today: The day that it stands at; None if nobody has said.
    """

    calendar: StoryCalendar
    today: int | None = None

    @property
    def year(self) -> int | None:
        if self.today is None or not self.calendar.months:
            return None
        return self.calendar.date_of(self.today)[0]

    def month(self, nth: int, *, day: int | None, year: int | None) -> StoryDays | None:
        """A month or one of its days; without a year the latest that has begun. None if there is no such day, or
        nobody has said which year it is.
        """
        if year is not None:
            return self.calendar.days_of(nth, year=year, day=day)
        if self.today is None or self.year is None:
            return None
        found = self.calendar.days_of(nth, year=self.year, day=day)
        if found is not None and found.first is not None and found.first > self.today:
            return self.calendar.days_of(nth, year=self.year - 1, day=day)
        return found

    def weekday(self, nth: int) -> StoryDays | None:
        """The latest such day before today."""
        if self.today is None:
            return None
        back = (self.calendar.weekday_of(self.today) - nth) % len(self.calendar.weekdays)
        return StoryDays(*[self.today - (back or len(self.calendar.weekdays))] * 2)

    def of_window(self, window: TimeWindow, days: Days) -> StoryDays | None:
        """Days as far from its today as the span is from ours: at a table "yesterday" may be either."""
        if self.today is None:
            return None
        first = None if window.from_ms is None else self.today + days.day_of(window.from_ms) - days.today
        last = None if window.until_ms is None else self.today + days.day_of(window.until_ms - 1) - days.today
        return StoryDays(first, last)

    def of_unit(self, unit_days: float, ago: int) -> StoryDays | None:
        """This month or year of the story, or the last one; None where it has none, or another unit is meant."""
        if self.today is None or self.year is None:
            return None
        if round(unit_days) == 365:
            first = (self.year - ago) * self.calendar.days_a_year
            return StoryDays(first, first + self.calendar.days_a_year - 1)
        months = [nth for nth, (_, length) in enumerate(self.calendar.months) if length >= _SHORTEST_MONTH]
        if round(unit_days) != 30 or not months:
            return None
        now = self.calendar.date_of(self.today)[1]
        at = max((place for place, nth in enumerate(months) if nth <= now), default=-1) - ago
        return self.calendar.days_of(months[at % len(months)], year=self.year + at // len(months))


class _Name(NamedTuple):
    words: tuple[str, ...]
    nth: int
    is_weekday: bool


def story_days_in(spoken: Sequence[Word], words: TimeWords, story: Story) -> tuple[StoryDays, int, int] | None:
    """The first day, month or weekday of the story that is named, with its first and last word; None if none is.

    A name that is an ordinary word too ("Hammer") needs a day or a year beside it, or a word such as "in" before it.
    """
    tokens = [word.full for word in spoken]
    names = _names(story.calendar)
    for at, token in enumerate(tokens):
        found = None
        if not story.calendar.months and token in words.day_words:
            found = _counted(at, tokens, words)
        for name in names.get(token, ()):
            if found is None and tuple(tokens[at : at + len(name.words)]) == name.words:
                found = _named(name, at, tokens, words, story)
        if found is not None:
            return found
    return None


def names_in_story(calendar: StoryCalendar) -> Mapping[str, object]:
    """The words with which its names begin, folded."""
    return _names(calendar)


def story_related(days: StoryDays, relation: Relation) -> StoryDays:
    """What is before them, after them, ..."""
    match relation:
        case "before":
            return StoryDays(None, None if days.first is None else days.first - 1)
        case "until":
            return StoryDays(None, days.last)
        case "after":
            return StoryDays(None if days.last is None else days.last + 1, None)
        case "since":
            return StoryDays(days.first, None)
        case _:
            return days


@lru_cache(maxsize=16)
def _names(calendar: StoryCalendar) -> dict[str, list[_Name]]:
    """By their first word, the longest first."""
    every = [(name, nth, False) for nth, (name, _) in enumerate(calendar.months)]
    every += [(name, nth, True) for nth, name in enumerate(calendar.weekdays)]
    found: dict[str, list[_Name]] = {}
    for name, nth, is_weekday in every:
        own = tuple(fold(word) for word in name_words(name))
        if own:
            found.setdefault(own[0], []).append(_Name(own, nth, is_weekday))
    return {first: sorted(names, key=lambda name: -len(name.words)) for first, names in found.items()}


def _counted(at: int, tokens: Sequence[str], words: TimeWords) -> tuple[StoryDays, int, int] | None:
    day = _number(tokens, at + 1)
    if day is not None:
        return StoryDays(day, day), at, at + 1
    day, first = day_before(at - 1, tokens, words)
    if day is not None and tokens[max(0, first - 1)] in words.articles:
        return StoryDays(day, day), first, at
    return None


def _named(
    name: _Name, at: int, tokens: Sequence[str], words: TimeWords, story: Story
) -> tuple[StoryDays, int, int] | None:
    last = at + len(name.words) - 1
    if name.is_weekday:
        weekday = story.weekday(name.nth) if _is_placed(at, tokens, words, at_once=True) else None
        return None if weekday is None else (weekday, at, last)
    length = story.calendar.months[name.nth][1]
    day, first, last = _day_beside(at, last, length, tokens, words)
    year, last = _year_after(last, tokens, story)
    is_day = length == 1
    if day is None and year is None and not _is_placed(first, tokens, words, at_once=not is_day):
        return None
    days = story.month(name.nth, day=day, year=year)
    return None if days is None else (days, first, last)


def _is_placed(first: int, tokens: Sequence[str], words: TimeWords, *, at_once: bool) -> bool:
    """Whether a word such as "in" stands before it.

    Args:
        at_once: Without an article between them: "in the Hammer" is no month.
    """
    before = first - 1
    if not at_once and before > 0 and tokens[before] in words.articles:
        before -= 1
    token = tokens[before] if before >= 0 else ""
    return token in words.in_year or token in words.on_day


def _day_beside(
    at: int, last: int, length: int, tokens: Sequence[str], words: TimeWords
) -> tuple[int | None, int, int]:
    """Day of a month, first and last word of both: "the 3rd of Hammer", "3 Hammer", "Hammer 3". A day that the month
    does not have is one of no month.
    """
    if length == 1:
        return None, at, last
    before = at - 1
    if before > 0 and tokens[before] in ("of", "the", "des"):
        before -= 1 + (before > 1 and tokens[before] == "the" and tokens[before - 1] == "of")
    is_linked = before == at - 1 or tokens[before + 1] in ("of", "des")
    if is_linked and before > 0 and tokens[before] in words.day_words:
        before -= 1  # "the third day of Hammer"
    day, first = day_before(before, tokens, words)
    if day is None:
        day = _number(tokens, before)
    if day is not None and is_linked:
        return day, first, last
    following = _number(tokens, last + 1)
    return (following, at, last + 1) if following is not None and following <= length else (None, at, last)


def _year_after(last: int, tokens: Sequence[str], story: Story) -> tuple[int | None, int]:
    at = last + 1
    while at < len(tokens) and at <= last + _MOST_LINKS and tokens[at] in _LINKS:
        at += 1
    year = _number(tokens, at)
    is_told = year is not None and (year >= 100 or at > last + 1 or (story.year or 0) < 100)
    return (year, at) if is_told else (None, last)


def _number(tokens: Sequence[str], at: int) -> int | None:
    token = tokens[at] if 0 <= at < len(tokens) else ""
    digits = token[:-2] if token[-2:] in ("st", "nd", "rd", "th") else token
    return int(digits) if digits.isdecimal() and len(digits) <= 6 else None
