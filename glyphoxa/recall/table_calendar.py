"""Convert between moments, calendar days at the table, and story days.

A moment is milliseconds since the Unix epoch, a day is its number since 1970-01-01. A day starts at midnight of the
table's clock. It has 23 or 25 hours where that clock changes, so each boundary is looked up. Every moment belongs to
one day.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from loguru import logger
from numpy import int64
from numpy.typing import NDArray

from glyphoxa.domain.calendar import CampaignTimes, Zone, read_zone
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
FADES_DAYS: Final = 3
"""Before a named day or month. On five conversations of LoCoMo, 1 to 7 days differ little."""
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_FIRST_DAY: Final = date(1800, 1, 1).toordinal() - _EPOCH_DAY
_LAST_DAY: Final = date(9998, 12, 31).toordinal() - _EPOCH_DAY
_EARLIEST_NOW: Final = 366


@lru_cache(maxsize=64)
def zone_of_campaign(name: str) -> Zone:
    """Return the zone of a stored campaign; UTC if this machine does not know it."""
    try:
        return read_zone(name)
    except InvalidInput as error:
        logger.warning("days start at midnight UTC: {}", error)
        return UTC


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A span of session time: `from_ms` is in it, `until_ms` is not; None is open.

    Attributes:
        fades_ms: How long before the span an utterance is about as likely to be meant as not.
        is_of_days: It consists of whole days: an evening counts as the day on which it started.
    """

    from_ms: int | None
    until_ms: int | None
    fades_ms: int
    is_of_days: bool = False


