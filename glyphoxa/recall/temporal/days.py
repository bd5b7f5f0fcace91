"""Spans of time: days of our calendar, where the table is.

A moment is milliseconds since the Unix epoch, a day is its number since 1970-01-01. A day begins at midnight of the
table's clock, and is 23 or 25 hours long where that clock is changed: each boundary is looked up by itself. Every
moment is in one day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from glyphoxa.recall.temporal.zone import Zone

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
FADES_DAYS: Final = 3
"""Before a day or month that was named. Measured on five conversations of LoCoMo: 1 to 7 days differ little."""
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_FIRST_DAY: Final = date(1800, 1, 1).toordinal() - _EPOCH_DAY
_LAST_DAY: Final = date(9998, 12, 31).toordinal() - _EPOCH_DAY
_LAST_YEAR: Final = 9998
_EARLIEST_NOW: Final = 366


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A span of session time: `from_ms` is in it, `until_ms` is not; None is open.

    Attributes:
        fades_ms: How far before it something is still about as likely to be meant as not.
        is_of_days: It is of whole days: an evening counts as the day on which it began.
    """

    from_ms: int | None
    until_ms: int | None
    fades_ms: int
    is_of_days: bool = False


@dataclass(frozen=True, slots=True)
class Days:
    """What the words for days mean at a moment and a place.

    Args:
        now_ms: Milliseconds since the Unix epoch.
        zone: Of the table's clock.
        evening: The day on which the evening began that is being played: to those who sit there it is still that day
            after midnight. None: it is the day that the clock tells.
    """

    now_ms: int
    zone: Zone = UTC
    evening: int | None = None

    @property
    def today(self) -> int:
        """Days since 1970-01-01."""
        return self.day_of(self.now_ms) if self.evening is None else self.evening

    def day_of(self, at_ms: int) -> int:
        """The day of a moment by the clock, from 1971 to 9998."""
        at_ms = min(max(at_ms, _EARLIEST_NOW * DAY_MS), _LAST_DAY * DAY_MS)
        day = datetime.fromtimestamp(at_ms / 1_000, self.zone).toordinal() - _EPOCH_DAY
        # A clock that is put back over midnight tells the end of a day twice.
        if at_ms >= self.begins_ms(day + 1):
            return day + 1
        return day - 1 if at_ms < self.begins_ms(day) else day

    def begins_ms(self, day: int, *, hour: int = 0) -> int:
        """When the clock tells that hour of a day, in milliseconds since the Unix epoch.

        Args:
            hour: From midnight; beyond 24 is the day after.
        """
        later, hour = divmod(hour, 24)
        ordinal = min(max(day + later, _FIRST_DAY), _LAST_DAY) + _EPOCH_DAY
        return round(datetime.fromordinal(ordinal).replace(hour=hour, tzinfo=self.zone).timestamp() * 1_000)

    @property
    def year(self) -> int:
        return self._date.year

    @property
    def _date(self) -> date:
        return date.fromordinal(self.today + _EPOCH_DAY)

    def window(self, first: int, last: int, *, fades: float = FADES_DAYS) -> TimeWindow:
        """Days, both in it."""
        return TimeWindow(self.begins_ms(first), self.begins_ms(last + 1), round(fades * DAY_MS), is_of_days=True)

    def part_of_day(self, day: int, first_hour: int, last_hour: int) -> TimeWindow:
        """Hours of a day from midnight, `last_hour` not in it; beyond 24 is the day after."""
        return TimeWindow(self.begins_ms(day, hour=first_hour), self.begins_ms(day, hour=last_hour), DAY_MS // 2)

    def in_calendar(self, year: int | None, month: int | None, day: int | None) -> TimeWindow | None:
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

    def season(self, first_month: int, year: int | None) -> TimeWindow | None:
        """Three months; without a year the latest that has begun."""
        if year is None:
            year = self.year - (_number(self.year, first_month, 1) > self.today)
        if not 1 <= year <= _LAST_YEAR:
            return None
        first = _number(year, first_month, 1)
        return self.window(first, first + 89, fades=10)

    def weekday(self, nth: int) -> int:
        """The day of the latest such weekday before today, 0 is Monday."""
        back = (self._date.weekday() - nth) % 7
        return self.today - (back or 7)

    def week(self, ago: int) -> TimeWindow:
        """Monday to Sunday."""
        monday = self.today - self._date.weekday() - 7 * ago
        return self.window(monday, monday + 6, fades=1)

    @property
    def is_weekend(self) -> bool:
        return self._date.weekday() > 4

    def weekend(self, ago: int) -> TimeWindow:
        """The latest that has begun is 0. Friday is in it: tables meet in its evening."""
        back = (self._date.weekday() - 5) % 7
        friday = self.today - back - 1 - 7 * ago
        return self.window(friday, friday + 2, fades=1)

    def month(self, ago: int) -> TimeWindow:
        counted = self.year * 12 + self._date.month - 1 - ago
        found = self.in_calendar(counted // 12, counted % 12 + 1, None)
        return found or self.window(self.today - 30 * (ago + 1), self.today - 30 * ago)

    def about(self, days_ago: float, *, within: float) -> TimeWindow:
        """Around a moment in the past, `within` days to either side."""
        at = self._from_ms(days_ago) - round(days_ago * DAY_MS)
        return TimeWindow(at - round(within * DAY_MS), at + round(within * DAY_MS), round(max(within, 0.02) * DAY_MS))

    def since(self, days_ago: float) -> TimeWindow:
        at = self._from_ms(days_ago) - round(days_ago * DAY_MS)
        return TimeWindow(at, None, round(max(days_ago / 4, 0.02) * DAY_MS))

    def _from_ms(self, days_ago: float) -> int:
        """Whence one counts back: days from the day that it still is, hours from now."""
        if self.evening is None or days_ago < 1:
            return self.now_ms
        return min(self.now_ms, self.begins_ms(self.evening + 1) - 1)


def _number(year: int, month: int, day: int) -> int:
    return date(year, month, day).toordinal() - _EPOCH_DAY
