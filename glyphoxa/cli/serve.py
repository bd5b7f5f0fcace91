"""`glyphoxa serve`: open a table on a local page, for a new session or to continue one."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Final

from glyphoxa.app.engines import read_playable
from glyphoxa.cli.ending import Ending
from glyphoxa.cli.scope import (
    LAST,
    campaign_argument,
    file_or_stored,
    inspection_of,
    is_number,
    opened_store,
    say,
    session_argument,
    stored_campaign,
    stored_session,
    with_memory,
)
from glyphoxa.cli.verb import Verb, argument, at_once, one_of
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import NotFound
from glyphoxa.domain.ids import SessionId
from glyphoxa.observability import log
from glyphoxa.providers.extras import PAGE_MODULES, need
from glyphoxa.recall.table_calendar import zone_of_campaign
from glyphoxa.transcript.sessions import LastSession, LastSessions

if TYPE_CHECKING:
    from glyphoxa.domain.campaign import Campaign

TO_OPEN: Final = one_of(
    session_argument("--session", about="continue it; or start one with a new name (default: the date and time)"),
    argument("--continue", dest="goes_on", help=f"continue the last session, as --session {LAST}"),
    argument("--new", help="start a new session without prompting"),
)

VERB = Verb(at_once)


@VERB.itself(
    argument("--config", type=Path, metavar="FILE", help="settings (YAML); default: local models"),
    campaign_argument("--campaign", otherwise="default: the file of the settings"),
    argument("--host", metavar="ADDRESS", help="address to listen on; default 127.0.0.1: this machine only"),
    argument("--port", type=int, metavar="N", help="default 7860; 0: any free port"),
    TO_OPEN,
    argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another DNS name of the page, besides localhost and addresses; can be repeated",
    ),
    argument("--open", dest="is_open", help="admit everybody on this machine without a link, to try it alone"),
    argument("--public-url", metavar="URL", help="the URL that players open, if a proxy with https is in front"),
    argument("--tls-cert", type=Path, metavar="FILE", help="serve over https with this certificate (PEM)"),
    argument("--tls-key", type=Path, metavar="FILE", help="the key of that certificate (PEM)"),
    argument("--tls-self-signed", help="serve over https with a generated certificate; browsers warn once"),
)
def run(options: argparse.Namespace) -> int:
    settings = read_settings(options.config)
    campaign = None
    if options.campaign is not None:
        settings, campaign = asyncio.run(_named(options.campaign, settings))
    if options.session is not None and (campaign is not None or settings.campaign is not None):
        options.session = asyncio.run(session_to_open(options.session, settings, campaign))
    with Ending() as ending:
        log.set_up(level=settings.logging.level, with_content=settings.logging.content, form=settings.logging.form)
        need(*PAGE_MODULES, by="`glyphoxa serve`", extra="voice")
        from glyphoxa.cli.table_server import TableServer, address_of
        from glyphoxa.web.serving import bind

        host = options.host or settings.server.host
        with bind(host, settings.server.port if options.port is None else options.port) as listener:
            address = address_of(options, settings, listener)
            if settings.campaign is not None:
                campaign = read_playable(settings.campaign, settings).campaign
            session, began_ms = options.session, time.time_ns() // 1_000_000
            if campaign is not None:
                session = choose(
                    options,
                    campaign,
                    settings.data_directory,
                    now_ms=began_ms,
                    ask=_ask if sys.stdin.isatty() and sys.stdout.isatty() else None,
                )
            server = TableServer(settings, campaign, session, address, listener)
            try:
                asyncio.run(server.run(ending))
            except asyncio.CancelledError:
                # Ctrl-C while the table was being opened; what was open is closed by now.
                return ending.code
            last = LastSessions(settings.data_directory).of(campaign.id) if campaign and settings.has_memory else None
            if last is not None and (last.closed_ms or 0) >= began_ms:
                where = {"--campaign": options.campaign, "--config": options.config}
                given = [word for option, value in where.items() if value for word in (option, str(value))]
                say(f"decide what to keep of it: {shlex.join(['glyphoxa', 'wrap-up', last.session, *given])}")
    return 0


async def _named(wanted: str, settings: Settings) -> tuple[Settings, Campaign | None]:
    """Return the settings with the campaign's file, or without it and the stored campaign."""
    found = await file_or_stored(wanted, settings)
    if isinstance(found, Path):
        return settings.model_copy(update={"campaign": found.absolute()}), None
    return settings.model_copy(update={"campaign": None}), found


def _ask(line: str) -> str:
    return input(f"{line[:1].upper()}{line[1:]}")


# Which session


RECENT_MS = 6 * 3_600_000
"""A session that was closed more recently may be continued."""

Ask = Callable[[str], str]
"""Shows a line on a terminal and returns the answer. Raises EOFError when there is none."""


async def session_to_open(wanted: str, settings: Settings, campaign: Campaign | None) -> SessionId:
    """Return the session with this number; else the one with this name, new or not. A number needs the database.

    Args:
        campaign: None is the one of the settings' file.

    Raises:
        NotFound: There is no session of this number.
        InvalidInput: Nothing is stored, by the settings.
    """
    if not is_number(wanted):
        return SessionId(wanted)
    async with opened_store(with_memory(settings, to_hold="sessions, so they have no numbers")) as store:
        found = await stored_campaign(store, None if campaign is None else campaign.id, settings)
        return await stored_session(inspection_of(store), found, wanted)


def choose(
    options: argparse.Namespace,
    campaign: Campaign,
    data: Path,
    *,
    now_ms: int,
    ask: Ask | None,
) -> SessionId | None:
    """Return the session to open: the one in the options, else the last one if it can continue; None for a new one.

    Args:
        data: The data directory.
        ask: None if nobody can answer: then a session continues only if an option says so.

    Raises:
        NotFound: The options ask for the last session, and there is none.
    """
    if options.session not in (None, LAST):
        return SessionId(options.session)
    if options.new:
        return None
    last = LastSessions(data).of(campaign.id)
    if options.goes_on or options.session == LAST:
        if last is None:
            raise NotFound(f"--continue: no session of campaign {campaign.id!r} was played with the data in {data} yet")
        return last.session
    if last is None or (last.closed_ms is not None and now_ms - last.closed_ms > RECENT_MS):
        return None
    how = _how_it_ended(last, zone_of_campaign(campaign.time_zone), now_ms=now_ms)
    if ask is None:
        say(f"{how}. This is a new one; `--session {last.session}` continues it.")
        return None
    return last.session if _wants(ask, f"{how}.", by_default=last.closed_ms is None) else None


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
    """Format the time of day; with the date unless it is today. Without a zone, that of the machine counts."""
    at, now = (datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone) for ms in (at_ms, now_ms))
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}"
