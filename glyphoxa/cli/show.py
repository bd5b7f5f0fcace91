"""`glyphoxa show`: everything that memory holds, as the game master sees it. Nothing is changed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from glyphoxa.app.scope import Scope
from glyphoxa.cli.render import show_events, show_fact, show_facts, show_lines, show_rows
from glyphoxa.cli.scope import (
    CAMPAIGN,
    ONE_SESSION,
    desk_in,
    embedder_or_words,
    file_or_stored,
    inspection_of,
    npc_called,
    opened_store,
    run_at_desk,
    run_in_scope,
    session_argument,
    stored_session,
    write_new_file,
)
from glyphoxa.cli.verb import Verb, argument, in_a_loop, limit, one_of
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.dm import turns
from glyphoxa.dm.entities import MAX_FACTS, NameResolver
from glyphoxa.dm.sessions import LAST
from glyphoxa.dm.sessions import short as short_utterance
from glyphoxa.dm.timeline import beginning_of
from glyphoxa.dm.wording import plain, printable
from glyphoxa.domain.budgets import SUMMARY_TOKENS
from glyphoxa.domain.campaign import Campaign, Player
from glyphoxa.domain.errors import InvalidInput, NotFound, counted, did_you_mean
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import PlayerId, SceneId, SessionId, plain_name
from glyphoxa.domain.knowledge import DM, Between, Dm, Recalled, Viewer
from glyphoxa.domain.turn_record import Outcome, TurnRecord
from glyphoxa.language.facts import known_to, moment, place, value_in_words, visibility_in_words, why_known
from glyphoxa.names.naming import players_by_name
from glyphoxa.transcript.ports import TalkFilter

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.store import Store
    from glyphoxa.app.desk import Desk
    from glyphoxa.prompt.prompt import ComposedPrompt

_MOST_FACTS: Final = 50
_MOST_SAID: Final = 20
_MINUTE_MS: Final = 60_000
_NEAREST: Final = 10
_DEEPEST: Final = 10
_GUEST: Final = PlayerId("guest")
_NEW: Final = SessionId("")
"""A new session has no transcript, and its name is in no prompt."""

_NAME = argument("name", metavar="NAME", help="an entity's name, alias or id")
_LAST_SESSION = session_argument("session", nargs="?", default=LAST, about="default: the last one")
_AS = argument("--as", dest="viewer", metavar="NPC", help="only what this NPC heard")

VERB = Verb(run_at_desk, common=CAMPAIGN)


# What is known


@VERB.action(
    "list entities: all, or those of a type",
    argument("type", nargs="?", metavar="TYPE", help="such as npc or location; default: all"),
)
async def _entities(desk: Desk, options: argparse.Namespace) -> int:
    found = [each for each in desk.seen if options.type in (None, each.entity.type)]
    if not found and options.type is not None:
        types = {each.entity.type for each in desk.seen}
        raise NotFound(f"no entity of type {options.type!r}: {did_you_mean(options.type, types)}")
    rows = (
        (
            each.entity.type,
            each.entity.name,
            ", ".join(each.entity.aliases),
            each.entity.id,
            value_in_words(dict(sorted(each.entity.attributes.items()))),
            visibility_in_words(each.visibility, desk.resolver),
        )
        for each in found
    )
    return show_rows(("type", "name", "also called", "id", "attributes", "known to"), rows, nothing="no entities")


@VERB.action(
    "list the nodes of the memory graph, with the fields of their types",
    argument("--type", metavar="TYPE", default="", help="only of this type, such as character_sheet or event"),
    argument("--npc", metavar="NPC", help="only what this NPC may know"),
    argument("--json", help="as JSON"),
    limit(_MOST_FACTS),
)
async def _nodes(desk: Desk, options: argparse.Namespace) -> int:
    viewer = DM if options.npc is None else desk.resolver.npc(options.npc)
    found = await desk.nodes(desk.entities_like("", options.type, viewer)[: options.limit], viewer)
    if options.json:
        print(json.dumps([each.as_json() for each in found], ensure_ascii=False, indent=2))
        return 0
    rows = (
        (
            each.type,
            each.title,
            each.id,
            "; ".join(f"{name}: {value}" for name, value in each.values.items() if value),
            "" if each.session is None else place(each.session, each.floor or 0, desk.resolver),
        )
        for each in found
    )
    headings = ("type", "title", "id", "fields", "last changed by")
    return show_rows(headings, rows, nothing="no nodes", limit=options.limit, which="first")


@VERB.action("show an entity and everything known about it", _NAME)
async def _entity(desk: Desk, options: argparse.Namespace) -> int:
    entity = desk.resolver.entity(options.name)
    [seen] = [each for each in desk.seen if each.entity.id == entity.id]
    print(f"{entity.name} ({entity.type}, id {entity.id})")
    if entity.aliases:
        print(f"  also called: {', '.join(entity.aliases)}")
    print(f"  known to: {visibility_in_words(seen.visibility, desk.resolver)}")
    for each in await desk.imports.documents_of(entity.id):
        print(f"  imported: {plain(each.words)}")
    facts = await desk.inspection.current(desk.campaign, DM, about=entity.id, limit=MAX_FACTS)
    show_facts(facts, desk.resolver, limit=MAX_FACTS, nothing="nothing is known about it")
    return 0


@VERB.action(
    "list an entity's relations, with status, certainty and source; or everything near it",
    _NAME,
    argument("--depth", type=int, metavar="N", help=f"list everything within N relations instead; 0 to {_DEEPEST}"),
)
async def _relations(desk: Desk, options: argparse.Namespace) -> int:
    entity = desk.resolver.entity(options.name)
    if options.depth is not None:
        if not 0 <= options.depth <= _DEEPEST:
            raise InvalidInput(f"--depth must be from 0 to {_DEEPEST}, not {options.depth}")
        world = await desk.store.world_memory(desk.campaign).refresh()
        reached = world.reach(DM, entity.id, depth=options.depth, most_relations=None)
        rows = ((str(each.depth), each.entity.type, each.entity.name) for each in reached)
        return show_rows(("depth", "type", "name"), rows)
    about = await desk.inspection.current(desk.campaign, DM, about=entity.id, limit=MAX_FACTS)
    facts = [fact for fact in about if fact.claim.object is not None]
    show_facts(facts, desk.resolver, limit=MAX_FACTS, nothing=f"{entity.name} has no relations")
    return 0


@VERB.action(
    "list what is known, now or at an earlier time, to you or to an NPC",
    argument("--about", metavar="NAME", help="only about this entity"),
    argument("--as", dest="viewer", metavar="NPC", help="only what this NPC knows, and how it learned it"),
    argument(
        "--as-of", metavar="WHEN", help='a session, as "2"; a time, as "2026-11-22 19:30" (UTC); or the event "#120"'
    ),
    limit(_MOST_FACTS),
)
async def _facts(desk: Desk, options: argparse.Namespace) -> int:
    viewer: Viewer = DM if options.viewer is None else desk.resolver.npc(options.viewer)
    about = None if options.about is None else desk.resolver.entity(options.about).id
    who = "" if options.viewer is None else desk.resolver.person(desk.resolver.npc(options.viewer))
    as_of, nothing = "", f"{who} knows nothing" if who and about is None else "nothing is known"
    if options.as_of is not None:
        as_of, nothing = options.as_of, "nothing was known"
        with suppress(NotFound):  # it may be a time or an event
            as_of = await stored_session(desk.store, desk.campaign, as_of)
    facts, names = await desk.timeline.known(viewer, about=about, as_of=as_of, limit=options.limit)
    how = None
    if not isinstance(viewer, Dm):
        how = "how", lambda fact: why_known(known_to(fact, desk.resolver), viewer, person=desk.resolver.person)
    show_facts(facts, desk.resolver.with_names(names), limit=options.limit, nothing=nothing, also=how)
    return 0


@VERB.action(
    "show everything about a fact: its source, who knows it and how, what depends on it",
    argument("fact", metavar="ID", help="a fact's id, or the beginning of it"),
)
async def _fact(desk: Desk, options: argparse.Namespace) -> int:
    found = await desk.facts.explain(options.fact)
    show_fact(desk, found)
    claim = found.fact.claim
    if found.fact.provenance.origin == "import":
        for each in await desk.imports.documents_of(claim.subject, stating=claim):
            print(f"  imported: {plain(each.words)}")
    print("history")
    await show_events(desk, await desk.timeline.history_of(found.fact))
    return 0


@VERB.action(
    "list what happened to the world, latest first; or everything that happened to a fact",
    argument("fact", nargs="?", metavar="ID", help="a fact's id, or the beginning of it"),
    limit(_MOST_FACTS),
)
async def _history(desk: Desk, options: argparse.Namespace) -> int:
    if options.fact is None:
        await show_events(desk, await desk.timeline.history(limit=options.limit))
        return 0
    fact = (await desk.facts.explain(options.fact)).fact
    print(f"{fact.id}  {plain(desk.facts.words(fact))}")
    await show_events(desk, await desk.timeline.history_of(fact))
    return 0


# What was said


@VERB.action("list the sessions: how much was said in each, and its summary")
async def _sessions(desk: Desk, _options: argparse.Namespace) -> int:
    rows = []
    for number, each in enumerate(await desk.inspection.entries_per_session(desk.campaign), start=1):
        summary = await desk.sessions.summary(each.id)
        times = (moment(each.started_ms), moment(each.last_at_ms))
        counts = (str(each.n_entries), str(each.n_retracted) if each.n_retracted else "")
        rows.append((str(number), each.id, each.title, *times, *counts, "" if summary is None else summary.text))
    headings = ("no.", "session", "title", "began", "last said", "utterances", "rolled back", "summary")
    return show_rows(headings, rows, nothing="nothing was said yet")


@VERB.action(
    "search what was said: by words, speaker, session and time; the latest if there are no words",
    argument("words", nargs="*", metavar="WORDS", help="any of them; default: whatever was said last"),
    argument("--all-words", help="all of the words, not any"),
    ONE_SESSION,
    argument("--speaker", metavar="NAME", help="only what this player or NPC said"),
    _AS,
    argument("--after", metavar="TIME", help='only since then: "2026-11-22" or "2026-11-22 19:30" (UTC)'),
    argument("--before", metavar="TIME", help="only before then; the same forms"),
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
    found = await desk.store.talk_search.search(desk.campaign, viewer, wanted)
    narrowed = (words, options.session, options.speaker, options.viewer, options.after, options.before)
    said = [(short_utterance(each.utterance.id), each.ordinal, each.utterance) for each in found]
    return show_rows(
        ("id", "when", "session", "line", "who", "said"),
        ((id_, moment(one.at_ms), one.session_id, str(n), one.speaker_name, one.text) for id_, n, one in said),
        nothing="no utterance matches" if any(narrowed) else "nothing was said yet",
        limit=options.limit,
        which="best" if words.strip() else "last",
    )


def _time(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    at_ms = beginning_of(text)
    if at_ms is None:
        raise InvalidInput(f"{option} {text!r} is not a time such as 2026-11-22 or 2026-11-22T19:30")
    return at_ms


@VERB.action(
    "list a session's last utterances, oldest first, with what was heard where that differs, and what was rolled back",
    _LAST_SESSION,
    argument("--corrected", help="only what was corrected, from the beginning of the session"),
    argument("--minutes", type=int, metavar="N", help="only the session's last N minutes"),
    limit(_MOST_SAID),
)
async def _transcript(desk: Desk, options: argparse.Namespace) -> int:
    if options.minutes is not None and (options.minutes < 1 or options.corrected):
        raise InvalidInput(f"--minutes must be at least 1, and is not for --corrected; it is {options.minutes}")
    if options.corrected:
        found = await desk.inspection.corrected(desk.campaign, options.session, limit=options.limit)
    else:
        found = (await desk.inspection.recent(desk.campaign, options.session, limit=options.limit))[::-1]
    if options.minutes is not None and found:
        since_ms = found[-1].at_ms - options.minutes * _MINUTE_MS
        found = [said for said in found if said.at_ms >= since_ms]
    rows = []
    for said in found:
        heard = said.raw_text if said.raw_text != said.text else ""
        rows.append((str(said.ordinal), moment(said.at_ms), said.speaker_name, said.text, heard, said.state))
    nothing, which = ("nothing was corrected", "first") if options.corrected else ("", "last")
    headings = ("line", "when", "who", "said", "heard", "")
    return show_rows(headings, rows, nothing=nothing, limit=options.limit, which=which)


@VERB.action("show how much of each session can be recalled by meaning")
async def _coverage(desk: Desk, _options: argparse.Namespace) -> int:
    rows = []
    for number, each in enumerate(await desk.inspection.coverage(desk.campaign), start=1):
        share = f"{100 * each.n_embedded / each.n_entries:.0f} %" if each.n_entries else ""
        rows.append((str(number), each.session, str(each.n_entries), str(each.n_embedded), str(each.n_chunks), share))
    headings = ("no.", "session", "utterances", "embedded", "chunks", "coverage")
    return show_rows(headings, rows, nothing="nothing was said yet")


@VERB.action(
    "list the stored passages and the entities that are nearest in meaning to a text",
    argument("text", metavar="TEXT", help="what is compared"),
    limit(_NEAREST),
)
async def _nearest(desk: Desk, options: argparse.Namespace) -> int:
    from glyphoxa.app.models import load_embedder

    if not options.text.strip():
        raise InvalidInput("TEXT is empty: give a text to compare with")
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
    rows = (
        (
            f"{chunk.distance:.3f}",
            chunk.session_id,
            moment(chunk.at_ms),
            chunk.content,
            ", ".join(desk.resolver.person(npc) for npc in chunk.knowers),
            "rolled back" if chunk.is_retracted else "",
        )
        for chunk in found
    )
    show_rows(("distance", "session", "when", "said", "known to", ""), rows)
    entities = await desk.inspection.near_entities(desk.campaign, vectors[0], model=embedder.name, limit=options.limit)
    return show_rows(("distance", "entity", "type"), ((f"{far:.3f}", *named) for far, *named in entities))


@VERB.action(
    "list promises, plans and questions that nothing later continues, latest first",
    ONE_SESSION,
    limit(_MOST_SAID),
)
async def _threads(desk: Desk, options: argparse.Namespace) -> int:
    found = await desk.store.atoms.open_threads(desk.campaign, options.session, limit=options.limit)
    rows = (
        (moment(each.at_ms), each.session, each.summary, ", ".join(map(short_utterance, each.evidence)))
        for each in found
    )
    return show_rows(("when", "session", "thread", "lines"), rows, nothing="no thread is open")


@VERB.action(
    "show what you and the NPCs have in mind of a session: summary, terms, events, open threads, who has what",
    _LAST_SESSION,
    argument("--view", metavar="NPC", default="", help='only this NPC\'s; "dm": only yours'),
)
async def _memory(desk: Desk, options: argparse.Namespace) -> int:
    for each in await desk.session_views(options.session, options.view):
        print(f"{each.name}: {each.state.text or 'no summary yet'}")
        flags = [name for name, is_set in each.state.flags.items() if is_set]
        terms = [f"{term}: {meaning}" for term, meaning in each.terms.items()]
        for title, lines in (
            ("summarised to utterance", [str(each.state.last_ordinal)] if each.state.last_ordinal else []),
            ("events", flags),
            ("terms", terms),
            *each.lists.items(),
        ):
            if lines:
                print(f"  {title}: {plain('; '.join(lines))}")
    return 0


# A session, summed up


_SUMMED_UP = Verb(run_in_scope, common=CAMPAIGN, of=VERB)


@_SUMMED_UP.action(
    "recap a session: lines to read aloud to the players; or everything that you, or an NPC, may know",
    _LAST_SESSION,
    one_of(argument("--dm", help="from everything that was said, with real names"), _AS),
    argument(
        "--tokens",
        type=int,
        default=SUMMARY_TOKENS,
        metavar="N",
        help=f"its length at most, in tokens; about 4 tokens are 3 words; default {SUMMARY_TOKENS}",
    ),
    argument("--markdown", help="as Markdown, with the date and the days of the story"),
    argument("-o", dest="file", type=Path, metavar="FILE", help="write it to this file; it must not exist"),
)
async def _recap(scope: Scope, options: argparse.Namespace) -> int:
    from glyphoxa.app.desk import Audience, played_sessions, recap_of
    from glyphoxa.dm.handouts import session_note

    audience: Audience = "dm" if options.dm else "players"
    if options.viewer is not None:
        audience = npc_called(options.viewer, await scope.store.campaigns.get(scope.campaign)).id
    lines = await recap_of(scope.store, scope.campaign, options.session, audience, tokens=options.tokens)
    if options.markdown:
        times = await scope.store.times.times(scope.campaign)
        found = await played_sessions(inspection_of(scope.store), scope.campaign, times)
        text = "".join(session_note(replace(each, recap=lines)) for each in found if each.id == options.session)
    else:
        text = "".join(f"{plain(line)}\n" for line in lines) or "the session has no lines worth recalling\n"
    if options.file is None:
        print(text, end="")
    else:
        write_new_file(options.file, text.encode())
        print(f"{options.file}: {counted(len(lines), 'line')}")
    return 0


@_SUMMED_UP.action(
    "list the lines of a session that facts are learned from, and why: as judged, or as they will be",
    _LAST_SESSION,
    argument("--all", help="include the other lines, with reasons"),
)
async def _worth(scope: Scope, options: argparse.Namespace) -> int:
    from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
    from glyphoxa.app.background import RULES
    from glyphoxa.chronicle.ports import pages_of
    from glyphoxa.chronicle.talk import SceneTalk

    log = PostgresChronicleLog(scope.store.database, scope.store.world)
    campaign = await scope.store.campaigns.get(scope.campaign)
    _, judge = RULES.readers(campaign)
    known = await log.known(scope.campaign)
    rows = []
    async for page in pages_of(log, scope.campaign, options.session):
        if not page.said:
            continue
        judged = await log.judged(
            scope.campaign, options.session, after=page.said[0].ordinal - 1, up_to=page.said[-1].ordinal
        )
        talk = SceneTalk(scope.campaign, options.session, campaign.language, page.said, page.before)
        for each in await judge.judge(talk, known):
            told, said = judged.get(each.said.ordinal, each.judged), each.said.utterance
            if options.all or told.judgement.may_extract:
                words = (turns.judged_in_words(told), told.judgement.note)
                rows.append((str(each.said.ordinal), said.speaker_name, said.text, *words))
    return show_rows(("line", "who", "said", "judged", "because"), rows)


# Turns, and the prompts of their models


@VERB.action(
    "list the latest turns; or explain one: what was heard, to whom, what the NPC recalled and why, what it said",
    argument("turn", nargs="?", metavar="TURN", help=f"its id or the end of it; {turns.LAST}: the latest that matches"),
    ONE_SESSION,
    argument("--npc", metavar="NPC", help="only turns that were for this NPC"),
    argument("--prompt", help="of one turn: everything its model was given, word for word"),
    limit(_MOST_SAID),
)
async def _turns(desk: Desk, options: argparse.Namespace) -> int:
    if options.prompt and options.turn is None:
        raise InvalidInput(f"--prompt needs a turn, such as: glyphoxa show turns {turns.LAST} --prompt")
    session: SessionId | None = options.session
    npc = None if options.npc is None else desk.resolver.npc(options.npc)
    if options.turn is None:
        latest = await desk.turns.latest(session=session, npc=npc, limit=options.limit)
        is_narrowed = session is not None or npc is not None
        nothing = "no turn like that was recorded" if is_narrowed else "no turn was recorded yet"
        judged = await desk.turns.judged(latest)
        rows = []
        for each in latest:
            n_recalled = len(each.prompt.recalled) + len(each.prompt.rejected)
            talk = (f"{each.speaker_name}: {each.text}", _outcome(each, desk.resolver))
            in_prompt = f"{len(each.prompt.recalled)} of {n_recalled}" if n_recalled else ""
            rows.append((turns.short(each.id), turns.when(each), *talk, in_prompt, judged.get(each.id, "")))
        headings = ("turn", "when", "heard", "said", "in prompt", "judged")
        return show_rows(headings, rows, nothing=nothing, limit=options.limit)
    turn = await desk.turns.find(options.turn, session=session, npc=npc)
    if options.prompt:
        print(printable(turn.prompt.text) or "its model received no prompt")
    else:
        show_lines((await desk.turns.explain(turn)).told())
    return 0


def _outcome(turn: TurnRecord, resolver: NameResolver) -> str:
    if turn.npc_id is None:
        return f"({turns.outcome(turn)}: {turn.address_reason})"
    if turn.outcome is Outcome.ANSWERED and turn.reply_heard:
        return f"{resolver.person(turn.npc_id)}: {turn.reply_heard}"
    return f"{resolver.person(turn.npc_id)}: {turn.reply_heard} ({turns.outcome(turn)})".replace(":  (", ": (")


@Verb(in_a_loop, common=CAMPAIGN, of=VERB).action(
    "show the prompt that an NPC's model would get for a line, and what it consists of; no model is asked",
    argument("--npc", required=True, metavar="NPC", help="who answers"),
    argument("--say", required=True, metavar="TEXT", help="what is said to it"),
    argument("--player", metavar="NAME", help="who says it; default: the campaign's first player"),
    argument("--scene", type=SceneId, metavar="ID", help="where; default: the first scene that has this NPC"),
    session_argument("--session", about="continue this session; default: a new one"),
    argument("--json", help="everything, as JSON"),
)
async def _context(options: argparse.Namespace) -> int:
    """Show what a table would send: the same objects, made the same way."""
    if not options.say.strip():
        raise InvalidInput('--say is empty; give a line, such as: --npc grimjaw --say "Who owns the inn?"')
    settings = read_settings(options.config)
    store: Store | None = None
    async with AsyncExitStack() as stack:
        if settings.has_memory:
            embedder = await stack.enter_async_context(embedder_or_words(settings))
            if embedder is not None:
                # Its first text takes longer, and a table's is not its first.
                await embedder.embed_questions(["Good morning."])
            store = await stack.enter_async_context(opened_store(settings, embedder=embedder))
        about, composed, explained = await _composed(settings, store, options)
    if options.json:
        print(json.dumps({**about, **_json_of(composed)}, ensure_ascii=False, indent=2))
    else:
        print(f"{printable(composed.assembled.text)}\n")
        show_lines(explained.told())
    return 0


async def _composed(
    settings: Settings, store: Store | None, options: argparse.Namespace
) -> tuple[dict[str, str], ComposedPrompt, turns.ExplainedPrompt]:
    """Return who asks whom, and where, with the prompt and its explanation."""
    from glyphoxa.app.engines import read_playable
    from glyphoxa.app.memory import SAID_BEFORE
    from glyphoxa.app.table import Rehearsal

    found = await file_or_stored(options.campaign, settings, store)
    campaign = read_playable(found, settings).campaign if isinstance(found, Path) else found
    npc = npc_called(options.npc, campaign)
    if store is not None and campaign.id not in await store.campaigns.ids():
        print("glyphoxa: the campaign is not stored yet; using its file", file=sys.stderr)
        store = None
    elif store is not None and not (await store.campaigns.changes(campaign)).is_empty:
        print("glyphoxa: the file differs from the stored campaign; a table would load it first", file=sys.stderr)
    session = _NEW
    said: Sequence[Utterance] = ()
    if options.session is not None:
        if store is None:
            raise NotFound(f"no session {options.session!r} in campaign {campaign.id!r}: nothing of it is stored")
        session = await stored_session(store, campaign.id, options.session)
        said = await store.log.recent(campaign.id, session, since_ms=0, limit=SAID_BEFORE)
    scene = None if options.scene is None else campaign.scene(options.scene)
    rehearsal, player = Rehearsal(settings, store, campaign, session, said), _player(campaign, options.player)
    composed = await rehearsal.ask(npc, player, options.say, scene=scene)
    prompt = composed.assembled
    if store is None:
        explained = turns.unstored(prompt, NameResolver.of(campaign, campaign.entities))
    else:
        desk = await desk_in(Scope(store, settings, campaign.id))
        explained = await desk.turns.explain_prompt(prompt, npc.id)
    return {"npc": npc.id, "player": player.name, "scene": rehearsal.state.scene.id}, composed, explained


def _player(campaign: Campaign, wanted: str | None) -> Player:
    """Return the player that was named, else a guest with that name."""
    if wanted is None:
        return campaign.players[0] if campaign.players else Player(_GUEST, "Somebody")
    name = plain_name(wanted)
    players = players_by_name(campaign.players, campaign.id)
    return players.by_id.get(name) or players.exact(name) or Player(_GUEST, name)


def _json_of(composed: ComposedPrompt) -> dict[str, Any]:
    prompt = composed.assembled
    return {
        "question": composed.prompt.question,
        "messages": [asdict(message) for message in composed.prompt.messages],
        "parts": [asdict(part) for part in prompt.parts],
        "recalled": [_recalled_json(one) for one in prompt.recalled],
        "rejected": [{**_recalled_json(one.recalled), "why": one.why} for one in prompt.rejected],
        "omitted": list(prompt.omitted),
    }


def _recalled_json(one: Recalled) -> dict[str, Any]:
    return {"source": one.source, **asdict(one)}
