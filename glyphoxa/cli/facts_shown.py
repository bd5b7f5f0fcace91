"""Facts as `glyphoxa facts` and `glyphoxa inspect` show them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Final

from rich.text import Text

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Argument, argument
from glyphoxa.dm.lines import plain
from glyphoxa.dm.resolver import NameResolver
from glyphoxa.dm.wording import certainty_in_words, knower_in_words, learned_from, place, short, validity_in_words
from glyphoxa.domain.ids import FactId
from glyphoxa.domain.knowledge import EndedFact, Fact
from glyphoxa.world.api import claim_in_words, moment, visibility_in_words

A_DAY: Final = 'such as "12 Hammer 1492", or 12 where days are only counted'
_MOST_ROWS = 1_000_000


def limit(default: int) -> Argument:
    """How much to show."""
    return argument("--limit", type=_count, default=default, metavar="N", help=f"default {default}")


def _count(text: str) -> int:
    """How many to show, as a user types it."""
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_ROWS:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {_MOST_ROWS:,}, not {text!r}")
    return int(text)


def in_one_line(desk: Desk, fact: Fact) -> str:
    known_to = visibility_in_words(fact.visibility, desk.resolver)
    return plain(f"{short(fact.id)} {desk.facts.words(fact)}: {fact.status}, {known_to}")


def listing(
    facts: Sequence[Fact],
    resolver: NameResolver,
    *,
    limit: int,
    nothing: str = "",
    also: tuple[str, Callable[[Fact], str]] | None = None,
) -> None:
    """A row a fact.

    Args:
        resolver: Whose names are used.
        limit: As many were asked for: if there are so many, there may be more.
        also: Another column: its heading, and what it says of a fact.
    """
    if not facts:
        print(nothing)
        return
    # On a narrow terminal every column that says nothing costs the facts their room.
    with_status = any(fact.status != "accepted" for fact in facts)
    status = ["status"] if with_status else []
    table = a_table("id", "fact", *status, "certainty", "known to", "from", *([also[0]] if also else []))
    for fact in facts:
        table.add_row(
            short(fact.id),
            Text(claim_in_words(fact.claim, resolver)),
            *([fact.status] if with_status else []),
            "confirmed" if fact.provenance.dm_confirmed else certainty_in_words(fact),
            Text(visibility_in_words(fact.visibility, resolver)),
            Text(learned_from(fact)),
            *([Text(also[1](fact))] if also else []),
        )
    show(table)
    if len(facts) == limit:
        print(f"the first {limit}; --limit shows more")


async def everything_about(desk: Desk, found: Fact | EndedFact) -> None:
    """Why it is known, by whom, and what hangs together with it."""
    fact = found.fact if isinstance(found, EndedFact) else found
    provenance, inspection = fact.provenance, desk.inspection
    print(f"{fact.id}  {plain(desk.facts.words(fact))}")
    if isinstance(found, EndedFact):
        by = "" if found.superseded_by is None else f" by {short(found.superseded_by)}"
        print(f"  no longer held: {found.ended_as.replace('_', ' ')}{by} (event {found.ended_seq})")
    else:
        print(f"  {fact.status}{', though you refused it before' if fact.doubted else ''}")
    print(f"  {certainty_in_words(fact)}, from {provenance.origin.replace('_', ' ')}, stated {_times(fact.mentions)}")
    if provenance.reason:
        print(f"  because {provenance.reason}")
    await _say_where(desk, fact)
    if validity := validity_in_words(fact.validity, desk.days.calendar):
        print(f"  holds {validity}")
    for key, value in fact.attributes.items():
        print(f"  {key}: {value}")
    print(f"  known to: {visibility_in_words(fact.visibility, desk.resolver)}")
    for knower in fact.visibility.knowers:
        print(f"    {knower_in_words(knower, desk.resolver)}")
    _say_facts(desk, "rests on", fact.supports, await inspection.facts(desk.campaign, fact.supports))
    resting = await inspection.resting_on(desk.campaign, fact.id)
    _say_facts(desk, "on it rests", [each.id for each in resting], resting)
    _say_facts(desk, "disagrees with", fact.disputes, await inspection.facts(desk.campaign, fact.disputes))


async def _say_where(desk: Desk, fact: Fact) -> None:
    provenance = fact.provenance
    if provenance.utterance_id is None:
        at = moment(provenance.at_ms)
        where = place(provenance.session_id, provenance.ordinal)
        told = ", ".join(each for each in (where, at) if each)
        print(f"  stated: {told}" if told else "  stated: nobody noted when")
        return
    said = await desk.inspection.said(desk.campaign, provenance.utterance_id)
    if said is None:
        where = place(provenance.session_id, provenance.ordinal)
        print(f"  said: {where}, {moment(provenance.at_ms)} (utterance {provenance.utterance_id}, not in the log)")
        return
    where = place(said.session_id, said.ordinal)
    retracted = ", rolled back" if said.is_retracted else ""
    print(
        f"  said: {where}, {moment(said.at_ms)} (utterance {said.utterance_id}{retracted})\n"
        f"    {plain(f'{said.speaker_name}: {said.text}')}"
    )


def _say_facts(desk: Desk, title: str, ids: Sequence[FactId], facts: Sequence[Fact]) -> None:
    known = {fact.id: fact for fact in facts}
    for fact in ids:
        if fact in known:
            print(f"  {title} {short(fact)} {plain(desk.facts.words(known[fact]))} ({known[fact].status})")
        else:
            print(f"  {title} {short(fact)}, which is no longer held")


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"
