"""`glyphoxa table`: what the DM commands at a table that another process has open."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, Final

from glyphoxa.adapters.postgres.transcript.table_commands import PastCommand, PostgresTableCommands
from glyphoxa.cli.scope import CAMPAIGN, Scope, in_scope, session_argument
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Verb, argument, limit
from glyphoxa.dm.lines import plain
from glyphoxa.domain.commands import MOST_IN_A_ROW, MOST_TURNS
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId
from glyphoxa.world.api import moment

_MOST_SHOWN: Final = 20
_DIRECTED_TURNS: Final = 3


@dataclass(frozen=True, slots=True)
class _Tables:
    """The open tables of a campaign."""

    campaign: CampaignId
    commands: PostgresTableCommands


async def _tables(scope: Scope) -> _Tables:
    return _Tables(scope.campaign, PostgresTableCommands(scope.store.database, scope.store.listener))


VERB = Verb(
    # A table that has just opened has kept nothing of its session yet.
    in_scope(_tables, to_hold="commands for a table", takes_new=True),
    common=(*CAMPAIGN, session_argument("--session", about="of several open tables, the one of this session")),
)

_NPC = argument("npc", metavar="NPC", help="its name, an alias or its id")
_NPC_OR_ALL = (
    argument("npc", metavar="NPC", nargs="?", help="its name, an alias or its id"),
    argument("--all", help="all of them"),
)
_PLAYER = argument("player", metavar="PLAYER", help="the character's name, or the player's id")
_WORDS = argument("words", metavar="WORDS", nargs="+")


@VERB.itself(
    text="What the DM has in force at an open table: who is here, muted, directed, or bound to an NPC.",
    npc=None,
    all=False,
    off=False,
    words=[],
    limit=_MOST_SHOWN,
)
async def _show(tables: _Tables, options: argparse.Namespace) -> int:
    return await _obeyed(tables, options, do="show")


@VERB.action("an NPC answers nobody until it is unmuted; what it is saying ends", *_NPC_OR_ALL)
async def _mute(tables: _Tables, options: argparse.Namespace) -> int:
    return await _obeyed(tables, options, do="mute", npc=_npc_or_all(options))


@VERB.action("a muted NPC may answer again", *_NPC_OR_ALL)
async def _unmute(tables: _Tables, options: argparse.Namespace) -> int:
    return await _obeyed(tables, options, do="unmute", npc=_npc_or_all(options))


@VERB.action("an NPC says these words, in its voice and as its own", _NPC, _WORDS)
async def _say(tables: _Tables, options: argparse.Namespace) -> int:
    return await _obeyed(tables, options, do="say", npc=options.npc, text=" ".join(options.words))


@VERB.action(
    "an instruction for an NPC's next answers, which nobody hears",
    _NPC,
    argument("words", metavar="WORDS", nargs="*", help='"be short with them; you are afraid"'),
    argument(
        "--turns", type=int, metavar="N", default=_DIRECTED_TURNS, help=f"1 to {MOST_TURNS}; default {_DIRECTED_TURNS}"
    ),
    argument("--off", help="lift the one that stands"),
)
async def _direct(tables: _Tables, options: argparse.Namespace) -> int:
    text = " ".join(options.words)
    if bool(text) == options.off:
        raise InvalidInput("say what the NPC is to do, or --off to lift what it was told; one of the two")
    return await _obeyed(tables, options, do="direct", npc=options.npc, text=text, turns=options.turns)


@VERB.action(
    "all that a player says goes to one NPC until it is lifted",
    _PLAYER,
    argument("npc", metavar="NPC", nargs="?", help="its name, an alias or its id"),
    argument("--off", help="their words go to whom they are meant for again"),
)
async def _puppet(tables: _Tables, options: argparse.Namespace) -> int:
    if (options.npc is not None) == options.off:
        raise InvalidInput("name the NPC, or say --off; one of the two")
    return await _obeyed(tables, options, do="puppet", player=options.player, npc=options.npc)


@VERB.action("whoever speaks stops, and no answer under way is heard; all that was said is kept")
async def _stop(tables: _Tables, options: argparse.Namespace) -> int:
    return await _obeyed(tables, options, do="stop")


@VERB.action("nothing is heard, answered or kept until `resume`; what was being said is kept to its end")
async def _pause(tables: _Tables, options: argparse.Namespace) -> int:
    return await _obeyed(tables, options, do="pause")


@VERB.action("play on after a pause")
async def _resume(tables: _Tables, options: argparse.Namespace) -> int:
    return await _obeyed(tables, options, do="resume")


@VERB.action("end the session: the table is closed, and all that was said is kept")
async def _end(tables: _Tables, options: argparse.Namespace) -> int:
    return await _obeyed(tables, options, do="end")


@VERB.action("words that one player's page shows, and nobody else hears, NPCs included", _PLAYER, _WORDS)
async def _whisper(tables: _Tables, options: argparse.Namespace) -> int:
    return await _obeyed(tables, options, do="whisper", player=options.player, text=" ".join(options.words))


@VERB.action(
    "an NPC that another one calls by name answers it, for so many answers in a row",
    argument("turns", type=int, metavar="N", help=f"1 to {MOST_IN_A_ROW}; 0: NPCs answer players alone"),
)
async def _talk(tables: _Tables, options: argparse.Namespace) -> int:
    return await _obeyed(tables, options, do="talk", turns=options.turns)


@VERB.action("what was commanded at the tables of this campaign, the latest first", limit(_MOST_SHOWN))
async def _log(tables: _Tables, options: argparse.Namespace) -> int:
    found = await tables.commands.latest(tables.campaign, session=options.session, limit=options.limit)
    if not found:
        print("nothing was commanded from here yet")
        return 0
    table = a_table("when", "session", "command", "answer")
    for each in found:
        table.add_row(
            moment(each.at_ms),
            each.session,
            _in_words(each),
            each.answer if each.is_done else f"not done: {each.answer or 'no answer'}",
        )
    show(table)
    return 0


async def _obeyed(tables: _Tables, options: argparse.Namespace, **told: Any) -> int:
    for line in (await tables.commands.command(tables.campaign, told, session=options.session)).splitlines():
        print(plain(line))
    return 0


def _npc_or_all(options: argparse.Namespace) -> str | None:
    if (options.npc is not None) == options.all:
        raise InvalidInput("name the NPC, or say --all; one of the two")
    npc: str | None = options.npc
    return npc


def _in_words(command: PastCommand) -> str:
    told = command.told
    parts = [told.get("do"), told.get("player"), told.get("npc"), told.get("turns"), told.get("text")]
    return " ".join(str(part) for part in parts if part not in (None, ""))
