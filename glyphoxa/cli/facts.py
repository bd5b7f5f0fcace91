"""`glyphoxa facts`: what is known of a campaign's world, why, by whom, and what the DM says to it."""

from __future__ import annotations

import argparse

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli import shown
from glyphoxa.cli.scope import A_DAY, CAMPAIGN, SESSION, YES, goes_on, run_at_desk, session_or_other
from glyphoxa.cli.verb import Argument, Verb, argument, limit
from glyphoxa.dm import wording
from glyphoxa.dm.lines import plain
from glyphoxa.dm.past_knowledge import of_state
from glyphoxa.dm.stating import json_or_text
from glyphoxa.dm.timeline import moment_of
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.knowledge import DM, EndedFact, Viewer
from glyphoxa.world.api import Words

_MOST_SHOWN = 50

_ID = argument("fact", metavar="ID", help="a fact's id, or the beginning of it")
_IDS = argument("fact", nargs="+", metavar="ID", help="a fact's id, or the beginning of it")
_CLAIM = (
    argument("--object", metavar="NAME", help="the other entity"),
    argument("--value", type=json_or_text, metavar="VALUE", help="JSON, or text as it is"),
)
_INSTEAD = (_ID, *_CLAIM, argument("--predicate", metavar="WORD", help="such as LOCATED_AT or occupation"))
_MOST = limit(_MOST_SHOWN)
_HIDDEN = "nobody knows it until you reveal it"

VERB = Verb(run_at_desk, common=CAMPAIGN)


def _people(option: str, *, required: bool = False) -> Argument:
    return argument(option, nargs="+", default=[], required=required, metavar="NPC")


# Looking


@VERB.action("facts that wait for your word, the least certain first", _MOST)
async def _pending(desk: Desk, options: argparse.Namespace) -> int:
    facts = await desk.inspection.pending(desk.campaign, limit=options.limit)
    counts = await desk.inspection.waiting(desk.campaign)
    if not facts:
        print("nothing waits for your word")
    else:
        shown.listing(facts, desk.resolver, limit=options.limit)
    for status, verb in (("conflict", "conflicts"), ("stale", "stale")):
        if n := counts.get(status, 0):  # type: ignore[call-overload] # a status each
            print(f"{n} {'facts are' if n > 1 else 'fact is'} in `glyphoxa facts {verb}`")
    return 0


@VERB.action("facts that disagree with what is accepted", _MOST)
async def _conflicts(desk: Desk, options: argparse.Namespace) -> int:
    facts = await desk.inspection.of_status(desk.campaign, "conflict", limit=options.limit)
    disputed = await desk.inspection.facts(desk.campaign, {each for fact in facts for each in fact.disputes})
    words = {fact.id: f"{wording.short(fact.id)} {desk.facts.words(fact)}" for fact in disputed}
    shown.listing(
        facts,
        desk.resolver,
        limit=options.limit,
        nothing="nothing disagrees",
        also=("disagrees with", lambda fact: "; ".join(words.get(each, each) for each in fact.disputes)),
    )
    return 0


@VERB.action("facts that rest on what is no longer so", _MOST)
async def _stale(desk: Desk, options: argparse.Namespace) -> int:
    facts = await desk.inspection.of_status(desk.campaign, "stale", limit=options.limit)
    shown.listing(facts, desk.resolver, limit=options.limit, nothing="nothing is stale")
    return 0


@VERB.action(
    "what is known, now or at an earlier time, to you or to an NPC",
    argument("--about", metavar="NAME", help="only of this entity"),
    argument("--as", dest="viewer", metavar="NPC", help="only what this NPC knows"),
    argument(
        "--as-of", metavar="WHEN", help='a session, as "2"; a time, as "2026-11-22 19:30" (UTC); or the event "#120"'
    ),
    _MOST,
)
async def _list(desk: Desk, options: argparse.Namespace) -> int:
    viewer: Viewer = DM if options.viewer is None else desk.resolver.npc(options.viewer)
    about = None if options.about is None else desk.resolver.entity(options.about).id
    if options.as_of is None:
        facts = await desk.inspection.current(desk.campaign, viewer, about=about, limit=options.limit)
        shown.listing(facts, desk.resolver, limit=options.limit, nothing="nothing is known")
        return 0
    state = await desk.timeline.as_of(await session_or_other(desk.inspection, desk.campaign, options.as_of))
    facts = of_state(state, viewer, about=about)
    names = desk.resolver.with_names({each.id: each.name for each in state.entities.values()})
    shown.listing(facts[: options.limit], names, limit=options.limit, nothing="nothing was known")
    return 0


@VERB.action("everything about a fact: from where, who knows it and how, what rests on it", _ID)
async def _show(desk: Desk, options: argparse.Namespace) -> int:
    found = await desk.facts.find_ever(options.fact)
    fact = found.fact if isinstance(found, EndedFact) else found
    await shown.everything_about(desk, found)
    print("history")
    await shown.events(desk, await desk.timeline.history_of(fact), of={fact.id: "it"})
    return 0


# Deciding


@VERB.action("it is true; what disagrees with it ends", _IDS)
async def _confirm(desk: Desk, options: argparse.Namespace) -> int:
    return shown.decision(desk, await desk.facts.confirm(options.fact))


