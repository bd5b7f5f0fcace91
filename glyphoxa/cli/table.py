"""`glyphoxa table`: the game master at an open table of another process, and who may enter it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from glyphoxa.adapters.postgres.transcript.table_commands import PastCommand, PostgresTableCommands
from glyphoxa.app.scope import Scope
from glyphoxa.cli.render import show_rows
from glyphoxa.cli.scope import CAMPAIGN, CONFIG, as_it_is, campaign_argument, file_or_stored, in_scope, session_argument
from glyphoxa.cli.verb import Argument, Verb, argument, at_once, limit
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.dm.wording import plain
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.language.facts import moment
from glyphoxa.npc.commands import MAX_IN_A_ROW, MAX_ROUNDS, MAX_TURNS
from glyphoxa.web.access.links import Links
from glyphoxa.web.access.records import AuditKind, AuditLog, audit_path, read_audit
from glyphoxa.web.access.roles import Grant, Role

_MOST_SHOWN: Final = 20
_MOST_ENTERED: Final = 50
_DIRECTED_TURNS: Final = 3
_TOLD: Final = ("player", "npc", "scene", "turns", "text")
"""The arguments of commands, in the order in which they are shown."""

VERB = Verb(
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


@VERB.itself(text="Without an action: show an open table: who is here, muted, directed, or bound to an NPC.")
async def _show(scope: Scope, options: argparse.Namespace) -> int:
    return await _obeyed(scope, options, {"do": "show"})


def _command(do: str, text: str, *arguments: Argument, either: tuple[str, str, str] | None = None) -> None:
    """Declare an action that sends a command to the table. Its arguments are named as in `glyphoxa.npc.commands`.

    Args:
        either: An argument and a switch of which exactly one must be given, and how to ask for them.
    """

    @VERB.action(text, *arguments, name=do)
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


@VERB.action("list the commands given at the tables of this campaign, latest first", limit(_MOST_SHOWN))
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
    at_once, common=(campaign_argument("--campaign", otherwise="default: the file of the settings"), CONFIG), of=VERB
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
    log = AuditLog(audit_path(settings.data_directory, campaign.id))
    try:
        for grant in grants:
            if options.revoke:
                links.revoke(grant)
                log.record(AuditKind.REVOKED, who=grant.key)
            _show_link(grant, links, with_qr=options.qr)
            if options.calendar:
                print(f"  calendar: {links.calendar(grant)}")
            log.record(AuditKind.INVITED, who=grant.key)
    finally:
        log.close()
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
