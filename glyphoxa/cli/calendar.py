"""`glyphoxa calendar`: the days of the story, and on which of them each session was played."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from glyphoxa.adapters.postgres.campaign_times import KeptTimes, PostgresCampaignTimes
from glyphoxa.adapters.postgres.inspection import PostgresInspection
from glyphoxa.cli.opened import add_campaign_options, opened_store, settings_with_memory, stored_campaign
from glyphoxa.cli.tables import a_table, show
from glyphoxa.dm.ports import Session
from glyphoxa.dm.wording import moment
from glyphoxa.domain.calendar import StoryCalendar
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.memory.recall.when.evenings import STILL_PLAYED_MS
from glyphoxa.memory.story_days import BETWEEN, day_now, times_of

_A_DAY: Final = 'such as "12 Hammer 1492", or 12 where days are only counted'


@dataclass(frozen=True, slots=True)
class _Desk:
    campaign: CampaignId
    calendar: StoryCalendar
    kept: KeptTimes
    times: PostgresCampaignTimes
    sessions: list[Session]

    @property
    def now(self) -> str:
        return day_now(self.kept.file_day, self.kept.told)

    def day(self, text: str) -> str:
        """As the calendar writes it; without a year, the one nearest to where the story stands.

        Raises:
            InvalidInput: There is no such day.
        """
        times = times_of("", self.calendar, self.kept.file_day, self.kept.told)
        today = times.today
        if not self.calendar.months or today is None:
            return self.calendar.in_words(self.calendar.day_named(text))
        year = self.calendar.date_of(today)[0]
        near = {self.calendar.day_named(text, year=max(0, year + by)) for by in (0, -1, 1)}
        return self.calendar.in_words(min(near, key=lambda number: abs(number - today)))


_Act = Callable[[_Desk, argparse.Namespace], Awaitable[int]]


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    calendar = verbs.add_parser("calendar", help="which day it is in the story, and on which each session was played")
    actions = calendar.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(name: str, act: _Act, text: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=text, description=text)
        add_campaign_options(parser)
        parser.set_defaults(run=lambda options: asyncio.run(_at_desk(options, act)))
        return parser

    action("show", _show, "where the story stands, and the days of each session")
    today = action("today", _today, "it is this day of the story now: for the session that is played, or for the next")
    today.add_argument("day", nargs="+", metavar="DAY", help=_A_DAY)
    past = action("session", _session, "on which days of the story a session was played, to put it right")
    past.add_argument("session", type=SessionId, metavar="SESSION")
    past.add_argument("first", metavar="FIRST", help=_A_DAY)
    past.add_argument("last", nargs="?", metavar="LAST", help="left out: it was one day")


async def _at_desk(options: argparse.Namespace, act: _Act) -> int:
    async with opened_store(settings_with_memory(options.config, to_hold="days of a story")) as store:
        campaign = await stored_campaign(store, options.campaign)
        kept = await store.times.kept(campaign)
        if kept.calendar is None:
            raise InvalidInput(
                f"campaign {campaign!r} counts no days of a story: give its file a block `calendar:`, "
                "and load it (docs/campaign-file.md shows one)"
            )
        sessions = await PostgresInspection(store.database).sessions(campaign)
        return await act(_Desk(campaign, kept.calendar, kept, store.times, sessions), options)


async def _show(desk: _Desk, options: argparse.Namespace) -> int:
    print(f"it is {desk.now}" if desk.now else 'nobody has said which day it is: glyphoxa calendar today "..."')
    days: dict[str, list[str]] = {}
    for told in desk.kept.told:
        days.setdefault(told.session, []).append(told.day)
    table = a_table("session", "began", "days of the story")
    for session in desk.sessions:
        known = dict.fromkeys(days.get(session.id, []))
        table.add_row(Text(session.id), moment(session.started_ms), Text(", ".join(map(_as_written(desk), known))))
    if desk.sessions:
        show(table)
    return 0


def _as_written(desk: _Desk) -> Callable[[str], str]:
    """How a day is shown: one that a calendar had once and has no more says so."""

    def shown(day: str) -> str:
        try:
            desk.calendar.day_named(day)
        except InvalidInput:
            return f"{day} (not in the calendar)"
        return day

    return shown


async def _today(desk: _Desk, options: argparse.Namespace) -> int:
    day = desk.day(" ".join(options.day))
    session = await _played_now(desk)
    await desk.times.tell(desk.campaign, session, day)
    goes_on = f"session {session} goes on on it" if session else "the next session begins on it"
    print(f"it is {day}: {goes_on}")
    return 0


async def _played_now(desk: _Desk) -> str:
    """The session that was opened, or in which something was said, in the last hours."""
    since_ms = time.time_ns() // 1_000_000 - STILL_PLAYED_MS
    said = await desk.times.last_said(desk.campaign)
    recent = [(told.told_ms, told.session) for told in desk.kept.told if told.session != BETWEEN]
    if said is not None:
        recent.append((said[1], said[0]))
    last_ms, session = max(recent, default=(0, BETWEEN))
    return session if last_ms > since_ms else BETWEEN


async def _session(desk: _Desk, options: argparse.Namespace) -> int:
    known = [each.id for each in desk.sessions]
    if options.session not in known:
        raise NotFound(
            f"no session {options.session!r} in campaign {desk.campaign!r}: "
            f"{did_you_mean(options.session, known) if known else 'nothing was said yet'}"
        )
    days = [desk.day(text) for text in (options.first, options.last) if text is not None]
    if desk.calendar.day_named(days[0]) > desk.calendar.day_named(days[-1]):
        raise InvalidInput(f"{days[0]} is after {days[-1]}: the first day comes first")
    await desk.times.set_days(desk.campaign, options.session, list(dict.fromkeys(days)))
    print(f"session {options.session} was played on {' to '.join(dict.fromkeys(days))}")
    return 0
