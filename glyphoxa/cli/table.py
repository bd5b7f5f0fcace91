"""`glyphoxa table`: what the DM commands at a table that another process has open."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from rich.text import Text

from glyphoxa.adapters.postgres.transcript.table_commands import PastCommand, PostgresTableCommands
from glyphoxa.cli.facts_shown import limit
from glyphoxa.cli.opened import CAMPAIGN, opened_store, settings_with_memory, stored_campaign
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Verb, argument
from glyphoxa.dm.lines import plain
from glyphoxa.domain.commands import MOST_IN_A_ROW, MOST_TURNS
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.world.api import moment

_MOST_SHOWN: Final = 20
_DIRECTED_TURNS: Final = 3

Act = Callable[[PostgresTableCommands, CampaignId, argparse.Namespace], Awaitable[int]]


def _run(options: argparse.Namespace, act: Act) -> int:
    return asyncio.run(_with_commands(options, act))


async def _with_commands(options: argparse.Namespace, act: Act) -> int:
    settings = settings_with_memory(options.config, to_hold="commands for a table")
    async with opened_store(settings) as store:
        campaign = await stored_campaign(store, options.campaign, settings)
        return await act(PostgresTableCommands(store.database, store.listener), campaign, options)


VERB = Verb(
    _run,
    common=(
        *CAMPAIGN,
        argument(
            "--session", type=SessionId, metavar="SESSION", help="of several open tables, the one of this session"
        ),
    ),
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
async def _show(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    return await _obeyed(commands, campaign, options, do="show")


@VERB.action("an NPC answers nobody until it is unmuted; what it is saying ends", *_NPC_OR_ALL)
async def _mute(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    return await _obeyed(commands, campaign, options, do="mute", npc=_npc_or_all(options))


@VERB.action("a muted NPC may answer again", *_NPC_OR_ALL)
async def _unmute(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    return await _obeyed(commands, campaign, options, do="unmute", npc=_npc_or_all(options))


@VERB.action("an NPC says these words, in its voice and as its own", _NPC, _WORDS)
async def _say(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    return await _obeyed(commands, campaign, options, do="say", npc=options.npc, text=" ".join(options.words))


@VERB.action(
    "an instruction for an NPC's next answers, which nobody hears",
    _NPC,
    argument("words", metavar="WORDS", nargs="*", help='"be short with them; you are afraid"'),
    argument(
        "--turns", type=int, metavar="N", default=_DIRECTED_TURNS, help=f"1 to {MOST_TURNS}; default {_DIRECTED_TURNS}"
    ),
    argument("--off", help="lift the one that stands"),
)
async def _direct(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    text = " ".join(options.words)
    if bool(text) == options.off:
        raise InvalidInput("say what the NPC is to do, or --off to lift what it was told; one of the two")
    return await _obeyed(commands, campaign, options, do="direct", npc=options.npc, text=text, turns=options.turns)


@VERB.action(
    "all that a player says goes to one NPC until it is lifted",
    _PLAYER,
    argument("npc", metavar="NPC", nargs="?", help="its name, an alias or its id"),
    argument("--off", help="their words go to whom they are meant for again"),
)
async def _puppet(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    if (options.npc is not None) == options.off:
        raise InvalidInput("name the NPC, or say --off; one of the two")
    return await _obeyed(commands, campaign, options, do="puppet", player=options.player, npc=options.npc)


@VERB.action("whoever speaks stops, and no answer under way is heard; all that was said is kept")
async def _stop(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    return await _obeyed(commands, campaign, options, do="stop")


@VERB.action("nothing is heard, answered or kept until `resume`; what was being said is kept to its end")
async def _pause(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    return await _obeyed(commands, campaign, options, do="pause")


@VERB.action("play on after a pause")
async def _resume(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    return await _obeyed(commands, campaign, options, do="resume")


@VERB.action("end the session: the table is closed, and all that was said is kept")
async def _end(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    return await _obeyed(commands, campaign, options, do="end")


@VERB.action("words that one player's page shows, and nobody else hears, NPCs included", _PLAYER, _WORDS)
async def _whisper(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    return await _obeyed(commands, campaign, options, do="whisper", player=options.player, text=" ".join(options.words))


@VERB.action(
    "an NPC that another one calls by name answers it, for so many answers in a row",
    argument("turns", type=int, metavar="N", help=f"1 to {MOST_IN_A_ROW}; 0: NPCs answer players alone"),
)
async def _talk(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    return await _obeyed(commands, campaign, options, do="talk", turns=options.turns)


@VERB.action("what was commanded at the tables of this campaign, the latest first", limit(_MOST_SHOWN))
async def _log(commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace) -> int:
    found = await commands.latest(campaign, session=options.session, limit=options.limit)
    if not found:
        print("nothing was commanded from here yet")
        return 0
    table = a_table("when", "session", "command", "answer")
    for each in found:
        table.add_row(
            moment(each.at_ms),
            Text(each.session),
            Text(_in_words(each)),
            Text(each.answer if each.is_done else f"not done: {each.answer or 'no answer'}"),
        )
    show(table)
    return 0


async def _obeyed(
    commands: PostgresTableCommands, campaign: CampaignId, options: argparse.Namespace, **told: Any
) -> int:
    for line in (await commands.command(campaign, told, session=options.session)).splitlines():
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
