"""`glyphoxa turns`: what was recorded of each turn, for who asks why an NPC said what it said. Nothing is changed."""

from __future__ import annotations

import argparse
from typing import Final

from rich.text import Text

from glyphoxa.cli import turn_shown
from glyphoxa.cli.desk import Desk, run_at_desk, session_of
from glyphoxa.cli.facts_shown import add_limit
from glyphoxa.cli.lines import printable, show_lines
from glyphoxa.cli.opened import add_campaign_options
from glyphoxa.cli.tables import a_table, show
from glyphoxa.dm.cast import Cast
from glyphoxa.dm.turns import LAST, short
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.turn import Outcome, TurnRecord

_MOST_SHOWN: Final = 20


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verb = verbs.add_parser(
        "turns",
        help="why an NPC said what it said: the latest turns, or all of one",
        description="The latest turns, or all that was recorded of one: what was heard and how names were put right, "
        "to whom it was said, what the NPC was reminded of and why, what was left out, what it said, how long all of "
        "it took, and what has become of it since.",
    )
    verb.add_argument(
        "turn", nargs="?", metavar="TURN", help=f"its id or an ending of it; {LAST}: the latest of those that fit"
    )
    verb.add_argument("--session", type=SessionId, metavar="SESSION", help="only of this one")
    verb.add_argument("--npc", metavar="NPC", help="only what this NPC was to answer")
    verb.add_argument(
        "--prompt", action="store_true", help="of one turn: everything its model was given, word for word"
    )
    add_limit(verb, _MOST_SHOWN)
    add_campaign_options(verb)
    verb.set_defaults(run=lambda options: run_at_desk(options, _turns))


async def _turns(desk: Desk, options: argparse.Namespace) -> int:
    if options.prompt and options.turn is None:
        raise InvalidInput(f"--prompt is of one turn: say which, such as: glyphoxa turns {LAST} --prompt")
    session = None if options.session is None else await session_of(desk, options.session)
    npc = None if options.npc is None else desk.cast.npc(options.npc)
    if options.turn is None:
        latest = await desk.turns.latest(session=session, npc=npc, limit=options.limit)
        _list(latest, desk.cast, limit=options.limit, is_narrowed=session is not None or npc is not None)
        return 0
    turn = await desk.turns.find(options.turn, session=session, npc=npc)
    if options.prompt:
        print(printable(turn.prompt_text) or "its model was given nothing")
    else:
        show_lines(turn_shown.told(await desk.turns.explain(turn), desk.cast, desk.days.calendar))
    return 0


def _list(turns: list[TurnRecord], cast: Cast, *, limit: int, is_narrowed: bool) -> None:
    if not turns:
        print("no turn like that was recorded" if is_narrowed else "no turn was recorded yet")
        return
    table = a_table("turn", "when", "heard", "said", "in prompt")
    for turn in turns:
        n_recalled = len(turn.recalled) + len(turn.passed_over)
        table.add_row(
            Text(short(turn.id)),
            turn_shown.when(turn),
            Text(f"{turn.speaker_name}: {turn.text}"),
            Text(_said(turn, cast)),
            f"{len(turn.recalled)} of {n_recalled}" if n_recalled else "",
        )
    show(table)
    if len(turns) == limit:
        print(f"the last {limit}; --limit shows more")


def _said(turn: TurnRecord, cast: Cast) -> str:
    """What came of it, in a line."""
    if turn.npc_id is None:
        return f"({turn_shown.outcome(turn)}: {turn.address_reason})"
    if turn.outcome is Outcome.ANSWERED and turn.reply_heard:
        return f"{cast.person(turn.npc_id)}: {turn.reply_heard}"
    return f"{cast.person(turn.npc_id)}: {turn.reply_heard} ({turn_shown.outcome(turn)})".replace(":  (", ": (")
