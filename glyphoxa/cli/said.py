"""`glyphoxa inspect said`: what was said, found by its words, its speaker, its session and its time."""

from __future__ import annotations

import argparse
from typing import Final

from rich.text import Text

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli.desk import session_of
from glyphoxa.cli.facts_shown import limit
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import argument
from glyphoxa.dm.timeline import beginning_of
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.knowledge import DM, Between
from glyphoxa.transcript.api import TalkFilter
from glyphoxa.world.api import moment

_MOST_SHOWN = 20


OPTIONS_OF_SAID: Final = (
    argument("words", nargs="*", metavar="WORDS", help="any of them; left out: whatever was said last"),
    argument("--all-words", help="all of the words, not any"),
    argument("--session", type=SessionId, metavar="SESSION", help="only of this one"),
    argument("--speaker", metavar="NAME", help="only what this player or NPC said"),
    argument("--as", dest="viewer", metavar="NPC", help="only what this NPC heard"),
    argument("--after", metavar="TIME", help='since then: "2026-11-22" or "2026-11-22 19:30" (UTC)'),
    argument("--before", metavar="TIME", help="before then, likewise"),
    limit(_MOST_SHOWN),
)


async def said(desk: Desk, options: argparse.Namespace) -> int:
    words = " ".join(options.words)
    session = None if options.session is None else await session_of(desk, options.session)
    wanted = TalkFilter(
        words,
        match="all" if options.all_words else "any",
        session=session,
        speaker=None if options.speaker is None else desk.resolver.speaker(options.speaker),
        between=Between(_time(options.after, "--after"), _time(options.before, "--before")),
        limit=options.limit,
    )
    viewer = DM if options.viewer is None else desk.resolver.npc(options.viewer)
    found = await desk.talk.search(desk.campaign, viewer, wanted)
    if not found:
        print("nothing was said yet" if _is_everything(options) else "nothing like that was said")
        return 0
    table = a_table("when", "session", "ordinal", "who", "said")
    for each in found:
        uttered = each.utterance
        table.add_row(
            moment(uttered.at_ms),
            Text(uttered.session_id),
            str(each.ordinal),
            Text(uttered.speaker_name),
            Text(uttered.text),
        )
    show(table)
    if len(found) == options.limit:
        print(f"the {'best' if words.strip() else 'last'} {options.limit}; --limit shows more")
    return 0


def _is_everything(options: argparse.Namespace) -> bool:
    narrowing = (options.words, options.session, options.speaker, options.viewer, options.after, options.before)
    return not any(narrowing)


def _time(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    at_ms = beginning_of(text)
    if at_ms is None:
        raise InvalidInput(f"{option} {text!r} is no time such as 2026-11-22 or 2026-11-22T19:30")
    return at_ms
