"""Story calendars: days counted by the story's own months and weekdays, or by number only.

A day is a number. With months, day 0 is the first day of year 0; without, the DM chooses the numbers. Months follow
each other without gaps, so a festival between two months is a month of one day.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Final

from glyphoxa.domain.errors import InvalidInput, did_you_mean

MAX_DAYS: Final = 1_000
"""Maximum number of days in a month."""
_SHORTEST_MONTH: Final = 10
"""Days of a month. Shorter ones are festivals, which nobody means by "last month"."""
_LAST_YEAR: Final = 999_999
_LAST_DAY: Final = 999_999_999
_WORD: Final = re.compile(r"\w+")
_NUMBER: Final = re.compile(r"(\d{1,9})(?:st|nd|rd|th)?")
_ARTICLES: Final = frozenset(("the", "der", "die", "das", "den", "dem"))
_LINKS: Final = _ARTICLES | {"of", "day", "on", "am", "tag", "des"}


@dataclass(frozen=True, slots=True)
class StoryDays:
    """A range of story days, both ends included; None is open."""

    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class StoryCalendar:
    """How a story counts its days.

    Args:
        months: Name and number of days of each month, in order; empty if days are only counted.
        weekdays: Names of the weekdays, in order. They continue without a break, also through festivals.
        first_weekday: Index of the weekday of day 0.
    """

    months: tuple[tuple[str, int], ...] = ()
    weekdays: tuple[str, ...] = ()
    first_weekday: int = 0

    @property
    def days_a_year(self) -> int:
        return sum(days for _, days in self.months)

    def days_of(self, month: int, *, year: int, day: int | None = None) -> StoryDays | None:
        """The days of a month (counted from 0), or one of its days; None if the month has no such day."""
        length = self.months[month][1]
        if day is not None and not 1 <= day <= length:
            return None
        begins = year * self.days_a_year + sum(days for _, days in self.months[:month])
        return StoryDays(begins, begins + length - 1) if day is None else StoryDays(*[begins + day - 1] * 2)

    def date_of(self, number: int) -> tuple[int, int, int]:
        """Year, month (from 0) and day (from 1). Requires months."""
        year, left = divmod(number, self.days_a_year)
        for month, (_, days) in enumerate(self.months):
            if left < days:
                return year, month, left + 1
            left -= days
        raise AssertionError("a year ends with its last month")

    def weekday_of(self, number: int) -> int:
        """Index of the day's weekday. Requires weekdays."""
        return (number + self.first_weekday) % len(self.weekdays)

    def in_words(self, number: int) -> str:
        """Format a day as `day_named` reads it: "12 Hammer 1492", "Midwinter 1492"; without months "12"."""
        if not self.months:
            return str(number)
        year, month, day = self.date_of(number)
        name, days = self.months[month]
        return " ".join([*([] if days == 1 else [str(day)]), name, *([str(year)] if year else [])])

    def day_named(self, text: str, *, year: int = 0) -> int:
        """Parse a date: "12 Hammer 1492", "Hammer 12", "Midwinter 1492"; without months "12" or "day 12".

        A weekday may precede the date, and an era may follow the year.

        Args:
            year: The year if the text has none.

        Raises:
            InvalidInput: There is no such day, or it falls on another weekday.
        """
        words = _words(text)
        weekday, words = self._weekday_in(words)
        number = self._number(text, words, year)
        if weekday is not None and self.weekday_of(number) != weekday:
            really = self.weekdays[self.weekday_of(number)]
            raise InvalidInput(f"{text!r} is a {really}, not a {self.weekdays[weekday]}")
        return number

    def settled(self, text: str) -> StoryCalendar:
        """The calendar aligned so that the day in `text` falls on the weekday written with it, if any.

        Raises:
            InvalidInput: There is no such day.
        """
        weekday, words = self._weekday_in(_words(text))
        if weekday is None:
            return self
        return replace(self, first_weekday=(weekday - self._number(text, words, 0)) % len(self.weekdays))

    @property
    def example(self) -> str:
        """An example date, for error messages."""
        if not self.months:
            return "12"
        longest = max(range(len(self.months)), key=lambda month: (self.months[month][1], -month))
        name, days = self.months[longest]
        return f"{name} 1492" if days == 1 else f"{min(12, days)} {name} 1492"

    def _weekday_in(self, words: list[str]) -> tuple[int | None, list[str]]:
        """The weekday at the start, if any, and the remaining words."""
        at = 1 if words and words[0] in _ARTICLES else 0
        for nth, name in enumerate(self.weekdays):
            own = name_words(name)
            if own and tuple(words[at : at + len(own)]) == own:
                return nth, words[at + len(own) :]
        return None, words

    def _number(self, text: str, words: list[str], year: int) -> int:
        return self._date(text, words, year) if self.months else self._count(text, words)

    def _count(self, text: str, words: list[str]) -> int:
        numbers = [word for word in words if word not in _LINKS]
        if len(numbers) != 1 or (match := _NUMBER.fullmatch(numbers[0])) is None:
            raise InvalidInput(f"{text!r} is not a day of the story: write a number like 12, as only days are counted")
        return min(int(match[1]), _LAST_DAY)

    def _date(self, text: str, words: list[str], year: int) -> int:
        read = self._read(words)
        if read is None:
            names = [name for name, _ in self.months]
            near = did_you_mean(next((w for w in words if not w[0].isdigit() and w not in _LINKS), ""), names)
            raise InvalidInput(f"{text!r} is not a day of the story: write it like {self.example!r} ({near})")
        month, day, named_year = read
        name, length = self.months[month]
        found = self.days_of(month, year=year if named_year is None else named_year, day=day)
        if found is None or found.first is None:
            raise InvalidInput(f"{text!r} is not a day of the story: {name} has days 1 to {length}")
        return found.first

    def _read(self, words: list[str]) -> tuple[int, int, int | None] | None:
        """Month (from 0), day, and year if present; None if the words are not a date."""
        found = self._month_in(words)
        if found is None:
            return None
        at, end, month = found
        before = [word for word in words[:at] if word not in _LINKS]
        after = words[end:]
        numbers = [int(match[1]) for match in map(_NUMBER.fullmatch, before) if match]
        if len(numbers) != len(before) or len(numbers) > 1:
            return None
        is_one_day = self.months[month][1] == 1
        for word in after:
            match = _NUMBER.fullmatch(word)
            if match is None:
                break  # an era
            numbers.append(int(match[1]))
        n_behind = len(numbers) - len(before)
        era = after[n_behind:]
        if any(word[0].isdigit() for word in era) or (era and not n_behind):
            return None
        if is_one_day and not before and len(numbers) < 2:
            numbers.insert(0, 1)
        if not 1 <= len(numbers) <= 2 or (len(numbers) == 2 and numbers[1] > _LAST_YEAR):
            return None
        return month, numbers[0], numbers[1] if len(numbers) == 2 else None

    def _month_in(self, words: Sequence[str]) -> tuple[int, int, int] | None:
        """Start, end (exclusive) and number of the longest month name in the words."""
        found = (
            (at, at + len(own), month)
            for month, own in enumerate(name_words(name) for name, _ in self.months)
            for at in range(len(words) - len(own) + 1)
            if tuple(words[at : at + len(own)]) == own
        )
        return max(found, key=lambda one: (one[1] - one[0], -one[0]), default=None)


