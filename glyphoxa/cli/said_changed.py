"""`glyphoxa said`: what was said, and the DM's word on one utterance: it is retracted, or other words were said."""

from __future__ import annotations

import argparse

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli import shown
from glyphoxa.cli.scope import CAMPAIGN, ONE_SESSION, YES, goes_on, run_at_desk
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Verb, argument, limit
from glyphoxa.dm.lines import plain
from glyphoxa.dm.ports import CitedUtterance
from glyphoxa.dm.said import SaidDesk, short
from glyphoxa.domain.knowledge import DM
from glyphoxa.transcript.api import TalkFilter
from glyphoxa.world.api import WorldEvent, moment

_MOST_SHOWN = 20


_ID = argument("utterance", metavar="ID", help="its id, an ending of it, or words that only it has")

VERB = Verb(run_at_desk, common=CAMPAIGN)


@VERB.itself(words=[], session=None, limit=_MOST_SHOWN, yes=False)
@VERB.action(
    "what was said last, or with these words, each with its id; so without an action",
    argument("words", nargs="*", metavar="WORDS", help="any of them"),
    ONE_SESSION,
    limit(_MOST_SHOWN),
)
async def _list(desk: Desk, options: argparse.Namespace) -> int:
    words = " ".join(options.words)
    found = await desk.talk.search(desk.campaign, DM, TalkFilter(words, session=options.session, limit=options.limit))
    if not found:
        print("nothing like that was said" if words or options.session else "nothing was said yet")
        return 0
    table = a_table("id", "when", "session", "who", "said")
    for each in found:
        said = each.utterance
        table.add_row(short(said.id), moment(said.at_ms), said.session_id, said.speaker_name, said.text)
    show(table)
    return 0


@VERB.action("it was never said: nobody recalls it, nothing rests on it", _ID, YES)
async def _retract(desk: Desk, options: argparse.Namespace) -> int:
    said = await SaidDesk(desk.campaign, desk.inspection, desk.talk).find(options.utterance)
    print(f"retracted: {_in_words(said)}")
    if not await _is_wanted(desk, said, options):
        return 1
    return _done("retracted", await desk.timeline.retract(said))


@VERB.action(
    "something else was said: that is what everybody heard",
    _ID,
    YES,
    argument("text", metavar="WORDS", help="what was said instead"),
)
async def _correct(desk: Desk, options: argparse.Namespace) -> int:
    said = await SaidDesk(desk.campaign, desk.inspection, desk.talk).find(options.utterance)
    print(f"heard: {_in_words(said)}")
    print(f"instead: {plain(' '.join(options.text.split()))}")
    if not await _is_wanted(desk, said, options):
        return 1
    return _done("corrected", await desk.timeline.correct(said, options.text))


async def _is_wanted(desk: Desk, said: CitedUtterance, options: argparse.Namespace) -> bool:
    shown.preview(desk, await desk.timeline.preview_without(said))
    if await goes_on("It stays in the log; open tables follow.", is_sure=options.yes):
        return True
    print("nothing was changed")
    return False


def _in_words(said: CitedUtterance) -> str:
    return plain(f"{said.speaker_name}, {moment(said.at_ms)}, session {said.session_id}: {said.text}")


def _done(what: str, event: WorldEvent) -> int:
    print(f"{what}; take it back with `glyphoxa facts undo {event.seq}`")
    return 0
