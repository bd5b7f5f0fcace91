"""`glyphoxa facts`: what is known of a campaign's world, why, by whom, and what the DM says to it."""

from __future__ import annotations

import argparse
import json

from glyphoxa.cli import facts_shown as shown
from glyphoxa.cli import facts_told as told
from glyphoxa.cli.desk import Act, Desk, goes_on, run_at_desk
from glyphoxa.cli.lines import plain
from glyphoxa.cli.opened import add_campaign_options
from glyphoxa.dm.timeline import moment_of
from glyphoxa.dm.wording import happening_in_words
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.knowledge import DM, EndedFact, Viewer

_MOST_SHOWN = 50
_MOST_IN_PREVIEW = 20


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    facts = verbs.add_parser("facts", help="what is known and why: review, change, take back")
    actions = facts.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(name: str, act: Act, text: str, *, on: str = "") -> argparse.ArgumentParser:
        """
        Args:
            on: "ID" for one fact, "ID+" for several.
        """
        parser = actions.add_parser(name, help=text, description=text)
        if on:
            nargs = "+" if on == "ID+" else None
            parser.add_argument("fact", nargs=nargs, metavar="ID", help="a fact's id, or the beginning of it")
        add_campaign_options(parser)
        parser.set_defaults(run=lambda options: run_at_desk(options, act))
        return parser

    for name, act, text in (
        ("pending", _pending, "facts that wait for your word, the least certain first"),
        ("conflicts", _conflicts, "facts that disagree with what is accepted"),
        ("stale", _stale, "facts that rest on what is no longer so"),
    ):
        shown.add_limit(action(name, act, text), _MOST_SHOWN)
    listing = action("list", _list, "what is known, now or at an earlier time, to you or to an NPC")
    listing.add_argument("--about", metavar="NAME", help="only of this entity")
    listing.add_argument("--as", dest="viewer", metavar="NPC", help="only what this NPC knows")
    listing.add_argument("--as-of", metavar="WHEN", help='a session, "2026-11-22 19:30" (UTC) or the event "#120"')
    shown.add_limit(listing, _MOST_SHOWN)
    action("show", _show, "everything about a fact: from where, who knows it and how, what rests on it", on="ID")
    action("confirm", _confirm, "it is true; what disagrees with it ends", on="ID+")
    action("reject", _reject, "it never was so: it was misunderstood", on="ID+")
    editing = action("edit", _edit, "it was misunderstood: this is so instead", on="ID")
    retconning = action("retcon", _retcon, "the story changes: it never was so, or this was so instead", on="ID")
    for parser in (editing, retconning):
        _add_claim(parser)
        parser.add_argument("--predicate", metavar="WORD", help="such as LOCATED_AT or occupation")
    closing = action("close", _close, "it was so and is no longer", on="ID")
    closing.add_argument("--at", metavar="TIME", help='since when, as "2026-11-22 19:30" (UTC); else since now')
    closing.add_argument("--day", metavar="DAY", help=f"since which day of the story: {shown.A_DAY}")
    _add_people(action("secret", _secret, "only these NPCs know it", on="ID"), "--known-by", required=True)
    action("hide", _hide, "nobody knows it until you reveal it", on="ID")
    _add_people(action("reveal", _reveal, "to these NPCs, or to everybody", on="ID"), "--to")
    telling = action("tell", _tell, "note that somebody told it to NPCs", on="ID")
    _add_people(telling, "--to", required=True)
    telling.add_argument("--by", required=True, metavar="WHO", help="a player, an NPC, or dm")
    adding = action("add", _add, "state a fact by hand")
    adding.add_argument("subject", metavar="SUBJECT", help="an entity's name, alias or id")
    adding.add_argument("predicate", metavar="PREDICATE", help="such as LOCATED_AT or occupation")
    _add_claim(adding)
    _add_people(adding, "--known-by")
    adding.add_argument("--hidden", action="store_true", help="nobody knows it until you reveal it")
    undoing = action("undo", _undo, "take back your last decision, or an event; again for the one before")
    undoing.add_argument("seq", nargs="?", type=int, metavar="SEQ", help="number of an event, as history shows it")
    telling_past = action("history", _history, "what happened, latest first; or everything that happened to a fact")
    telling_past.add_argument("fact", nargs="?", metavar="ID", help="a fact's id, or the beginning of it")
    shown.add_limit(telling_past, _MOST_SHOWN)
    back = action("rollback", _rollback, "back to what was known when that utterance had been said")
    back.add_argument("session", type=SessionId, metavar="SESSION")
    back.add_argument("floor", type=int, metavar="FLOOR", help="number of the last utterance that stays; 0 for none")
    back.add_argument("--yes", action="store_true", help="do not ask")


