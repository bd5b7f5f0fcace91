"""`glyphoxa calendar`: the days of the story, and on which of them each session was played."""

from __future__ import annotations

import argparse
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from glyphoxa.adapters.postgres.world.campaign_times import KeptTimes
from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli.scope import A_DAY, CAMPAIGN, SESSION, run_at_desk
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Verb, argument
from glyphoxa.domain.calendar import StoryCalendar
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import SessionId
from glyphoxa.recall.temporal.evenings import STILL_PLAYED_MS
from glyphoxa.transcript.api import BETWEEN, day_now
from glyphoxa.world.api import moment


@dataclass(frozen=True, slots=True)
class _Story:
    """A campaign that counts the days of its story."""

    desk: Desk
    calendar: StoryCalendar
    kept: KeptTimes

    def day(self, text: str) -> str:
        """As the calendar writes it.

        Raises:
            InvalidInput: There is no such day.
        """
        return self.calendar.in_words(self.desk.days.day_named(text))


_Act = Callable[[_Story, argparse.Namespace], Awaitable[int]]


def _with_story(options: argparse.Namespace, act: _Act) -> int:
    async def at_desk(desk: Desk, options: argparse.Namespace) -> int:
        kept = await desk.times.kept(desk.campaign)
        if kept.calendar is None:
            raise InvalidInput(
                f"campaign {desk.campaign!r} counts no days of a story: give its file a block `calendar:`, "
                "and load it (docs/campaign-file.md shows one)"
            )
        return await act(_Story(desk, kept.calendar, kept), options)

    return run_at_desk(options, at_desk)


VERB = Verb(_with_story, common=CAMPAIGN)


@VERB.action("where the story stands, and the days of each session")
async def _show(story: _Story, options: argparse.Namespace) -> int:
    kept = story.kept
    now = day_now(kept.file_day, kept.told)
    if now:
        print(f"it is {_as_written(now, story.calendar)}")
    else:
        print('nobody has said which day it is: glyphoxa calendar today "..."')
    sessions = await story.desk.inspection.sessions(story.desk.campaign)
    table = a_table("no.", "session", "began", "days of the story")
    for number, session in enumerate(sessions, start=1):
        table.add_row(str(number), session.id, moment(session.started_ms), _days_of(story, session.id))
    if sessions:
        show(table)
    return 0


def _days_of(story: _Story, session: SessionId) -> str:
    """Such as: 3 Hammer 1492 to 5 Hammer 1492. A session has every day from the first to the last that was told."""
    days = story.desk.days.sessions.get(session)
    ends = () if days is None else (days.first, days.last)
    known = [story.calendar.in_words(day) for day in dict.fromkeys(ends) if day is not None]
    told = dict.fromkeys(one.day for one in story.kept.told if one.session == session)
    gone = (written for day in told if (written := _as_written(day, story.calendar)) != day)
    return ", ".join(part for part in (" to ".join(known), *gone) if part)


def _as_written(day: str, calendar: StoryCalendar) -> str:
    """One that a calendar had once and has no more says so."""
    try:
        calendar.day_named(day)
    except InvalidInput:
        return f"{day} (not in the calendar)"
    return day


@VERB.action(
    "it is this day of the story now: for the session that is played, or for the next",
    argument("day", nargs="+", metavar="DAY", help=A_DAY),
)
async def _today(story: _Story, options: argparse.Namespace) -> int:
    day = story.day(" ".join(options.day))
    session = await _played_now(story)
    await story.desk.times.tell(story.desk.campaign, session, day)
    goes_on = f"session {session} goes on on it" if session else "the next session begins on it"
    print(f"it is {day}: {goes_on}")
    return 0


async def _played_now(story: _Story) -> str:
    """The session that was opened, or in which something was said, in the last hours."""
    since_ms = time.time_ns() // 1_000_000 - STILL_PLAYED_MS
    said = await story.desk.times.last_said(story.desk.campaign)
    recent = [(told.told_ms, told.session) for told in story.kept.told if told.session != BETWEEN]
    if said is not None:
        recent.append((said[1], said[0]))
    last_ms, session = max(recent, default=(0, BETWEEN))
    return session if last_ms > since_ms else BETWEEN


@VERB.action(
    "on which days of the story a session was played, to put it right",
    SESSION,
    argument("first", metavar="FIRST", help=A_DAY),
    argument("last", nargs="?", metavar="LAST", help="left out: it was one day"),
)
async def _session(story: _Story, options: argparse.Namespace) -> int:
    session: SessionId = options.session
    days = [story.day(text) for text in (options.first, options.last) if text is not None]
    if story.calendar.day_named(days[0]) > story.calendar.day_named(days[-1]):
        raise InvalidInput(f"{days[0]} is after {days[-1]}: the first day comes first")
    days = list(dict.fromkeys(days))
    await story.desk.times.set_days(story.desk.campaign, session, days)
    print(f"session {session} was played on {' to '.join(days)}")
    return 0
