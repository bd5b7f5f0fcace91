"""Facts, what happened to them, and what a decision or a rollback does to them, as verbs show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from glyphoxa.cli.tables import a_table, show
from glyphoxa.dm.lines import plain
from glyphoxa.dm.wording import certainty_in_words, knower_in_words, learned_from, place, short, validity_in_words
from glyphoxa.domain.knowledge import EndedFact, Fact
from glyphoxa.world.api import Words, WorldEvent, claim_in_words, moment, visibility_in_words

if TYPE_CHECKING:
    from glyphoxa.bootstrap.desk import Desk
    from glyphoxa.dm.facts import Decision
    from glyphoxa.dm.resolver import NameResolver
    from glyphoxa.dm.timeline import Preview
    from glyphoxa.domain.ids import FactId

_MOST_IN_PREVIEW: Final = 20


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
            claim_in_words(fact.claim, resolver),
            *([fact.status] if with_status else []),
            "confirmed" if fact.provenance.dm_confirmed else certainty_in_words(fact),
            visibility_in_words(fact.visibility, resolver),
            learned_from(fact),
            *([also[1](fact)] if also else []),
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
            recorded.event.in_words(Words(desk.resolver, words)),
            place(recorded.cause.session_id, recorded.cause.ordinal),
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
        print(in_one_line(desk, fact))
        for disputed in fact.disputes:
            ends_it = f"glyphoxa facts confirm {short(fact.id)}"
            print(f"  it disagrees with {short(disputed)}: `{ends_it}` ends that one")
    for ended in made.ended:
        print(f"no longer held: {plain(desk.facts.words(ended.fact))} ({ended.ended_as.replace('_', ' ')})")
    return 0
