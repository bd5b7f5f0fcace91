"""How a table tells the time: where its days begin, what its evenings were, and what day of the story each was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC

import numpy as np
from numpy import int64
from numpy.typing import NDArray

from glyphoxa.domain.calendar import CampaignTimes, StoryDays
from glyphoxa.recall.temporal.days import Days
from glyphoxa.recall.temporal.evenings import as_of_its_evening, days_at, evenings_in
from glyphoxa.recall.temporal.story import Story
from glyphoxa.recall.temporal.zone import Zone, zone_of_campaign


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
        """See `glyphoxa.recall.temporal.evenings.as_of_its_evening`."""
        return as_of_its_evening(at_ms, self.zone, self.evenings)
