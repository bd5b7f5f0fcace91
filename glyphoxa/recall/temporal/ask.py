"""What a question says of time, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from glyphoxa.domain.calendar import StoryDays
from glyphoxa.recall.temporal.days import TimeWindow
from glyphoxa.recall.temporal.words import Part, Relation

PlaceKind = Literal["session", "first", "latest", "recent", "long_ago", "opening", "whole"]


@dataclass(frozen=True, slots=True)
class SessionReference:
    """A place in the order of what was said.

    Attributes:
        back: Sessions before the present one, for "session"; how many sessions, for "recent".
        number: Of the session, from 1, for "session"; instead of `back`.
        relation: What is asked for is there ("during"), or before or after it.
        part: Only its beginning, middle or end.
    """

    kind: PlaceKind
    back: int | None = None
    number: int | None = None
    relation: Relation = "during"
    part: Part | None = None

    @property
    def is_exact(self) -> bool:
        """One session is asked for, and no other."""
        return self.kind == "session" and self.relation == "during"


@dataclass(frozen=True, slots=True)
class Anchor:
    """An event by which a time is told.

    Attributes:
        words: By which the event may be found, as they stand in the question.
    """

    words: str
    relation: Relation


@dataclass(frozen=True, slots=True)
class TimeAsk:
    """What a question says of time; what it does not say is None or False.

    Attributes:
        story: Days of the story.
        asks_for_time: A time is the answer: "when did ...".
        asks_for_recap: What happened in a span is asked for, not one thing in it.
        words: The times as they were said, for a reason that somebody reads.
        said: Where the times stand in the question: beginning and one past the end, in order. An anchor is not among
            them, for its words are looked for like others.
    """

    window: TimeWindow | None = None
    place: SessionReference | None = None
    anchor: Anchor | None = None
    story: StoryDays | None = None
    asks_for_time: bool = False
    asks_how_long: bool = False
    asks_how_often: bool = False
    asks_for_recap: bool = False
    asks_for_order: bool = False
    words: str = ""
    said: tuple[tuple[int, int], ...] = ()

    @property
    def tells_a_time(self) -> bool:
        """Some of what was said fits it better than the rest."""
        return any(told is not None for told in (self.window, self.place, self.anchor, self.story))

    def tells_what_is_over(self, *, now_ms: int, story_day: int | None) -> bool:
        """Whether it tells days that have ended: who asks of them asks what is remembered.

        Args:
            now_ms: Milliseconds since the Unix epoch.
            story_day: At which the story stands; None if nobody has said.
        """
        if self.window is not None and self.window.until_ms is not None and self.window.until_ms <= now_ms:
            return True
        last = None if self.story is None else self.story.last
        return last is not None and story_day is not None and last < story_day


NO_TIME: Final = TimeAsk()
