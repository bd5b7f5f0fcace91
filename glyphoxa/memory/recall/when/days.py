"""Spans of time: days of our calendar by plain arithmetic, and days of a story's own.

No time zone of the machine comes into it: a moment is milliseconds since the Unix epoch, a table's days begin at
midnight of the offset that is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
FADES_DAYS: Final = 3
"""Before a day or month that was named. Measured on five conversations of LoCoMo: 1 to 7 days differ little."""
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_LAST_DAY: Final = date(9998, 12, 31).toordinal() - _EPOCH_DAY


@dataclass(frozen=True, slots=True)
class Window:
    """A span of session time: `from_ms` is in it, `until_ms` is not; None is open.

    Attributes:
        fades_ms: How far before it something is still about as likely to be meant as not.
    """

    from_ms: int | None
    until_ms: int | None
    fades_ms: int


@dataclass(frozen=True, slots=True)
class StoryDays:
    """Days of the story, both ends in it; None is open."""

    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class StoryCalendar:
    """How a story counts its days.

    Args:
        months: Name and number of days of each, in order; empty if only days are counted.
        today: The story's day now, counted like all days from `first_day`; None if nobody keeps count.
        year: The year of the story now.
        first_day: Number of the first day of year 0.
    """

    months: tuple[tuple[str, int], ...] = ()
    today: int | None = None
    year: int = 0
    first_day: int = 0

    def days_of(self, month: int, *, day: int | None = None, year: int | None = None) -> StoryDays | None:
        """Of a month, counted from 0, or of one of its days; None if the month has no such day."""
        length = self.months[month][1]
        if day is not None and not 1 <= day <= length:
            return None
        days_a_year = sum(days for _, days in self.months)
        begins = self.first_day + (self.year if year is None else year) * days_a_year
        begins += sum(days for _, days in self.months[:month])
        return StoryDays(begins, begins + length - 1) if day is None else StoryDays(*[begins + day - 1] * 2)


@dataclass(frozen=True, slots=True)
class Days:
    """What the words for days mean at a moment and a place.

    Args:
        now_ms: Milliseconds since the Unix epoch.
        offset_minutes: Of the table's clock from UTC, eastward.
    """

    now_ms: int
    offset_minutes: int = 0

    @property
    def today(self) -> int:
        """Days since 1970-01-01."""
        day = (self.now_ms + self.offset_minutes * MINUTE_MS) // DAY_MS
        return min(max(day, 366), _LAST_DAY)

    @property
    def year(self) -> int:
        return self._date.year

    @property
    def _date(self) -> date:
        return date.fromordinal(self.today + _EPOCH_DAY)

    def window(self, first: int, last: int, *, fades: float = FADES_DAYS) -> Window:
        """Days, both in it."""
        shift = self.offset_minutes * MINUTE_MS
        return Window(first * DAY_MS - shift, (last + 1) * DAY_MS - shift, round(fades * DAY_MS))

    def part_of_day(self, day: int, first_hour: int, last_hour: int) -> Window:
        """Hours of a day from midnight, `last_hour` not in it; beyond 24 is the day after."""
        begins = day * DAY_MS - self.offset_minutes * MINUTE_MS
        return Window(begins + first_hour * HOUR_MS, begins + last_hour * HOUR_MS, DAY_MS // 2)

    def in_calendar(self, year: int | None, month: int | None, day: int | None) -> Window | None:
        """A year, a month or a day. Without a year the latest that has begun. None when there is no such day.

        Args:
            month: From 1.
        """
        if year is None:
            latest = self.in_calendar(self.year, month, day)
            is_ahead = latest is not None and latest.from_ms is not None and latest.from_ms > self.now_ms
            return self.in_calendar(self.year - 1, month, day) if latest is None or is_ahead else latest
        try:
            if month is None:
                return self.window(_number(year, 1, 1), _number(year, 12, 31), fades=10 * FADES_DAYS)
            if day is None:
                return self.window(_number(year, month, 1), _number(year + month // 12, month % 12 + 1, 1) - 1)
            return self.window(_number(year, month, day), _number(year, month, day))
        except ValueError:
            return None

    def season(self, first_month: int, year: int | None) -> Window | None:
        """Three months; without a year the latest that has begun."""
        begins = self.in_calendar(year, first_month, 1)
        if begins is None or begins.from_ms is None:
            return None
        first = (begins.from_ms + self.offset_minutes * MINUTE_MS) // DAY_MS
        return self.window(first, first + 89, fades=10)

    def weekday(self, nth: int) -> int:
        """The day of the latest such weekday before today, 0 is Monday."""
        back = (self._date.weekday() - nth) % 7
        return self.today - (back or 7)

    def week(self, ago: int) -> Window:
        """Monday to Sunday."""
        monday = self.today - self._date.weekday() - 7 * ago
        return self.window(monday, monday + 6, fades=1)

    @property
    def is_weekend(self) -> bool:
        return self._date.weekday() > 4

    def weekend(self, ago: int) -> Window:
        """The latest that has begun is 0. Friday is in it: tables meet in its evening."""
        back = (self._date.weekday() - 5) % 7
        friday = self.today - back - 1 - 7 * ago
        return self.window(friday, friday + 2, fades=1)

    def month(self, ago: int) -> Window:
        counted = self.year * 12 + self._date.month - 1 - ago
        found = self.in_calendar(counted // 12, counted % 12 + 1, None)
        return found or self.window(self.today - 30 * (ago + 1), self.today - 30 * ago)

    def about(self, days_ago: float, *, within: float) -> Window:
        """Around a moment in the past, `within` days to either side."""
        at = self.now_ms - round(days_ago * DAY_MS)
        return Window(at - round(within * DAY_MS), at + round(within * DAY_MS), round(max(within, 0.02) * DAY_MS))

    def since(self, days_ago: float) -> Window:
        at = self.now_ms - round(days_ago * DAY_MS)
        return Window(at, None, round(max(days_ago / 4, 0.02) * DAY_MS))


def _number(year: int, month: int, day: int) -> int:
    return date(year, month, day).toordinal() - _EPOCH_DAY
