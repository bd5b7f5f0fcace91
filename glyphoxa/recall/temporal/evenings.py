"""Evenings: talk without a long silence belongs to the day on which it began, also what is said after midnight.

An evening is found by the talk and not by sessions: a table that was opened anew after midnight still plays on, and a
session whose name is used for weeks is many evenings. It lasts until noon of the next day at the most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy import int64
from numpy.typing import NDArray

from glyphoxa.domain.calendar import CampaignTimes, StoryDays
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.temporal.days import HOUR_MS, Days, Story, Zone, zone_of_campaign

STILL_PLAYED_MS: Final = 6 * HOUR_MS
"""Talk after less silence than this goes on with the same evening."""
_NOON: Final = 12


def evenings_in(at_ms: NDArray[int64]) -> NDArray[int64]:
    """When the first and the last thing was said of each evening, in order.

    Args:
        at_ms: When everything was said at a table, in any order; milliseconds since the Unix epoch.

    Returns:
        Shape (evenings, 2).
    """
    if not len(at_ms):
        return np.zeros((0, 2), int64)
    ordered = np.sort(at_ms, kind="stable")
    breaks = np.flatnonzero(np.diff(ordered) >= STILL_PLAYED_MS)
    return np.stack([ordered[np.r_[0, breaks + 1]], ordered[np.r_[breaks, len(ordered) - 1]]], axis=1)


def days_at(now_ms: int, zone: Zone, evenings: NDArray[int64]) -> Days:
    """What the words for days mean now, at a table that has played those evenings."""
    at = int(np.searchsorted(evenings[:, 0], now_ms, "right")) - 1
    if at >= 0:
        first_ms, last_ms = (int(one) for one in evenings[at])
        began = _day_of(zone, first_ms)
        if now_ms - last_ms < STILL_PLAYED_MS and now_ms < began.noon_ms:
            return Days(now_ms, zone, began.day)
    return Days(now_ms, zone)


def as_of_its_evening(at_ms: NDArray[int64], zone: Zone, evenings: NDArray[int64]) -> NDArray[int64]:
    """The same moments for a comparison with whole days: what was said after midnight is the last of the day before.
    Shape (n,).
    """
    night = [(began.ends_ms, min(last, began.noon_ms - 1)) for began, last in _past_midnight(zone, evenings)]
    if not night:
        return at_ms
    begins, ends = np.array(night, int64).T
    which = np.searchsorted(begins, at_ms, "right") - 1
    is_night = (which >= 0) & (at_ms <= ends[which])
    counted: NDArray[int64] = np.where(is_night, begins[which] - 1, at_ms)
    return counted


class TimesOfCampaigns(Protocol):
    async def times(self, campaign: CampaignId) -> CampaignTimes:
        """How a campaign tells the time; as by default for one that is not stored.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...


def _never() -> NDArray[int64]:
    return np.zeros(0, int64)


@dataclass(slots=True, eq=False)
class TableTimes:
    """
    Args:
        story: None if it counts no days.
        sessions: The days of the story on which they were played, where that is known.
        said_at_ms: When everything was said at the table, in any order. Asked once, and only where a day is told: the
            evenings are the table's, also for an NPC that came after midnight.
    """

    zone: Zone = UTC
    story: Story | None = None
    sessions: Mapping[str, StoryDays] = field(default_factory=dict)
    said_at_ms: Callable[[], NDArray[int64]] = _never
    _evenings: NDArray[int64] | None = None

    @classmethod
    def of(cls, times: CampaignTimes, said_at_ms: Callable[[], NDArray[int64]]) -> TableTimes:
        story = None if times.calendar is None else Story(times.calendar, times.today)
        return cls(zone_of_campaign(times.time_zone), story, times.sessions, said_at_ms)

    @property
    def evenings(self) -> NDArray[int64]:
        """See `evenings_in`."""
        if self._evenings is None:
            self._evenings = evenings_in(self.said_at_ms())
        return self._evenings

    def days(self, now_ms: int) -> Days:
        """What the words for days mean now."""
        return days_at(now_ms, self.zone, self.evenings)

    def as_of_its_evening(self, at_ms: NDArray[int64]) -> NDArray[int64]:
        """See the function of that name."""
        return as_of_its_evening(at_ms, self.zone, self.evenings)


class _Day(NamedTuple):
    """A day, when it ends, and when it is noon of the next one."""

    day: int
    ends_ms: int
    noon_ms: int


@lru_cache(maxsize=4096)
def _day_of(zone: Zone, at_ms: int) -> _Day:
    days = Days(at_ms, zone)
    return _Day(days.today, days.begins_ms(days.today + 1), days.begins_ms(days.today + 1, hour=_NOON))


def _past_midnight(zone: Zone, evenings: NDArray[int64]) -> list[tuple[_Day, int]]:
    found = []
    for first_ms, last_ms in evenings.tolist():
        began = _day_of(zone, first_ms)
        if last_ms >= began.ends_ms:
            found.append((began, last_ms))
    return found
