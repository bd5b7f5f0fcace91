"""`glyphoxa turns`: what was recorded of each turn, for who asks why an NPC said what it said. Nothing is changed."""

from __future__ import annotations

import argparse
from typing import Final

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli.scope import CAMPAIGN, ONE_SESSION, run_at_desk
from glyphoxa.cli.tables import a_table, show, show_lines
from glyphoxa.cli.verb import Verb, argument, limit
from glyphoxa.dm import turn_told
from glyphoxa.dm.lines import printable
from glyphoxa.dm.resolver import NameResolver
from glyphoxa.dm.turns import LAST, short
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.turn import Outcome, TurnRecord

_MOST_SHOWN: Final = 20


VERB = Verb(run_at_desk)


@VERB.itself(
    argument(
        "turn", nargs="?", metavar="TURN", help=f"its id or an ending of it; {LAST}: the latest of those that fit"
    ),
    ONE_SESSION,
    argument("--npc", metavar="NPC", help="only what this NPC was to answer"),
    argument("--prompt", help="of one turn: everything its model was given, word for word"),
    limit(_MOST_SHOWN),
    *CAMPAIGN,
    text="The latest turns, or all that was recorded of one: what was heard and how names were put right, to whom it "
    "was said, what the NPC recalled and why, what was left out, what it said, how long all of it took, and "
    "what has become of it since.",
)
async def _turns(desk: Desk, options: argparse.Namespace) -> int:
    if options.prompt and options.turn is None:
        raise InvalidInput(f"--prompt is of one turn: say which, such as: glyphoxa turns {LAST} --prompt")
    session: SessionId | None = options.session
    npc = None if options.npc is None else desk.resolver.npc(options.npc)
    if options.turn is None:
        latest = await desk.turns.latest(session=session, npc=npc, limit=options.limit)
        _list(latest, desk.resolver, most=options.limit, is_narrowed=session is not None or npc is not None)
        return 0
    turn = await desk.turns.find(options.turn, session=session, npc=npc)
    if options.prompt:
        print(printable(turn.prompt_text) or "its model was given nothing")
    else:
        show_lines(turn_told.told(await desk.turns.explain(turn), desk.resolver, desk.days.calendar))
    return 0


def _list(turns: list[TurnRecord], resolver: NameResolver, *, most: int, is_narrowed: bool) -> None:
    if not turns:
        print("no turn like that was recorded" if is_narrowed else "no turn was recorded yet")
        return
    table = a_table("turn", "when", "heard", "said", "in prompt")
    for turn in turns:
        n_recalled = len(turn.recalled) + len(turn.rejected)
        table.add_row(
            short(turn.id),
            turn_told.when(turn),
            f"{turn.speaker_name}: {turn.text}",
            _said(turn, resolver),
            f"{len(turn.recalled)} of {n_recalled}" if n_recalled else "",
        )
    show(table)
    if len(turns) == most:
        print(f"the last {most}; --limit shows more")


def _said(turn: TurnRecord, resolver: NameResolver) -> str:
    """What came of it, in a line."""
    if turn.npc_id is None:
        return f"({turn_told.outcome(turn)}: {turn.address_reason})"
    if turn.outcome is Outcome.ANSWERED and turn.reply_heard:
        return f"{resolver.person(turn.npc_id)}: {turn.reply_heard}"
    return f"{resolver.person(turn.npc_id)}: {turn.reply_heard} ({turn_told.outcome(turn)})".replace(":  (", ": (")
