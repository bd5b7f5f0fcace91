"""Which session `glyphoxa serve` opens: the one that is named, the last one, or a new one."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from glyphoxa.cli.verb import argument, one_of
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import NotFound
from glyphoxa.domain.ids import SessionId
from glyphoxa.transcript.api import LastSession, LastSessions

RECENT_MS = 6 * 3_600_000
"""A session that was closed so long ago may still be the evening that is being played."""

Ask = Callable[[str], str]
"""Shows a line on a terminal and returns the answer. Raises EOFError when there is none."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Attributes:
    say: Shows a line.
    ask: None where nobody can answer: then a session goes on only if that was wished.
    """

    say: Callable[[str], None]
    ask: Ask | None


WHICH: Final = one_of(
    argument("--session", metavar="NAME", help="name of the session; default: the date and time"),
    argument("--continue", dest="goes_on", help="go on with the last session"),
    argument("--new", help="begin a new session, and ask nothing"),
)


def choose(
    options: argparse.Namespace,
    campaign: Campaign,
    data: Path,
    *,
    now_ms: int,
    terminal: Terminal,
) -> SessionId | None:
    """The session to open; None for a new one.

    Args:
        data: The data directory.

    Raises:
        NotFound: The last session is wished, and there is none.
    """
    if options.session is not None:
        return SessionId(options.session)
    if options.new:
        return None
    last = LastSessions(data).of(campaign.id)
    if options.goes_on:
        if last is None:
            raise NotFound(f"--continue: no session of campaign {campaign.id!r} was played with the data in {data} yet")
        return last.session
    if last is None or (last.closed_ms is not None and now_ms - last.closed_ms > RECENT_MS):
        return None
    how = _how_it_ended(last, _zone(campaign), now_ms=now_ms)
    if terminal.ask is None:
        terminal.say(f"{how}. This is a new one; `--session {last.session}` goes on with it.")
        return None
    return last.session if _wants(terminal.ask, f"{how}.", by_default=last.closed_ms is None) else None


def _wants(ask: Ask, how: str, *, by_default: bool) -> bool:
    while True:
        try:
            answer = ask(f"{how} Continue it? [{'Y/n' if by_default else 'y/N'}] ").strip().lower()
        except EOFError:
            return False
        if answer in ("", "y", "yes", "n", "no"):
            return by_default if not answer else answer.startswith("y")


def _how_it_ended(last: LastSession, zone: tzinfo | None, *, now_ms: int) -> str:
    session = f"the session {last.session} of {_at(last.began_ms, zone, now_ms=now_ms)}"
    if last.closed_ms is None:
        return f"{session} was not closed"
    return f"{session} was closed at {_at(last.closed_ms, zone, now_ms=now_ms)}"


def _at(at_ms: int, zone: tzinfo | None, *, now_ms: int) -> str:
    """The time of day; with the day, where it is another than today."""
    at, now = (datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone) for ms in (at_ms, now_ms))
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}"


def _zone(campaign: Campaign) -> tzinfo | None:
    """None: the machine's."""
    return ZoneInfo(campaign.time_zone) if campaign.time_zone else None