@dataclass(frozen=True, slots=True)
class Days:
    """The meaning of words for days at a moment and a place.

    Args:
        now_ms: Milliseconds since the Unix epoch.
        zone: Time zone of the table's clock.
        evening: The day on which the current evening started: for the players it is still that day after midnight.
            None: the day of the clock.
    """

    now_ms: int
    zone: Zone = UTC
    evening: int | None = None

    @property
    def today(self) -> int:
        """Return days since 1970-01-01."""
        return self.day_of(self.now_ms) if self.evening is None else self.evening

    def day_of(self, at_ms: int) -> int:
        """Return the day of a moment by the clock, from 1971 to 9998."""
        at_ms = min(max(at_ms, _EARLIEST_NOW * DAY_MS), _LAST_DAY * DAY_MS)
        day = datetime.fromtimestamp(at_ms / 1_000, self.zone).toordinal() - _EPOCH_DAY
        # A clock that is set back over midnight shows the end of a day twice.
        if at_ms >= self.begins_ms(day + 1):
            return day + 1
        return day - 1 if at_ms < self.begins_ms(day) else day

    def begins_ms(self, day: int, *, hour: int = 0) -> int:
        """Return when the clock shows that hour of a day, in milliseconds since the Unix epoch.

        Args:
            hour: From midnight; above 24 is the next day.
        """
        later, hour = divmod(hour, 24)
        ordinal = min(max(day + later, _FIRST_DAY), _LAST_DAY) + _EPOCH_DAY
        return round(datetime.fromordinal(ordinal).replace(hour=hour, tzinfo=self.zone).timestamp() * 1_000)

    @property
    def _date(self) -> date:
        return date.fromordinal(self.today + _EPOCH_DAY)

    def window(self, first: int, last: int, *, fades: float = FADES_DAYS) -> TimeWindow:
        """Return a span of days, both inclusive."""
        return TimeWindow(self.begins_ms(first), self.begins_ms(last + 1), round(fades * DAY_MS), is_of_days=True)

    def part_of_day(self, day: int, first_hour: int, last_hour: int) -> TimeWindow:
        """Return hours of a day from midnight, without `last_hour`; above 24 is the next day."""
        return TimeWindow(self.begins_ms(day, hour=first_hour), self.begins_ms(day, hour=last_hour), DAY_MS // 2)

    def in_calendar(
        self, year: int | None, month: int | None = None, day: int | None = None, *, n_months: int = 1
    ) -> TimeWindow | None:
        """Return a year, some months or a day; without a year the latest that has started.

        None if there is no such day.

        Args:
            month: The first, from 1.
        """
        if year is None:
            year = self._date.year
            latest = self.in_calendar(year, month, day, n_months=n_months)
            is_ahead = latest is not None and latest.from_ms is not None and latest.from_ms > self.now_ms
            return self.in_calendar(year - 1, month, day, n_months=n_months) if latest is None or is_ahead else latest
        n_months = n_months if month else 12
        after = (month or 1) + n_months
        try:
            first = _number(year, month or 1, day or 1)
            last = first if day else _number(year + (after - 1) // 12, (after - 1) % 12 + 1, 1) - 1
        except ValueError:
            return None
        return self.window(first, last, fades=FADES_DAYS * (1 if day else n_months))

    def weekday(self, nth: int) -> int:
        """Return the latest such weekday before today; 0 is Monday."""
        back = (self._date.weekday() - nth) % 7
        return self.today - (back or 7)

    def of_unit(self, unit: str, ago: int) -> TimeWindow | None:
        """Return this week, weekend, month or year, or an earlier one; None for another unit.

        "Last weekend" is the weekend before the current one only on the weekend itself. Friday belongs to it, because
        tables meet in the evening.
        """
        today, year, month = self.today, self._date.year, self._date.month
        match unit:
            case "week":
                monday = today - self._date.weekday() - 7 * ago
                return self.window(monday, monday + 6, fades=1)
            case "weekend":
                weekday = self._date.weekday()
                friday = today - (weekday - 5) % 7 - 1 - (7 * ago if weekday > 4 else 0)
                return self.window(friday, friday + 2, fades=1)
            case "month":
                counted = year * 12 + month - 1 - ago
                return self.in_calendar(counted // 12, counted % 12 + 1)
            case "year":
                return self.in_calendar(year - ago)
            case _:
                return None

    def about(self, days_ago: float, *, within: float) -> TimeWindow:
        """Return the span around a moment in the past, `within` days to either side."""
        at, reach = self._ago_ms(days_ago), round(within * DAY_MS)
        return TimeWindow(at - reach, at + reach, round(max(within, 0.02) * DAY_MS))

    def since(self, days_ago: float) -> TimeWindow:
        return TimeWindow(self._ago_ms(days_ago), None, round(max(days_ago / 4, 0.02) * DAY_MS))

    def _ago_ms(self, days_ago: float) -> int:
        """Days are counted back from the current evening's day, hours from now."""
        from_ms = self.now_ms
        if self.evening is not None and days_ago >= 1:
            from_ms = min(self.now_ms, self.begins_ms(self.evening + 1) - 1)
        return from_ms - round(days_ago * DAY_MS)


def _number(year: int, month: int, day: int) -> int:
    if year > 9998:
        raise ValueError(f"{year} is too far")
    return date(year, month, day).toordinal() - _EPOCH_DAY


# -- evenings
#
# Evenings: utterances without a long silence belong to the day on which the evening started, also after midnight.
#
# An evening is found by utterances and not by sessions: a table that restarts after midnight continues its evening, and
# a session that is used for weeks has many evenings. An evening lasts until noon of the next day at most.


STILL_PLAYED_MS: Final = 6 * HOUR_MS
"""After a shorter silence than this, the same evening continues."""
_NOON: Final = 12


def evenings_in(at_ms: NDArray[int64]) -> NDArray[int64]:
    """Return the first and last time of each evening, in order.

    Args:
        at_ms: Times of all utterances of a table, in any order; milliseconds since the Unix epoch.

    Returns:
        Shape (evenings, 2).
    """
    if not len(at_ms):
        return np.zeros((0, 2), int64)
    ordered = np.sort(at_ms, kind="stable")
    breaks = np.flatnonzero(np.diff(ordered) >= STILL_PLAYED_MS)
    return np.stack([ordered[np.r_[0, breaks + 1]], ordered[np.r_[breaks, len(ordered) - 1]]], axis=1)


ReadTimes = Callable[[CampaignId], Awaitable[CampaignTimes]]
"""Returns how a campaign counts time; the default for one that is not stored. Raises `Unavailable`."""


def _never() -> NDArray[int64]:
    return np.zeros(0, int64)


@dataclass(slots=True, eq=False)
class TableTimes:
    """
    Args:
        campaign: How its campaign counts time.
        said_at_ms: Returns the times of all utterances at the table, in any order. Called once, and only if a question
            contains a day: evenings are the table's, also for an NPC that came after midnight.
    """

    zone: Zone = UTC
    campaign: CampaignTimes = field(default_factory=CampaignTimes)
    said_at_ms: Callable[[], NDArray[int64]] = _never
    _evenings: NDArray[int64] | None = None

    @property
    def evenings(self) -> NDArray[int64]:
        """See `evenings_in`."""
        if self._evenings is None:
            self._evenings = evenings_in(self.said_at_ms())
        return self._evenings

    def days(self, now_ms: int) -> Days:
        """Return what words for days mean now."""
        at = int(np.searchsorted(self.evenings[:, 0], now_ms, "right")) - 1
        if at >= 0:
            first_ms, last_ms = (int(one) for one in self.evenings[at])
            began = _day_of(self.zone, first_ms)
            if now_ms - last_ms < STILL_PLAYED_MS and now_ms < began.noon_ms:
                return Days(now_ms, self.zone, began.day)
        return Days(now_ms, self.zone)

    def as_of_its_evening(self, at_ms: NDArray[int64]) -> NDArray[int64]:
        """Return the moments for comparison with whole days: after midnight, the end of the day before. Shape (n,)."""
        played = [(_day_of(self.zone, first_ms), last_ms) for first_ms, last_ms in self.evenings.tolist()]
        night = [(day.ends_ms, min(last_ms, day.noon_ms - 1)) for day, last_ms in played if last_ms >= day.ends_ms]
        if not night:
            return at_ms
        begins, ends = np.array(night, int64).T
        which = np.searchsorted(begins, at_ms, "right") - 1
        is_night = (which >= 0) & (at_ms <= ends[which])
        counted: NDArray[int64] = np.where(is_night, begins[which] - 1, at_ms)
        return counted


class _Day(NamedTuple):
    """A day, its end, and noon of the next one."""

    day: int
    ends_ms: int
    noon_ms: int


@lru_cache(maxsize=4096)
def _day_of(zone: Zone, at_ms: int) -> _Day:
    days = Days(at_ms, zone)
    return _Day(days.today, days.begins_ms(days.today + 1), days.begins_ms(days.today + 1, hour=_NOON))
