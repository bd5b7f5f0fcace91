"""Track sessions: the last one played, the story days of each, its running memory, and the entity with its summary.

A summary is an entity of the type `event`, so it has a scope, a history and a place in the graph. It has two attribute
facts: `kind`, which is "episode", and `summary`, the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NewType

from loguru import logger
from pydantic import TypeAdapter, ValidationError

from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar, StoryDays
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.files import replace_file
from glyphoxa.domain.ids import CampaignId, EntityId, SceneId, SessionId, UtteranceId

# The last session of each campaign in this data directory, and whether it was closed: `DIR/sessions.json`.
#
# The one process that plays with the data writes it, to continue a session later. Nothing depends on it, because the
# log has all utterances. An unreadable file counts as empty.


@dataclass(frozen=True, slots=True)
class LastSession:
    """
    Attributes:
        began_ms: Time of its first word, Unix epoch.
        scene: The table's last scene.
        closed_ms: When it was closed; None while it is played, and after a crash.
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
        """Record the campaign's last session. If the disk is full, the earlier record stays."""
        try:
            content = _FILE.dump_json({**self._read(), campaign: last}, indent=1)
            replace_file(self._path, content, is_synced=False)
        except OSError as error:
            logger.warning("{} cannot be written: {}", self._path, error.strerror)

    def _read(self) -> dict[CampaignId, LastSession]:
        try:
            return _FILE.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError) as error:
            logger.warning("{} cannot be read and is treated as empty: {}", self._path, type(error).__name__)
            return {}


# The story days on which a campaign was played: what was set, and what follows.
#
# The campaign file sets the present day. At a table and between evenings, the DM changes it. The latest setting counts;
# the file's counts again when it differs from its last value. Each session keeps its days.


BETWEEN: Final = ""
"""In place of a session: the next one starts on that day."""


@dataclass(frozen=True, slots=True)
class DayTold:
    """
    Attributes:
        session: Also played on this day; or BETWEEN.
        day: The day in the calendar's notation.
        file_day: The campaign file's day at that time.
        told_ms: Milliseconds since the Unix epoch.
    """

    session: str
    day: str
    file_day: str
    told_ms: int = 0


@dataclass(frozen=True, slots=True)
class KeptTimes:
    """Records of how a campaign counts time; empty for a campaign that is not stored.

    Attributes:
        file_day: The present story day in the campaign file; "" if not given.
        told: Recorded story days, in order.
    """

    time_zone: str = ""
    calendar: StoryCalendar | None = None
    file_day: str = ""
    told: Sequence[DayTold] = ()

    @property
    def day_now(self) -> str:
        """The present story day; "" if nobody set it."""
        if self.told and (not self.file_day or self.told[-1].file_day == self.file_day):
            return self.told[-1].day
        return self.file_day

    def times(self) -> CampaignTimes:
        """Return how the campaign counts time. A day that the calendar no longer has is ignored."""
        if self.calendar is None:
            return CampaignTimes(self.time_zone)
        days: dict[str, list[tuple[int, int]]] = {}
        for one in self.told:
            number = _number(self.calendar, one.day)
            if number is not None and one.session != BETWEEN:
                days.setdefault(one.session, []).append((one.told_ms, number))
        numbers = {session: [day for _, day in known] for session, known in days.items()}
        sessions = {session: StoryDays(min(known), max(known)) for session, known in numbers.items()}
        today = _number(self.calendar, now) if (now := self.day_now) else None
        return CampaignTimes(self.time_zone, self.calendar, today, sessions, days)


def _number(calendar: StoryCalendar, day: str) -> int | None:
    try:
        return calendar.day_named(day)
    except InvalidInput as error:
        logger.debug("a session's story day is skipped: {}", error)
        return None


EPISODE: Final = "episode"


_NODE: Final = "Summary"


def is_episode(entity: Entity) -> bool:
    """Return whether an entity holds a summary of a session or of events, under the name that it was given with it."""
    is_node = entity.type == "event" and entity.id.startswith(f"{EPISODE}-") and entity.name.startswith(f"{_NODE} ")
    return is_node or session_of(entity) is not None


def node_name(number: int) -> str:
    """Return the title of a campaign's event node of this number."""
    return f"{_NODE} {number}"


def node_of(session: SessionId, ordinal: int) -> EntityId:
    """Return the event node of the talk that begins with this utterance."""
    return EntityId(f"{episode_of(session)}#{ordinal}")


def start_of(node: EntityId, session: SessionId) -> int | None:
    """Return the number of the utterance with which a node of a session's talk begins; None for any other node."""
    own, _, ordinal = node.rpartition("#")
    return int(ordinal) if own == episode_of(session) and ordinal.isdecimal() else None


def summary_of(first: EntityId, tier: int) -> EntityId:
    """Return the node of a tier that sums up nodes of the tier below, the first of which is this."""
    return EntityId(f"{first.partition('+')[0]}+{tier}")


def tier_of(node: EntityId) -> int:
    """Return the tier of an event node: 0 for one of talk."""
    tier = node.rpartition("#")[2].partition("+")[2]
    return int(tier) if tier.isdecimal() else 0


def session_of(entity: Entity) -> SessionId | None:
    """Return the session whose summary an entity holds; None if it holds none, or was given another name."""
    session = SessionId(entity.id.removeprefix(f"{EPISODE}-"))
    is_one = entity.type == "event" and entity.id == episode_of(session) and entity.name == episode_name(session)
    return session if is_one else None


def episode_name(session: SessionId) -> str:
    return f"Session {session}"


def episode_of(session: SessionId) -> EntityId:
    """Return the entity that summarises the session: one a session, found without a search."""
    return EntityId(f"{EPISODE}-{session}")


View = NewType("View", str)
"""The id of an NPC, or `DM_VIEW`."""
DM_VIEW: Final = View("dm")


@dataclass(frozen=True, slots=True)
class SummarySentence:
    """A sentence of a summary.

    Attributes:
        evidence: The utterances that support it; never empty. If one is retracted, so is the sentence.
        is_own: The NPC said it itself. It keeps its word, but nothing else follows from it.
    """

    text: str
    evidence: tuple[UtteranceId, ...]
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class SessionState:
    """A view's memory of a session beside the most recent lines.

    Attributes:
        summary: In the order of the talk.
        flags: Named events that happened ("decision_made").
        last_ordinal: Number of the last utterance that the summary covers; 0 for none.
    """

    summary: tuple[SummarySentence, ...] = ()
    flags: Mapping[str, bool] = field(default_factory=dict)
    last_ordinal: int = 0

    @property
    def text(self) -> str:
        """Return the summary as one paragraph."""
        return " ".join(sentence.text for sentence in self.summary)