@VERB.action("it never was so: it was misunderstood", _IDS)
async def _reject(desk: Desk, options: argparse.Namespace) -> int:
    return shown.decision(desk, await desk.facts.reject(options.fact))


@VERB.action("it was misunderstood: this is so instead", *_INSTEAD)
async def _edit(desk: Desk, options: argparse.Namespace) -> int:
    return shown.decision(desk, await desk.facts.edit(options.fact, **_instead(options)))  # type: ignore[arg-type]


@VERB.action("the story changes: it never was so, or this was so instead", *_INSTEAD)
async def _retcon(desk: Desk, options: argparse.Namespace) -> int:
    instead = _instead(options)
    if all(each is None for each in instead.values()):
        return shown.decision(desk, await desk.facts.retcon(options.fact))
    return shown.decision(desk, await desk.facts.retcon_to(options.fact, **instead))


def _instead(options: argparse.Namespace) -> dict[str, object]:
    return {"predicate": options.predicate, "object": options.object, "value": options.value}


@VERB.action(
    "it was so and is no longer",
    _ID,
    argument("--at", metavar="TIME", help='since when, as "2026-11-22 19:30" (UTC); else since now'),
    argument("--day", metavar="DAY", help=f"since which day of the story: {A_DAY}"),
)
async def _close(desk: Desk, options: argparse.Namespace) -> int:
    at_ms = None if options.at is None else moment_of(options.at)
    if options.at is not None and at_ms is None:
        raise InvalidInput(f"--at {options.at!r} is no time such as 2026-11-22 or 2026-11-22T19:30")
    day = None if options.day is None else desk.days.day_named(options.day)
    return shown.decision(desk, await desk.facts.close(options.fact, at_ms=at_ms, story=day))


@VERB.action("only these NPCs know it", _ID, _people("--known-by", required=True))
async def _secret(desk: Desk, options: argparse.Namespace) -> int:
    return shown.decision(desk, await desk.facts.keep_secret(options.fact, options.known_by))


@VERB.action(_HIDDEN, _ID)
async def _hide(desk: Desk, options: argparse.Namespace) -> int:
    return shown.decision(desk, await desk.facts.hide(options.fact))


@VERB.action("to these NPCs, or to everybody", _ID, _people("--to"))
async def _reveal(desk: Desk, options: argparse.Namespace) -> int:
    return shown.decision(desk, await desk.facts.reveal(options.fact, options.to))


@VERB.action(
    "note that somebody told it to NPCs",
    _ID,
    _people("--to", required=True),
    argument("--by", required=True, metavar="WHO", help="a player, an NPC, or dm"),
)
async def _tell(desk: Desk, options: argparse.Namespace) -> int:
    return shown.decision(desk, await desk.facts.tell(options.fact, options.to, by=options.by))


@VERB.action(
    "state a fact by hand",
    argument("subject", metavar="SUBJECT", help="an entity's name, alias or id"),
    argument("predicate", metavar="PREDICATE", help="such as LOCATED_AT or occupation"),
    *_CLAIM,
    _people("--known-by"),
    argument("--hidden", help=_HIDDEN),
)
async def _add(desk: Desk, options: argparse.Namespace) -> int:
    decision = await desk.facts.add(
        options.subject,
        options.predicate,
        object=options.object,
        value=options.value,
        known_by=options.known_by,
        is_hidden=options.hidden,
    )
    return shown.decision(desk, decision)


@VERB.action(
    "take back your last decision, or an event; again for the one before",
    argument("seq", nargs="?", type=int, metavar="SEQ", help="number of an event, as history shows it"),
)
async def _undo(desk: Desk, options: argparse.Namespace) -> int:
    taken = await desk.timeline.undo(options.seq)
    words = await desk.facts.in_words(taken)
    for recorded in taken:
        print(f"undone: {plain(recorded.event.in_words(Words(desk.resolver, words)))}")
    return 0


@VERB.action(
    "what happened, latest first; or everything that happened to a fact",
    argument("fact", nargs="?", metavar="ID", help="a fact's id, or the beginning of it"),
    _MOST,
)
async def _history(desk: Desk, options: argparse.Namespace) -> int:
    if options.fact is None:
        await shown.events(desk, await desk.timeline.history(limit=options.limit))
        return 0
    found = await desk.facts.find_ever(options.fact)
    fact = found.fact if isinstance(found, EndedFact) else found
    print(f"{fact.id}  {plain(desk.facts.words(fact))}")
    await shown.events(desk, await desk.timeline.history_of(fact), of={fact.id: "it"})
    return 0


@VERB.action(
    "back to what was known when that utterance had been said",
    SESSION,
    argument("ordinal", type=int, metavar="ORDINAL", help="number of the last utterance that stays; 0 for none"),
    YES,
)
async def _rollback(desk: Desk, options: argparse.Namespace) -> int:
    preview = await desk.timeline.preview(options.session, options.ordinal)
    if not preview.events and not preview.n_utterances:
        print("nothing was said or learned after that")
        return 0
    shown.preview(desk, preview)
    if not await goes_on("Your own decisions and the campaign's file stay.", is_sure=options.yes):
        print("nothing was changed")
        return 1
    done = await desk.timeline.rollback(options.session, options.ordinal)
    undo = f"; take it back with `glyphoxa facts undo {done.seq}`" if done is not None else ""
    print(f"rolled back{undo}")
    return 0
