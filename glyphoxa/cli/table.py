"""`glyphoxa serve` and `glyphoxa table`: open a table on a local page, direct an open one, and choose who may enter."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, Final

from glyphoxa.adapters.postgres.transcript.table_commands import PastCommand, PostgresTableCommands
from glyphoxa.app.engines import read_playable
from glyphoxa.app.scope import Scope
from glyphoxa.cli.ending import Ending
from glyphoxa.cli.render import show_rows
from glyphoxa.cli.scope import (
    CAMPAIGN,
    CONFIG,
    as_it_is,
    campaign_argument,
    file_or_stored,
    in_scope,
    opened_store,
    say,
    session_argument,
    stored_campaign,
    stored_session,
    with_memory,
)
from glyphoxa.cli.verb import Argument, Verb, argument, at_once, limit, one_of
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.dm.sessions import LAST, is_number
from glyphoxa.dm.wording import plain
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import SessionId
from glyphoxa.language.facts import moment
from glyphoxa.npc.commands import MAX_IN_A_ROW, MAX_ROUNDS, MAX_TURNS
from glyphoxa.observability import set_up_logs
from glyphoxa.providers.extras import PAGE_MODULES, need
from glyphoxa.recall.table_calendar import zone_of_campaign
from glyphoxa.transcript.sessions import LastSession, LastSessions
from glyphoxa.web.access.links import Links
from glyphoxa.web.access.records import AuditKind, AuditLog, audit_path, read_audit
from glyphoxa.web.access.roles import Grant, Role

TO_OPEN: Final = one_of(
    session_argument("--session", about="continue it; or start one with a new name (default: the date and time)"),
    argument("--continue", dest="goes_on", help=f"continue the last session, as --session {LAST}"),
    argument("--new", help="start a new session without prompting"),
)

SERVE = Verb(at_once)


@SERVE.itself(
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
        set_up_logs(level=settings.logging.level, with_content=settings.logging.content, form=settings.logging.form)
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
        return await stored_session(store, found, wanted)


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


# Directing an open table

_MOST_SHOWN: Final = 20
_MOST_ENTERED: Final = 50
_DIRECTED_TURNS: Final = 3
_TOLD: Final = ("player", "npc", "scene", "turns", "line", "text")
"""The arguments of commands, in the order in which they are shown."""

TABLE = Verb(
    # A table that has just opened has kept nothing of its session yet.
    in_scope(as_it_is, to_hold="commands for a table", takes_new=True),
    common=(*CAMPAIGN, session_argument("--session", about="which table, if several are open")),
)

_NPC = argument("npc", metavar="NPC", help="its name, an alias or its id")
_NPC_OR_ALL = (
    argument("npc", metavar="NPC", nargs="?", help="its name, an alias or its id"),
    argument("--all", help="all of them"),
)
_NPC_OR_ALL_ASKED = ("npc", "all", "the name of an NPC or --all")
_PLAYER = argument("player", metavar="PLAYER", help="the character's name, or the player's id")
_WORDS = argument("text", metavar="WORDS", nargs="+", help="what is said")


@TABLE.itself(text="Without an action: show an open table: who is here, muted, directed, or bound to an NPC.")
async def _show(scope: Scope, options: argparse.Namespace) -> int:
    return await _obeyed(scope, options, {"do": "show"})


def _command(do: str, text: str, *arguments: Argument, either: tuple[str, str, str] | None = None) -> None:
    """Declare an action that sends a command to the table. Its arguments are named as in `glyphoxa.npc.commands`.

    Args:
        either: An argument and a switch of which exactly one must be given, and how to ask for them.
    """

    @TABLE.action(text, *arguments, name=do)
    async def _send(scope: Scope, options: argparse.Namespace) -> int:
        told = {key: getattr(options, key, None) for key in _TOLD}
        told["text"] = " ".join(told["text"] or ()) or None
        if either is not None and (told[either[0]] is not None) == getattr(options, either[1]):
            raise InvalidInput(f"give either {either[2]}")
        return await _obeyed(scope, options, {"do": do} | {key: each for key, each in told.items() if each is not None})


_command(
    "mute", "mute an NPC: it stops speaking, and answers nobody until unmuted", *_NPC_OR_ALL, either=_NPC_OR_ALL_ASKED
)
_command("unmute", "unmute an NPC", *_NPC_OR_ALL, either=_NPC_OR_ALL_ASKED)
_command("say", "speak as an NPC: it says these words in its voice", _NPC, _WORDS)
_command(
    "direct",
    "instruct an NPC for its next answers; nobody hears it",
    _NPC,
    argument("text", metavar="WORDS", nargs="*", help='"be short with them; you are afraid"'),
    argument(
        "--turns", type=int, metavar="N", default=_DIRECTED_TURNS, help=f"1 to {MAX_TURNS}; default {_DIRECTED_TURNS}"
    ),
    argument("--off", help="end the instruction"),
    either=("text", "off", "an instruction, or --off to end the current one"),
)
_command(
    "puppet",
    "send everything a player says to one NPC, until --off",
    _PLAYER,
    argument("npc", metavar="NPC", nargs="?", help="its name, an alias or its id"),
    argument("--off", help="end it"),
    either=("npc", "off", "the name of an NPC or --off"),
)
_command(
    "readdress",
    "say who a player's line was meant for: this NPC answers it now, and no other",
    argument("npc", metavar="NPC", nargs="?", help="its name, an alias or its id"),
    argument("--nobody", help="it was meant for no NPC"),
    argument("--line", metavar="ID", help="the line's id, or the end of it; default: the last line of a player"),
    either=("npc", "nobody", "the name of an NPC or --nobody"),
)
_command("stop", "stop all NPCs: who speaks is cut off, and pending answers are dropped")
_command("pause", "pause the table: nothing is heard, answered or stored until `resume`")
_command("resume", "resume after a pause")
_command("end", "end the session and close the table; everything said is kept")
_command(
    "scene",
    "move the table to another scene: only its NPCs hear what is said",
    argument("scene", metavar="SCENE", help="its id, or the name of its location"),
)
_command("whisper", "whisper to a player: only their page shows it; NPCs do not hear it", _PLAYER, _WORDS)
_command(
    "talk",
    "let NPCs answer each other when they are called by name, at most N times in a row",
    argument("turns", type=int, metavar="N", help=f"1 to {MAX_IN_A_ROW}; 0: NPCs answer only players"),
)
_command(
    "summarise",
    "bring the memory of this session up to date every N rounds: a player's words and the answer",
    argument("turns", type=int, metavar="N", help=f"1 to {MAX_ROUNDS}"),
)


@TABLE.action("list the commands given at the tables of this campaign, latest first", limit(_MOST_SHOWN))
async def _log(scope: Scope, options: argparse.Namespace) -> int:
    found = await _tables(scope).latest(scope.campaign, session=options.session, limit=options.limit)
    rows = (
        (
            moment(each.at_ms),
            each.session,
            _in_words(each),
            each.answer if each.is_done else f"not done: {each.answer or 'no answer'}",
        )
        for each in found
    )
    return show_rows(("when", "session", "command", "answer"), rows, nothing="no commands yet")


async def _obeyed(scope: Scope, options: argparse.Namespace, told: Mapping[str, Any]) -> int:
    for line in (await _tables(scope).command(scope.campaign, told, session=options.session)).splitlines():
        print(plain(line))
    return 0


def _tables(scope: Scope) -> PostgresTableCommands:
    return PostgresTableCommands(scope.store.database, scope.store.listener)


def _in_words(command: PastCommand) -> str:
    parts = [command.told.get(each) for each in ("do", *_TOLD)]
    return " ".join(str(part) for part in parts if part not in (None, ""))


# Who may enter

_ACCESS = Verb(
    at_once, common=(campaign_argument("--campaign", otherwise="default: the file of the settings"), CONFIG), of=TABLE
)


@_ACCESS.action(
    "show the links of players, spectators and the game master; renew or revoke them",
    argument("who", nargs="*", metavar="WHO", help="players' ids, dm, spectator; default: all players"),
    argument("--revoke", help="revoke existing links, disconnect their users, and show new links"),
    argument("--qr", help="also show each link as a QR code"),
    argument("--calendar", help="also show each address of the calendar of sessions, for a calendar program"),
    epilog="These are the links that `glyphoxa serve` shows. A player's link is valid until it is revoked. The game "
    "master's works once, within a day; `glyphoxa table invite dm` makes another.",
)
def _invite(options: argparse.Namespace) -> int:
    if options.revoke and not options.who:
        raise InvalidInput("--revoke needs a name, such as: glyphoxa table invite --revoke tamsin")
    settings, campaign = _campaign_of(options)
    links = Links(campaign, settings.data_directory)
    if not links.url:
        raise InvalidInput(
            f"the table of {campaign.name!r} has no links yet: open it with `glyphoxa serve`, without --open"
        )
    grants = [links.grant_named(who) for who in options.who or links.players]
    audit = AuditLog(audit_path(settings.data_directory, campaign.id))
    try:
        for grant in grants:
            if options.revoke:
                links.revoke(grant)
                audit.record(AuditKind.REVOKED, who=grant.key)
            _show_link(grant, links, with_qr=options.qr)
            if options.calendar:
                print(f"  calendar: {links.calendar(grant)}")
            audit.record(AuditKind.INVITED, who=grant.key)
    finally:
        audit.close()
    if links.remark:
        print(links.remark, file=sys.stderr)
    return 0


def _campaign_of(options: argparse.Namespace) -> tuple[Settings, Campaign]:
    """
    Raises:
        InvalidInput: Neither the options nor the settings name a campaign, or it cannot be used.
        NotFound: There is no such file, or no such campaign is stored.
    """
    settings = read_settings(options.config)
    found = asyncio.run(file_or_stored(options.campaign, settings))
    return settings, read_campaign(found).campaign if isinstance(found, Path) else found


def _show_link(grant: Grant, links: Links, *, with_qr: bool) -> None:
    name = grant.role.value if grant.player is None else links.players[grant.player]
    link = links.dm_link() if grant.role is Role.DM else links.link(grant)
    print(f"{name}: {link}")
    if with_qr:
        import segno

        segno.make(link, error="l").terminal(sys.stdout, compact=True)


@_ACCESS.action(
    "list who entered the table, by whose link and from where; who was refused, and why; what was changed",
    limit(_MOST_ENTERED),
)
def _audit(options: argparse.Namespace) -> int:
    settings, campaign = _campaign_of(options)
    entries = deque(read_audit(audit_path(settings.data_directory, campaign.id)), maxlen=options.limit)
    rows = []
    for entry in entries:
        unknown = "unknown" if entry.kind is AuditKind.REFUSED else ""
        rows.append((moment(entry.at_ms), entry.who or unknown, entry.kind.value, entry.what, entry.address))
    nothing = f"nobody has entered the table of {campaign.name} by a link yet; with --open, nothing is recorded"
    return show_rows(("when", "who", "what", "detail", "from"), rows, nothing=nothing)
