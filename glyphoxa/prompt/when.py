"""Add to what an NPC recalls when it was said, and replace words such as "yesterday" by the day they meant.

Both need no database, and a text is read once for the story day on which it was said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Final, TypeVar, cast

from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.knowledge import Recalled, RecalledFact, RecalledSummary, RecalledUtterance
from glyphoxa.language.words import Put, applied, words
from glyphoxa.prompt.wording import wording
from glyphoxa.recall.time_reader import UNIT_DAYS, TimeWords, names_of_calendar, names_pattern, read_words
from glyphoxa.recall.transcript_memory import TranscriptMemory

Item = TypeVar("Item", bound=Recalled)
_MOST_EXACT_DAYS: Final = 14
"""A longer unit, such as a month, is seldom meant to the day."""


@dataclass(frozen=True, slots=True)
class SaidWhen:
    """
    Args:
        session: The present one.
        transcript: None without long-term memory.
    """

    campaign: Campaign
    session: SessionId
    transcript: TranscriptMemory | None

    def today(self) -> str:
        """Return the story day in words; empty if it is unknown."""
        return self.campaign.story_day if self.transcript is None else self.transcript.story_day

    def dated(self, one: Item) -> Item:
        """Return it with its story day or its session, and with days instead of "yesterday".

        A fact holds at any time, so of facts only a summary has a day.
        """
        if self.transcript is None:
            return one
        times, numbers = self.transcript.times, self.transcript.session_numbers
        is_fact = isinstance(one, RecalledFact)
        is_summary = one.is_summary if isinstance(one, RecalledFact) else isinstance(one, RecalledSummary)
        # A fact was learned at the end of its session, and a summary is shown with its first day.
        day, text = times.day_at(one.session_id, None if is_fact and is_summary else one.at_ms), one.text
        if times.calendar is None or day is None or (one.session_id, day) == (self.session, times.today):
            when = self._sessions_ago(one.session_id, numbers)
        else:
            days = story_days(times.calendar, self.campaign.language)
            when = days.in_words(day)
            # The sentences of a summary are of several days; `Teller` has replaced their words for days.
            is_of_one = not is_summary or len(times.told.get(one.session_id or "", ())) == 1
            text = with_days(text, day, days) if is_of_one else text
        if isinstance(one, RecalledUtterance):
            return replace(one, text=text, when=when, verbatim=one.text if text != one.text else "")
        return replace(one, text=f"({when}) {text}" if when and is_summary else text)

    def _sessions_ago(self, session: SessionId | None, numbers: Callable[[], Mapping[SessionId, int]]) -> str:
        ago, known = wording(self.campaign.language).sessions_ago, numbers()
        present = known.get(self.session, len(known) + 1)
        n = 0 if session == self.session else present - known.get(session or SessionId(""), present + 1)
        return "" if n < 0 else ago[min(n, len(ago) - 1)].format(n=n)


def days_in(text: str, session: SessionId, at_ms: int, *, times: CampaignTimes, language: str) -> str:
    """Return a text that was said at a time in a session with story days instead of words for them."""
    day = times.day_at(session, at_ms)
    if times.calendar is None or day is None:
        return text
    return with_days(text, day, story_days(times.calendar, language))


@dataclass(frozen=True, slots=True, eq=False)
class _StoryDays:
    """The words for days of one story in one language."""

    calendar: StoryCalendar
    known: TimeWords
    patterns: Sequence[tuple[re.Pattern[str], int, str]]
    lengths: Mapping[str, float]

    def in_words(self, day: int) -> str:
        text = self.calendar.in_words(day)
        return text if self.calendar.months else self.known.said["counted"].format(day=text)

    def apart(self, said: Mapping[str, str | None], step: int, day: int, *, is_over: bool) -> tuple[int, bool] | None:
        """Return how many days after `day` a match means, and whether exactly; None if it means none."""
        if (weekday := said.get("month")) is not None:
            n = (step or (-1 if is_over else 1)) * len(self.calendar.weekdays)
            nth = names_of_calendar(self.calendar, self.known).weekdays[weekday]
            return (nth - self.calendar.weekday_of(day)) % n or n, True
        if "u" not in said:
            return step, True
        length, n = self.lengths.get(self.known.values["u"][said["u"] or ""]), self.known.number(said.get("n"))
        if length is None or (is_over and step > 0 and "n" in said):
            return None  # a session, and "we crossed the fen in three days"
        is_exact = length <= _MOST_EXACT_DAYS and said.get("n") not in self.known.lists["vague"]
        return step * round(length * n), is_exact


@lru_cache(maxsize=16)
def story_days(calendar: StoryCalendar, language: str) -> _StoryDays:
    """Return the words for days of a story; the English ones for a language without any."""
    known = read_words(language) or cast(TimeWords, read_words("en"))
    weekdays = names_of_calendar(calendar, known).weekdays
    patterns = [(names_pattern(text, weekdays), step, form) for text, step, form in known.said["days"]]
    own = {"year": calendar.days_a_year, "month": calendar.days_a_year / max(len(calendar.months), 1)}
    lengths = UNIT_DAYS | (own if calendar.months else {}) | ({"week": len(weekdays)} if weekdays else {})
    return _StoryDays(calendar, known, patterns, lengths)


@lru_cache(maxsize=4_096)
def with_days(text: str, day: int, days: _StoryDays) -> str:
    """Return a text with story days instead of words for them.

    Args:
        day: The story day on which it was said.
    """
    spoken = words(text)
    joined = " ".join(word.full for word in spoken)
    starts = [0, *accumulate(len(word.full) + 1 for word in spoken)]
    is_over = re.search(days.known.said["over"], joined) is not None
    left, found = set(range(len(spoken))), list[Put]()
    for pattern, step, form in days.patterns:
        for match in pattern.finditer(joined):
            at, end = starts.index(match.start()), starts.index(match.end() + 1)
            first, apart = spoken[at], days.apart(match.groupdict(), step, day, is_over=is_over)
            is_name = first.is_capital and not first.opens
            is_one = left.issuperset(range(at, end)) and all(word.joins for word in spoken[at + 1 : end])
            if apart is None or is_name or not is_one:
                continue
            left.difference_update(range(at, end))
            is_bare = at > 0 and spoken[at - 1].folded in days.known.lists["bare_after"]
            pattern_of = "{day}" if is_bare else form if apart[1] else days.known.said["about"]
            then = pattern_of.format(day=days.in_words(day + apart[0]), **match.groupdict())
            then = then[:1].upper() + then[1:] if first.is_capital else then
            found.append(Put(first.start, spoken[end - 1].end, then))
    return applied(text, sorted(found))