@dataclass(frozen=True, slots=True)
class CampaignTimes:
    """How a campaign tells the time.

    Attributes:
        time_zone: IANA name; "" for the machine's time zone.
        calendar: None if the story does not count days.
        today: The current day of the story; None if unknown.
        sessions: The story days each session covered, where known.
        told: The story days of each session in order, each with the time from which it holds, in milliseconds since the
            Unix epoch.
    """

    time_zone: str = ""
    calendar: StoryCalendar | None = None
    today: int | None = None
    sessions: dict[str, StoryDays] = field(default_factory=dict)
    told: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def day_at(self, session: str | None, at_ms: int | None) -> int | None:
        """Return the story day at a time in a session; None if unknown."""
        told = self.told.get(session or "", [])
        then = [day for from_ms, day in told if at_ms is not None and from_ms <= at_ms] or [day for _, day in told[:1]]
        return then[-1] if then else None

    def day_named(self, text: str) -> int:
        """Parse a date like `StoryCalendar.day_named`.

        Without a year, choose the day nearest to today. Without a calendar, read a day number.

        Raises:
            InvalidInput: There is no such day.
        """
        calendar = self.calendar or StoryCalendar()
        if not calendar.months or self.today is None:
            return calendar.day_named(text)
        today, year = self.today, calendar.date_of(self.today)[0]
        near = {calendar.day_named(text, year=max(0, year + by)) for by in (0, -1, 1)}
        return min(near, key=lambda number: abs(number - today))

    def month(self, nth: int, *, day: int | None, year: int | None) -> StoryDays | None:
        """Return a month (from 0) or one of its days; without a year the latest that has started.

        None if there is no such day, or if the present year is unknown.
        """
        if self.calendar is None or (year is None and self.year is None):
            return None
        found = self.calendar.days_of(nth, year=(self.year or 0) if year is None else year, day=day)
        is_ahead = found is not None and found.first is not None and found.first > (self.today or 0)
        return found if year is not None or not is_ahead else self.month(nth, day=day, year=(self.year or 0) - 1)

    def weekday(self, nth: int) -> StoryDays | None:
        """Return the latest such day before today; None if today is unknown."""
        if self.calendar is None or self.today is None:
            return None
        n = len(self.calendar.weekdays)
        return StoryDays(*[self.today - ((self.calendar.weekday_of(self.today) - nth) % n or n)] * 2)

    def of_unit(self, unit: str, ago: int) -> StoryDays | None:
        """Return this year or month, or one so many before; None if it is unknown, or for another unit."""
        if self.calendar is None or self.today is None or self.year is None or unit not in ("year", "month"):
            return None
        if unit == "year":
            first = (self.year - ago) * self.calendar.days_a_year
            return StoryDays(first, first + self.calendar.days_a_year - 1)
        months = [nth for nth, (_, length) in enumerate(self.calendar.months) if length >= _SHORTEST_MONTH]
        if not months:
            return None
        now = self.calendar.date_of(self.today)[1]
        at = max((place for place, nth in enumerate(months) if nth <= now), default=-1) - ago
        return self.calendar.days_of(months[at % len(months)], year=self.year + at // len(months))

    @property
    def year(self) -> int | None:
        """The present year; None if it is unknown."""
        if self.calendar is None or not self.calendar.months or self.today is None:
            return None
        return self.calendar.date_of(self.today)[0]

    def in_words(self, *days: int | None) -> str:
        """Join the known days as the calendar writes them, with "to"; empty without a calendar."""
        known = dict.fromkeys(day for day in days if day is not None)
        return "" if self.calendar is None else " to ".join(map(self.calendar.in_words, known))


def name_words(name: str) -> tuple[str, ...]:
    """Words of a month's or weekday's name, without a leading article."""
    words = _words(name)
    return tuple(words[1:] if len(words) > 1 and words[0] in _ARTICLES else words)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


# The clock of a table.

Zone = tzinfo | None
"""A zone for `datetime`. None: the machine's zone, as its C library has it, with daylight saving."""


def read_zone(name: str) -> Zone:
    """
    Args:
        name: Such as "Europe/Berlin"; "" for the machine's.

    Raises:
        InvalidInput: This machine knows no zone of that name.
    """
    if not name:
        return None
    if name == "UTC":
        return UTC  # also without time zone data
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = zoneinfo.available_timezones()
    if not known:
        raise InvalidInput(f"time zone {name!r}: this machine has no time zone data; pip install tzdata brings it")
    raise InvalidInput(f"unknown time zone {name!r}, {did_you_mean(name, known)} (IANA names, such as Europe/Berlin)")
