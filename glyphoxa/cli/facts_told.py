"""What happened to facts, what a rollback would do and what a decision did, as `glyphoxa facts` tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli import facts_shown as shown
from glyphoxa.cli.tables import a_table, show
from glyphoxa.dm import wording
from glyphoxa.dm.facts import Decision
from glyphoxa.dm.lines import plain
from glyphoxa.dm.timeline import Preview
from glyphoxa.domain.ids import FactId
from glyphoxa.world.api import Words, WorldEvent, moment

_MOST_IN_PREVIEW = 20


async def events(
    desk: Desk, happened: Sequence[tuple[WorldEvent, bool]], *, of: Mapping[FactId, str] | None = None
) -> None:
    words = {**await desk.facts.in_words([event for event, _ in happened]), **(of or {})}
    table = a_table("event", "when", "by", "what", "where", "")
    for recorded, counts in happened:
        table.add_row(
            str(recorded.seq),
            moment(recorded.cause.at_ms),
            recorded.cause.by.replace("_", " "),
            Text(recorded.event.in_words(Words(desk.resolver, words))),
            Text(wording.place(recorded.cause.session_id, recorded.cause.ordinal)),
            "" if counts else "undone",
        )
    show(table)


def preview(desk: Desk, found: Preview) -> None:
    for title, facts in (
        ("no longer known", found.gone),
        ("known otherwise", found.changed),
        ("known again", found.back),
    ):
        for fact in facts[:_MOST_IN_PREVIEW]:
            print(f"{title}: {plain(desk.facts.words(fact))}")
        if len(facts) > _MOST_IN_PREVIEW:
            print(f"{title}: {len(facts) - _MOST_IN_PREVIEW} more")
    if found.events:
        print(f"events that are dropped: {len(found.events)}")
    if found.n_utterances:
        print(f"utterances that nobody recalls any more: {found.n_utterances}")


def decision(desk: Desk, made: Decision) -> int:
    for fact in made.facts:
        print(shown.in_one_line(desk, fact))
        for disputed in fact.disputes:
            ends_it = f"glyphoxa facts confirm {wording.short(fact.id)}"
            print(f"  it disagrees with {wording.short(disputed)}: `{ends_it}` ends that one")
    for ended in made.ended:
        print(f"no longer held: {plain(desk.facts.words(ended.fact))} ({ended.ended_as.replace('_', ' ')})")
    return 0
