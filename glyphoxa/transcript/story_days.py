"""On which days of the story a campaign was played: what was said of that, and what follows from it.

The campaign file says where the story stands; at a table and between evenings the DM says how it goes on. The word that
was said last holds, and the file's is said again when it is another than the last time. Each session keeps its days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loguru import logger

from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar, StoryDays
from glyphoxa.domain.errors import InvalidInput

BETWEEN: Final = ""
"""In place of a session: the next one begins on that day."""


@dataclass(frozen=True, slots=True)
class DayTold:
    """
    Attributes:
        session: That was played on this day too; or BETWEEN.
        day: As the calendar wrote it.
        file_day: What the campaign file said at that time.
        told_ms: Milliseconds since the Unix epoch.
    """

    session: str
    day: str
    file_day: str
    told_ms: int = 0


def day_now(file_day: str, told: Sequence[DayTold]) -> str:
    """Where the story stands; "" if nobody has said.

    Args:
        file_day: What the campaign file says now.
        told: In order.
    """
    if told and (not file_day or told[-1].file_day == file_day):
        return told[-1].day
    return file_day


def times_of(time_zone: str, calendar: StoryCalendar | None, file_day: str, told: Sequence[DayTold]) -> CampaignTimes:
    """What is known of a campaign's times. A day that is not in the calendar any more is no day."""
    if calendar is None:
        return CampaignTimes(time_zone)
    days: dict[str, list[int]] = {}
    for one in told:
        number = _number(calendar, one.day)
        if number is not None and one.session != BETWEEN:
            days.setdefault(one.session, []).append(number)
    sessions = {session: StoryDays(min(numbers), max(numbers)) for session, numbers in days.items()}
    now = day_now(file_day, told)
    return CampaignTimes(time_zone, calendar, _number(calendar, now) if now else None, sessions)


def _number(calendar: StoryCalendar, day: str) -> int | None:
    try:
        return calendar.day_named(day)
    except InvalidInput as error:
        logger.debug("a day of a session is left out: {}", error)
        return None