def _add_claim(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--object", metavar="NAME", help="the other entity")
    parser.add_argument("--value", type=json_or_text, metavar="VALUE", help="JSON, or text as it is")


def _add_people(parser: argparse.ArgumentParser, option: str, *, required: bool = False) -> None:
    parser.add_argument(option, nargs="+", default=[], required=required, metavar="NPC")


def json_or_text(text: str) -> object:
    """A value as a user types it.

    >>> json_or_text("[1, true]"), json_or_text("a paranoid wizard")
    ([1, True], 'a paranoid wizard')
    """
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return text if value is None else value


# Looking


async def _pending(desk: Desk, options: argparse.Namespace) -> int:
    facts = await desk.inspection.pending(desk.campaign, limit=options.limit)
    counts = await desk.inspection.waiting(desk.campaign)
    if not facts:
        print("nothing waits for your word")
    else:
        shown.listing(desk, facts, limit=options.limit)
    for status, verb in (("conflict", "conflicts"), ("stale", "stale")):
        if n := counts.get(status, 0):  # type: ignore[call-overload] # a status each
            print(f"{n} {'facts are' if n > 1 else 'fact is'} in `glyphoxa facts {verb}`")
    return 0


async def _conflicts(desk: Desk, options: argparse.Namespace) -> int:
    facts = await desk.inspection.of_status(desk.campaign, "conflict", limit=options.limit)
    disputed = await desk.inspection.facts(desk.campaign, {each for fact in facts for each in fact.disputes})
    words = {fact.id: f"{shown.short(fact.id)} {desk.facts.words(fact)}" for fact in disputed}
    shown.listing(
        desk,
        facts,
        limit=options.limit,
        nothing="nothing disagrees",
        also=("disagrees with", lambda fact: "; ".join(words.get(each, each) for each in fact.disputes)),
    )
    return 0


async def _stale(desk: Desk, options: argparse.Namespace) -> int:
    facts = await desk.inspection.of_status(desk.campaign, "stale", limit=options.limit)
    shown.listing(desk, facts, limit=options.limit, nothing="nothing is stale")
    return 0


async def _list(desk: Desk, options: argparse.Namespace) -> int:
    viewer: Viewer = DM if options.viewer is None else desk.cast.npc(options.viewer)
    about = None if options.about is None else desk.cast.entity(options.about).id
    if options.as_of is None:
        facts = await desk.inspection.current(desk.campaign, viewer, about=about, limit=options.limit)
        shown.listing(desk, facts, limit=options.limit, nothing="nothing is known")
        return 0
    state = await desk.timeline.as_of(options.as_of)
    facts = shown.of_state(state, viewer, about=about)
    names = desk.cast.with_names({each.id: each.name for each in state.entities.values()})
    shown.listing(desk, facts[: options.limit], limit=options.limit, nothing="nothing was known", cast=names)
    return 0


async def _show(desk: Desk, options: argparse.Namespace) -> int:
    found = await desk.facts.find_ever(options.fact)
    fact = found.fact if isinstance(found, EndedFact) else found
    await shown.everything_about(desk, found)
    print("history")
    await told.events(desk, await desk.timeline.history_of(fact), of={fact.id: "it"})
    return 0


async def _history(desk: Desk, options: argparse.Namespace) -> int:
    if options.fact is None:
        await told.events(desk, await desk.timeline.history(limit=options.limit))
        return 0
    found = await desk.facts.find_ever(options.fact)
    fact = found.fact if isinstance(found, EndedFact) else found
    print(f"{fact.id}  {plain(desk.facts.words(fact))}")
    await told.events(desk, await desk.timeline.history_of(fact), of={fact.id: "it"})
    return 0


# Deciding


async def _confirm(desk: Desk, options: argparse.Namespace) -> int:
    return told.decision(desk, await desk.facts.confirm(options.fact))


async def _reject(desk: Desk, options: argparse.Namespace) -> int:
    return told.decision(desk, await desk.facts.reject(options.fact))


async def _edit(desk: Desk, options: argparse.Namespace) -> int:
    return told.decision(desk, await desk.facts.edit(options.fact, **_instead(options)))  # type: ignore[arg-type]


async def _retcon(desk: Desk, options: argparse.Namespace) -> int:
    instead = _instead(options)
    if all(each is None for each in instead.values()):
        return told.decision(desk, await desk.facts.retcon(options.fact))
    return told.decision(desk, await desk.facts.retcon_to(options.fact, **instead))


def _instead(options: argparse.Namespace) -> dict[str, object]:
    return {"predicate": options.predicate, "object": options.object, "value": options.value}


async def _close(desk: Desk, options: argparse.Namespace) -> int:
    at_ms = None if options.at is None else moment_of(options.at)
    if options.at is not None and at_ms is None:
        raise InvalidInput(f"--at {options.at!r} is no time such as 2026-11-22 or 2026-11-22T19:30")
    day = None if options.day is None else desk.days.day_named(options.day)
    return told.decision(desk, await desk.facts.close(options.fact, at_ms=at_ms, story=day))


async def _secret(desk: Desk, options: argparse.Namespace) -> int:
    return told.decision(desk, await desk.facts.keep_secret(options.fact, options.known_by))


async def _hide(desk: Desk, options: argparse.Namespace) -> int:
    return told.decision(desk, await desk.facts.hide(options.fact))


async def _reveal(desk: Desk, options: argparse.Namespace) -> int:
    return told.decision(desk, await desk.facts.reveal(options.fact, options.to))


async def _tell(desk: Desk, options: argparse.Namespace) -> int:
    return told.decision(desk, await desk.facts.tell(options.fact, options.to, by=options.by))


async def _add(desk: Desk, options: argparse.Namespace) -> int:
    decision = await desk.facts.add(
        options.subject,
        options.predicate,
        object=options.object,
        value=options.value,
        known_by=options.known_by,
        is_hidden=options.hidden,
    )
    return told.decision(desk, decision)


async def _undo(desk: Desk, options: argparse.Namespace) -> int:
    taken = await desk.timeline.undo(options.seq)
    words = await desk.facts.in_words(taken)
    for event in taken:
        print(f"undone: {plain(happening_in_words(event.happening, desk.cast, facts=words))}")
    return 0


async def _rollback(desk: Desk, options: argparse.Namespace) -> int:
    preview = await desk.timeline.preview(options.session, options.floor)
    if not preview.events and not preview.n_utterances:
        print("nothing was said or learned after that")
        return 0
    told.preview(desk, preview)
    if not await goes_on("Your own decisions and the campaign's file stay.", is_sure=options.yes):
        print("nothing was changed")
        return 1
    done = await desk.timeline.rollback(options.session, options.floor)
    undo = f"; take it back with `glyphoxa facts undo {done.seq}`" if done is not None else ""
    print(f"rolled back{undo}")
    return 0
