"""Where a story stands, as a table has it in memory."""

from __future__ import annotations

import pytest

from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.times_cache import TimesCache

TOWN = CampaignId("town")


class TimesTwin:
    def __init__(self, times: CampaignTimes) -> None:
        self._times = times

    async def times(self, campaign: CampaignId) -> CampaignTimes:
        return self._times


@pytest.mark.parametrize(
    ("times", "in_words"),
    [
        (CampaignTimes(calendar=StoryCalendar((("Hammer", 30),)), today=11), "12 Hammer"),
        (CampaignTimes(calendar=StoryCalendar(), today=12), "12"),
        (CampaignTimes(calendar=StoryCalendar()), ""),
        (CampaignTimes(), ""),
    ],
)
async def test_the_day_is_written_as_the_calendar_writes_it(times: CampaignTimes, in_words: str) -> None:
    cache = TimesCache(TimesTwin(times))
    assert cache.story_day(TOWN) == ""
    await cache.refresh(TOWN, "1")
    assert cache.story_day(TOWN) == in_words
