"""`glyphoxa campaign vault` and `glyphoxa campaign ical`."""

from __future__ import annotations

import argparse
from pathlib import Path

from glyphoxa.app.scope import Scope
from glyphoxa.cli.campaign import VERB
from glyphoxa.cli.scope import CAMPAIGN, desk_in, run_in_scope, write_new_file
from glyphoxa.cli.verb import Verb, argument
from glyphoxa.dm.wording import plain
from glyphoxa.domain.errors import InvalidInput, counted

OUT = Verb(run_in_scope, common=CAMPAIGN, of=VERB)


@OUT.action(
    "write sessions and world as an Obsidian vault, or bring one up to date; a note that you edited stays as it is",
    argument("folder", type=Path, metavar="FOLDER", help="of the vault; created if it does not exist"),
    argument(
        "--for",
        dest="readers",
        choices=("players", "dm"),
        default="players",
        help="players: only what they may know; dm: everything, with secrets marked. Default: players",
    ),
    argument("--transcript", help="include all that was said; only with --for dm"),
)
async def _vault(scope: Scope, options: argparse.Namespace) -> int:
    from glyphoxa.plugins.exports.formats import vault_of, write_vault

    if options.transcript and options.readers != "dm":
        raise InvalidInput("--transcript includes asides and hidden names: it needs --for dm")
    desk = await desk_in(scope)
    notes = await vault_of(scope.store, desk, readers=options.readers, with_transcript=options.transcript)
    done = write_vault(options.folder, notes, campaign=scope.campaign, readers=options.readers)
    n_written = counted(done.n_written, "note")
    print(f"{options.folder}: {n_written} written, {done.n_unchanged:,} unchanged, {done.n_removed:,} removed")
    for path in done.kept:
        print(f"not changed, because somebody else wrote or edited it: {plain(path)}")
    return 0


@OUT.action(
    "write a calendar of the sessions, with recaps for players (iCalendar)",
    argument("file", type=Path, metavar="FILE", help="the file to write (.ics); it must not exist"),
)
async def _ical(scope: Scope, options: argparse.Namespace) -> int:
    from glyphoxa.plugins.exports.formats import CalendarFeed

    content = await CalendarFeed(scope.store, scope.campaign).read()
    write_new_file(options.file, content)
    print(f"{options.file}: {counted(content.count(b'BEGIN:VEVENT'), 'session')}")
    return 0
