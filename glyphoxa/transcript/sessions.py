"""Sessions: which one was played last, on which story days each was played, and the entity that holds its summary.

A summary is an entity of the type `event`, so that it has a scope, a history and a place in the graph. It has two
attribute facts: `kind`, which is "episode", and `summary`, the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loguru import logger
from pydantic import TypeAdapter, ValidationError

from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar, StoryDays
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId, SceneId, SessionId

# Which session of each campaign was played last with this data, and whether it was closed: `DIR/sessions.json`.
#
# Written by the one process that plays with the data; read by whoever wants to go on. Nothing rests on it: what was
# said is in the log. A file that cannot be read is none.


@dataclass(frozen=True, slots=True)
class LastSession:
    """
    Attributes:
        began_ms: When the first word was said in it, Unix epoch.
        scene: Where the table was last.
        closed_ms: When it was closed; None while it is played, and when its process ended otherwise.
    """

    session: SessionId
    began_ms: int
    scene: SceneId
    closed_ms: int | None = None


_FILE = TypeAdapter(dict[CampaignId, LastSession])


class LastSessions:
    """See the module.

    Args:
        directory: The data directory.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "sessions.json"

    def of(self, campaign: CampaignId) -> LastSession | None:
        return self._read().get(campaign)

    def note(self, campaign: CampaignId, last: LastSession) -> None:
        """This is the campaign's last session now. A disk that is full keeps what was noted before."""
        temporary = self._path.with_suffix(".new")
        try:
            temporary.write_bytes(_FILE.dump_json({**self._read(), campaign: last}, indent=1))
            temporary.replace(self._path)
        except OSError as error:
            logger.warning("{} cannot be written: {}", self._path, error.strerror)

    def _read(self) -> dict[CampaignId, LastSession]:
        try:
            return _FILE.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError) as error:
            logger.warning("{} cannot be read, and is as good as empty: {}", self._path, type(error).__name__)
            return {}


# On which days of the story a campaign was played: what was said of that, and what follows from it.
#
# The campaign file says where the story stands; at a table and between evenings the DM says how it goes on. The word
# that was said last holds, and the file's is said again when it is another than the last time. Each session keeps its
# days.


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


EPISODE: Final = "episode"


def episode_of(session: SessionId) -> EntityId:
    """The entity that sums up the session: one a session, found without a search."""
    return EntityId(f"{EPISODE}-{session}")
