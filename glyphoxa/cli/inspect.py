"""`glyphoxa inspect`: what memory holds, one query each. Nothing is changed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import aclosing

from glyphoxa.adapters.postgres.world.inspection import InspectedUtterance
from glyphoxa.bootstrap.desk import Desk
from glyphoxa.bootstrap.embedder import load_embedder
from glyphoxa.cli import shown
from glyphoxa.cli.scope import CAMPAIGN, LAST, ONE_SESSION, run_at_desk, session_argument
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Verb, argument, limit
from glyphoxa.dm import wording
from glyphoxa.dm.timeline import beginning_of
from glyphoxa.dm.wording import certainty_in_words
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import DM, Between, Fact
from glyphoxa.transcript.api import TalkFilter
from glyphoxa.world.api import moment, visibility_in_words

_MOST_SHOWN = 50
_MOST_SAID = 20
_RECENT = 20
_NEAREST = 10
_DEEPEST = 10


_SESSION = session_argument("session", nargs="?", default=LAST, about="left out: the last one")
_NAME = argument("name", metavar="NAME")
_MOST = limit(_MOST_SHOWN)

VERB = Verb(run_at_desk, common=CAMPAIGN)


@VERB.action("how much was said in each session")
async def _sessions(desk: Desk, _options: argparse.Namespace) -> int:
    table = a_table("no.", "session", "began", "last said", "utterances", "rolled back")
    sessions = await desk.inspection.entries_per_session(desk.campaign)
    if not sessions:
        print("nothing was said yet")
        return 0
    for number, talk in enumerate(sessions, start=1):
        table.add_row(
            str(number),
            talk.id,
            moment(talk.started_ms),
            moment(talk.last_at_ms),
            str(talk.n_entries),
            str(talk.n_retracted) if talk.n_retracted else "",
        )
    show(table)
    return 0


@VERB.action("the last that was said in a session, the latest first", _SESSION, limit(_RECENT))
async def _recent(desk: Desk, options: argparse.Namespace) -> int:
    entries = await desk.inspection.recent(desk.campaign, options.session, limit=options.limit)
    table = a_table("ordinal", "when", "who", "said", "")
    for entry in entries:
        said = entry.said
        retracted = "rolled back" if said.is_retracted else ""
        table.add_row(str(said.ordinal), moment(said.at_ms), said.speaker_name, said.text, retracted)
    show(table)
    return 0


@VERB.action(
    "what was said: by words, speaker, session and time",
    argument("words", nargs="*", metavar="WORDS", help="any of them; left out: whatever was said last"),
    argument("--all-words", help="all of the words, not any"),
    ONE_SESSION,
    argument("--speaker", metavar="NAME", help="only what this player or NPC said"),
    argument("--as", dest="viewer", metavar="NPC", help="only what this NPC heard"),
    argument("--after", metavar="TIME", help='since then: "2026-11-22" or "2026-11-22 19:30" (UTC)'),
    argument("--before", metavar="TIME", help="before then, likewise"),
    limit(_MOST_SAID),
)
async def _said(desk: Desk, options: argparse.Namespace) -> int:
    words = " ".join(options.words)
    wanted = TalkFilter(
        words,
        match="all" if options.all_words else "any",
        session=options.session,
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
            uttered.session_id,
            str(each.ordinal),
            uttered.speaker_name,
            uttered.text,
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


@VERB.action("what was heard and what was made of it, where they differ", _SESSION, _MOST)
async def _corrections(desk: Desk, options: argparse.Namespace) -> int:
    entries: Sequence[InspectedUtterance] = await desk.inspection.corrected(
        desk.campaign, options.session, limit=options.limit
    )
    if not entries:
        print("everything is kept as it was heard")
        return 0
    table = a_table("ordinal", "who", "heard", "kept")
    for entry in entries:
        table.add_row(str(entry.said.ordinal), entry.said.speaker_name, entry.raw_text, entry.said.text)
    show(table)
    return 0


@VERB.action("how much of each session's talk is within reach of recall by meaning")
async def _coverage(desk: Desk, _options: argparse.Namespace) -> int:
    table = a_table("no.", "session", "utterances", "embedded", "chunks", "coverage")
    sessions = await desk.inspection.coverage(desk.campaign)
    if not sessions:
        print("nothing was said yet")
        return 0
    for number, each in enumerate(sessions, start=1):
        share = f"{100 * each.n_embedded / each.n_entries:.0f} %" if each.n_entries else ""
        table.add_row(str(number), each.session, str(each.n_entries), str(each.n_embedded), str(each.n_chunks), share)
    show(table)
    return 0


@VERB.action("what was said that is nearest in meaning to a text", argument("text", metavar="TEXT"), limit(_NEAREST))
async def _nearest(desk: Desk, options: argparse.Namespace) -> int:
    if not options.text.strip():
        raise InvalidInput("say a text to be near to")
    embedder = await load_embedder(desk.settings)
    async with aclosing(embedder):
        models = await desk.inspection.models(desk.campaign)
        if embedder.name not in models:
            others = f"; what there is was embedded by {', '.join(models)}" if models else ""
            raise InvalidInput(f"nothing in campaign {desk.campaign!r} was embedded by {embedder.name} yet{others}")
        vectors = await embedder.embed_questions([options.text])
    if vectors is None:
        raise InvalidInput(f"{embedder.name} cannot embed {options.text!r}")
    found = await desk.inspection.nearest(desk.campaign, vectors[0], model=embedder.name, limit=options.limit)
    table = a_table("cosine", "session", "when", "said", "known to", "")
    for chunk in found:
        table.add_row(
            f"{chunk.cosine:.3f}",
            chunk.session_id,
            moment(chunk.at_ms),
            chunk.content,
            ", ".join(desk.resolver.person(npc) for npc in chunk.knowers),
            "rolled back" if chunk.is_retracted else "",
        )
    show(table)
    return 0


@VERB.action("entities by type, with their attributes", argument("type", nargs="?", metavar="TYPE"))
async def _entities(desk: Desk, options: argparse.Namespace) -> int:
    found = await desk.inspection.entities(desk.campaign, of_type=options.type)
    if not found and options.type is not None:
        types = {each.entity.type for each in desk.seen}
        raise NotFound(f"no entity of type {options.type!r}: {did_you_mean(options.type, types)}")
    table = a_table("type", "name", "also called", "attributes", "known to")
    for each in found:
        attributes = "; ".join(f"{name}: {value}" for name, value in sorted(each.entity.attributes.items()))
        table.add_row(
            each.entity.type,
            each.entity.name,
            ", ".join(each.entity.aliases),
            attributes,
            visibility_in_words(each.visibility, desk.resolver),
        )
    show(table)
    return 0


@VERB.action("what an NPC, or another entity, is related to, how surely, and from where that is known", _NAME)
async def _npc(desk: Desk, options: argparse.Namespace) -> int:
    entity = desk.resolver.entity(options.name)
    table = a_table("id", "relation", "status", "certainty", "from", "known to")
    for fact in await desk.inspection.relations(desk.campaign, entity.id):
        table.add_row(
            wording.short(fact.id),
            desk.facts.words(fact),
            fact.status,
            certainty_in_words(fact),
            wording.learned_from(fact),
            visibility_in_words(fact.visibility, desk.resolver),
        )
    if not table.rows:
        print(f"{entity.name} is related to nothing")
        return 0
    show(table)
    return 0


@VERB.action("facts that wait for the DM's word", _MOST)
async def _pending(desk: Desk, options: argparse.Namespace) -> int:
    facts = await desk.inspection.pending(desk.campaign, limit=options.limit)
    shown.listing(facts, desk.resolver, limit=options.limit, nothing="nothing waits for your word")
    return 0


@VERB.action(
    "everything within so many relations of an entity",
    _NAME,
    argument("--depth", type=int, default=3, metavar="N", help="relations between them at most; default 3"),
)
async def _reach(desk: Desk, options: argparse.Namespace) -> int:
    if not 0 <= options.depth <= _DEEPEST:
        raise InvalidInput(f"--depth is from 0 to {_DEEPEST}, not {options.depth}")
    entity = desk.resolver.entity(options.name)
    table = a_table("depth", "type", "name")
    for each in await desk.inspection.reach(desk.campaign, entity.id, depth=options.depth):
        table.add_row(str(each.depth), each.type, each.name)
    show(table)
    return 0


@VERB.action("everything that an NPC knows", argument("npc", metavar="NPC"), _MOST)
async def _knows(desk: Desk, options: argparse.Namespace) -> int:
    npc = desk.resolver.npc(options.npc)
    facts = await desk.inspection.current(desk.campaign, npc, limit=options.limit)

    if not facts:
        print(f"{desk.resolver.person(npc)} knows nothing")
        return 0
    table = a_table("id", "fact", "how", "from")
    for fact in facts:
        how = _how(fact, npc, desk)
        table.add_row(wording.short(fact.id), desk.facts.words(fact), how, wording.learned_from(fact))
    show(table)
    if len(facts) == options.limit:
        print(f"the first {options.limit}; --limit shows more")
    return 0


def _how(fact: Fact, npc: NpcId, desk: Desk) -> str:
    """How an NPC that knows the fact came to know it."""
    if fact.visibility.scope == "public":
        return "public"
    knower = next(each for each in fact.visibility.knowers if each.npc == npc)
    return knower.how if knower.by is None else f"{knower.how} by {desk.resolver.person(knower.by)}"
