"""`glyphoxa names`: how a campaign's names are misheard, and the game master's decisions about that."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from glyphoxa.app.desk import names_desk_of
from glyphoxa.cli.render import show_rows
from glyphoxa.cli.scope import CAMPAIGN, in_scope
from glyphoxa.cli.verb import Verb, argument
from glyphoxa.config.located_yaml import text_of
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.language.facts import moment
from glyphoxa.names.learning import NamesDesk
from glyphoxa.names.wrong_forms import LearnedName

_MOST_SHOWN = 50
_MOST_REFUSED_SHOWN = 20
_ALL_THE_SAME = "Use --yes to accept it anyway"


_HEARD = argument("heard", metavar="HEARD", help="the words as the transcript shows them")
_NAME = argument("name", metavar="NAME", help="a name or alias of the campaign")
_WHY = argument("--why", default="", metavar="TEXT", help="a note for the history")
_SURE = argument("--yes", help="even if these words are common in ordinary speech")


VERB = Verb(in_scope(names_desk_of, to_hold="names"), common=CAMPAIGN)


@VERB.action("list all names, with the wrong forms that are corrected")
async def _list(desk: NamesDesk, _options: argparse.Namespace) -> int:
    pairs = await desk.wrong_forms()
    rows = (
        (entry.name, entry.entity_type, ", ".join(map(_heard, pairs.get(entry.entity_id, ()))))
        for entry in desk.names.entries
    )
    return show_rows(("name", "type", "heard as"), rows)


@VERB.action("list suggested wrong forms that need review")
async def _review(desk: NamesDesk, _options: argparse.Namespace) -> int:
    found = await desk.suggestions()
    rows = ((one.heard, one.called, str(one.status.count), "; ".join(one.why)) for one in found[:_MOST_SHOWN])
    show_rows(("heard", "name", "times", "why"), rows, nothing="no names need review")
    if len(found) > _MOST_SHOWN:
        print(f"and {len(found) - _MOST_SHOWN} more, heard less often")
    return 0


@VERB.action("accept a wrong form: HEARD means NAME from now on", _HEARD, _NAME, _WHY, _SURE)
async def _accept(desk: NamesDesk, options: argparse.Namespace) -> int:
    unless = None if options.yes else _ALL_THE_SAME
    done, warned = await desk.accept(options.heard, options.name, unless=unless, why=options.why)
    if warned is not None:
        print(f"warning: {warned}", file=sys.stderr)
    print(done)
    return 0


@VERB.action("reject a wrong form: HEARD does not mean NAME; it is not suggested again", _HEARD, _NAME, _WHY)
async def _reject(desk: NamesDesk, options: argparse.Namespace) -> int:
    print(await desk.reject(options.heard, options.name, why=options.why))
    return 0


@VERB.action(
    "undo your last decision; repeat it for the one before",
    argument("heard", nargs="?", metavar="HEARD", help="the last decision about these words"),
)
async def _undo(desk: NamesDesk, options: argparse.Namespace) -> int:
    print(await desk.undo(options.heard))
    return 0


@VERB.action(
    "list what happened, latest first",
    argument("heard", nargs="?", metavar="HEARD", help="only about these words"),
)
async def _history(desk: NamesDesk, options: argparse.Namespace) -> int:
    rows = []
    for happened in await desk.learned.history(desk.campaign, heard=options.heard, limit=_MOST_SHOWN):
        step, when = happened.step, moment(happened.at_ms)
        rows.append((when, step.kind, step.as_heard, happened.called, step.by, step.why, step.utterance or ""))
    return show_rows(("when", "what", "heard", "name", "by", "why", "utterance"), rows)


@VERB.action(
    "accept a list: a line is HEARD, tab, NAME",
    argument("file", type=Path, metavar="FILE.tsv", help="the list to read"),
    _SURE,
)
async def _import(desk: NamesDesk, options: argparse.Namespace) -> int:
    taken = 0
    refused: list[str] = []
    unless = None if options.yes else _ALL_THE_SAME
    for number, heard, name in _pairs(options.file, desk):
        try:
            await desk.accept(heard, name, unless=unless, why=f"{options.file.name}, line {number}")
        except InvalidInput as error:
            refused.append(f"{options.file}:{number}: {error}")
        else:
            taken += 1
    for told in refused[:_MOST_REFUSED_SHOWN]:
        print(f"skipped: {told}", file=sys.stderr)
    if len(refused) > _MOST_REFUSED_SHOWN:
        print(f"skipped: {len(refused) - _MOST_REFUSED_SHOWN} more", file=sys.stderr)
    print(f"{taken} wrong forms accepted; {len(refused)} skipped")
    return 0


def _pairs(file: Path, desk: NamesDesk) -> list[tuple[int, str, str]]:
    """Return the lines of a file of pairs; all are checked before anything is learned.

    Raises:
        InvalidInput: The file cannot be read, a line is not a pair, or a name is unknown.
    """
    pairs: list[tuple[int, str, str]] = []
    for number, line in enumerate(text_of(file).splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) < 2 or not columns[0] or not columns[1]:
            raise InvalidInput(f"{file}:{number}: {line[:80]!r} is not HEARD, a tab and NAME")
        try:
            pairs.append((number, columns[0], desk.entity(columns[1]).name))
        except InvalidInput as error:
            raise type(error)(f"{file}:{number}: {error}") from None
    return pairs


@VERB.action("print the wrong forms that are corrected, in the format of `import`")
async def _export(desk: NamesDesk, _options: argparse.Namespace) -> int:
    for pair in await desk.learned.statuses(desk.campaign):
        if pair.status.state == "active" and pair.name is not None:
            print(f"{pair.heard}\t{pair.name}")
    return 0


def _heard(pair: LearnedName) -> str:
    state = "" if pair.status.state == "active" else f", {pair.status.state}"
    return f"{pair.heard} ({pair.status.count}{state})"
