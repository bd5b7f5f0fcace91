"""The game master's decisions about the world: `glyphoxa facts`, `glyphoxa entity` and `glyphoxa transcript`."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
import termios
import tty
from collections.abc import Callable, Sequence
from inspect import signature
from itertools import groupby
from typing import Any

from glyphoxa.actors.clock import now_ms
from glyphoxa.app.desk import Desk, WrappedUp
from glyphoxa.app.engines import read_playable
from glyphoxa.cli.render import show_decision, show_facts, show_preview
from glyphoxa.cli.scope import (
    A_DAY,
    CAMPAIGN,
    LAST,
    ONE_SESSION,
    SESSION,
    YES,
    answer_to,
    declared_in,
    file_named,
    goes_on,
    run_at_desk,
    session_argument,
)
from glyphoxa.cli.verb import Argument, Call, Verb, any_option, argument, limit, one_of
from glyphoxa.config.campaign_edit import AtomicFile, additions, insert_all, stamp_of
from glyphoxa.config.located_yaml import text_of
from glyphoxa.dm.entities import EntityDesk, NameResolver, attributes_of, json_object, json_or_text
from glyphoxa.dm.facts import Decision, FactDesk
from glyphoxa.dm.ports import CitedUtterance
from glyphoxa.dm.timeline import moment_of
from glyphoxa.dm.wording import plain
from glyphoxa.dm.wrap_up import FactProposal, LineDecision
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.ids import EntityId, NpcId, SessionId
from glyphoxa.domain.knowledge import PUBLIC
from glyphoxa.language.facts import claim_in_words, moment, short, visibility_in_words
from glyphoxa.npc.commands import scene_called
from glyphoxa.transcript.sessions import LastSessions
from glyphoxa.world.entity_events import EntitiesMerged
from glyphoxa.world.events import Cause, WorldEvent

_MOST_SHOWN = 50
_MOST_LISTED = 5

_ID = argument("fact", metavar="ID", help="a fact's id, or the beginning of it")
_IDS = argument("facts", nargs="+", metavar="ID", help="a fact's id, or the beginning of it")
_CLAIM = (
    argument("--object", metavar="NAME", help="the other entity"),
    argument("--value", type=json_or_text, metavar="VALUE", help="JSON, or plain text"),
)
_INSTEAD = (_ID, *_CLAIM, argument("--predicate", metavar="WORD", help="such as LOCATED_AT or occupation"))
_NAME = argument("entity", metavar="NAME", help="an entity's name, alias or id")
_ALIAS = argument("alias", metavar="ALIAS", help="another name that it is called by")
_UTTERANCE = argument("utterance", metavar="ID", help="its id, the end of it, or words that only it contains")

FACTS = Verb(run_at_desk, common=CAMPAIGN)
ENTITY = Verb(run_at_desk, common=CAMPAIGN)
TRANSCRIPT = Verb(run_at_desk, common=CAMPAIGN)
WRAP_UP = Verb(run_at_desk, common=CAMPAIGN)


def _tell_events(desk: Desk, events: Sequence[WorldEvent], *, resolver: NameResolver | None = None) -> int:
    for recorded in events:
        print(recorded.event.in_words(resolver or desk.resolver))
    return 0


def _deciding(part: Callable[[Desk], object], show: Callable[[Desk, Any], int]) -> Call[Callable[..., Any]]:
    """Make a `Call` for methods of a part of the desk. A method gets the options named like its parameters."""

    def call(options: argparse.Namespace, act: Callable[..., Any]) -> int:
        async def decide(desk: Desk, options: argparse.Namespace) -> int:
            given = {name: getattr(options, name) for name in signature(act).parameters if name in options}
            return show(desk, await act(part(desk), **given))

        return run_at_desk(options, decide)

    return call


_ON_FACT = Verb(_deciding(lambda desk: desk.facts, show_decision), common=CAMPAIGN, of=FACTS)
_ON_ENTITY = Verb(_deciding(lambda desk: desk.entities, _tell_events), common=CAMPAIGN, of=ENTITY)


def _people(option: str, *, required: bool = False) -> Argument:
    text = f"NPCs that know it: a name, alias or id each{'' if required else '; default: everybody'}"
    return argument(option, nargs="+", default=[], required=required, metavar="NPC", help=text)


# Facts

_QUEUES = {"pending": "no facts need review", "conflict": "no facts disagree", "stale": "no facts are stale"}
"""The message for an empty queue."""


@FACTS.action(
    "list facts that need review, the least certain first",
    argument(
        "status",
        nargs="?",
        choices=_QUEUES,
        default="pending",
        help="pending: not accepted yet (default); conflict: contradicts an accepted fact; "
        "stale: depends on a fact that is no longer true",
    ),
    ONE_SESSION,
    limit(_MOST_SHOWN),
)
async def _review(desk: Desk, options: argparse.Namespace) -> int:
    facts = await desk.inspection.of_status(desk.campaign, options.status, session=options.session, limit=options.limit)
    disputed = await desk.inspection.facts(desk.campaign, {each for fact in facts for each in fact.disputes})
    words = {fact.id: f"{short(fact.id)} {desk.facts.words(fact)}" for fact in disputed}
    also = ("contradicts", lambda fact: "; ".join(words.get(each, each) for each in fact.disputes))
    show_facts(
        facts,
        desk.resolver,
        limit=options.limit,
        nothing=_QUEUES[options.status] + ("" if options.session is None else f" in session {options.session}"),
        also=also if options.status == "conflict" else None,
    )
    counts = await desk.inspection.waiting(desk.campaign)
    for status in _QUEUES:
        if status != options.status and (n := counts.get(status, 0)):  # type: ignore[call-overload] # a status each
            print(f"{status}: {n} (glyphoxa facts review {status})")
    return 0


_ON_FACT.action("accept facts; facts that contradict them end", _IDS, name="accept")(FactDesk.confirm)
_ON_FACT.action("reject facts: they were never true, but misunderstood", _IDS, name="reject")(FactDesk.reject)
_ON_FACT.action(
    "correct a misunderstood fact: something else is true",
    *_INSTEAD,
    argument("--subject", metavar="NAME", help="the entity that it is about"),
    name="correct",
)(FactDesk.edit)


_ON_FACT.action("change the story: a fact was never true, or something else was true instead", *_INSTEAD)(
    FactDesk.retcon
)


@FACTS.action(
    "end a fact: it was true, and is no longer",
    _ID,
    argument("--at", metavar="TIME", help='since when: "2026-11-22 19:30" (UTC); default: now'),
    argument("--day", metavar="DAY", help=f"since which day of the story: {A_DAY}"),
)
async def _close(desk: Desk, options: argparse.Namespace) -> int:
    at_ms = None if options.at is None else moment_of(options.at)
    if options.at is not None and at_ms is None:
        raise InvalidInput(f"--at {options.at!r} is not a time such as 2026-11-22 or 2026-11-22T19:30")
    day = None if options.day is None else desk.days.day_named(options.day)
    return show_decision(desk, await desk.facts.close(options.fact, at_ms=at_ms, story=day))


_ON_FACT.action(
    "keep a fact secret: only these NPCs know it", _ID, _people("--known-by", required=True), name="secret"
)(FactDesk.keep_secret)
_ON_FACT.action("hide a fact: nobody knows it until you reveal it", _ID)(FactDesk.hide)
_ON_FACT.action("reveal a fact, to these NPCs or to everybody", _ID, _people("--to"))(FactDesk.reveal)
_ON_FACT.action(
    "record that somebody told a fact to NPCs",
    _ID,
    _people("--to", required=True),
    argument("--by", required=True, metavar="WHO", help="a player, an NPC, or dm"),
)(FactDesk.tell)


@FACTS.action(
    "state a new fact",
    argument("subject", metavar="SUBJECT", help="an entity's name, alias or id"),
    argument("predicate", metavar="PREDICATE", help="such as LOCATED_AT or occupation"),
    *_CLAIM,
    _people("--known-by"),
    argument("--hidden", help="nobody knows it until you reveal it"),
)
async def _state(desk: Desk, options: argparse.Namespace) -> int:
    claim = desk.facts.claim(options.subject, options.predicate, object=options.object, value=options.value)
    return show_decision(desk, await desk.facts.add(claim, known_by=options.known_by, is_hidden=options.hidden))


@FACTS.action(
    "undo your last decision, or an event; repeat it for the one before",
    argument("seq", nargs="?", type=int, metavar="SEQ", help="the event's number in `glyphoxa show history`"),
)
async def _undo(desk: Desk, options: argparse.Namespace) -> int:
    taken = await desk.timeline.undo(options.seq)
    names = await desk.facts.names_in(taken)
    for recorded in taken:
        print(f"undone: {plain(recorded.event.in_words(names))}")
    return 0


@FACTS.action(
    "go back to what was known after an utterance",
    SESSION,
    argument("ordinal", type=int, metavar="ORDINAL", help="number of the last utterance to keep; 0 for none"),
    YES,
)
async def _rollback(desk: Desk, options: argparse.Namespace) -> int:
    preview = await desk.timeline.preview(options.session, options.ordinal)
    if not preview.events and not preview.n_utterances:
        print("nothing was said or learned after that")
        return 0
    show_preview(desk, preview)
    if not await goes_on("Your own decisions and the campaign's file are kept.", is_sure=options.yes):
        return 1
    done = await desk.timeline.rollback(options.session, options.ordinal)
    undo = f"; to undo it: glyphoxa facts undo {done.seq}" if done is not None else ""
    print(f"rolled back{undo}")
    return 0


# Entities


@ENTITY.action(
    "register an entity, with attributes of any name: --personality gruff",
    argument("name", metavar="NAME", help="what it is called"),
    argument("type", metavar="TYPE", help="npc, player, location, item, faction, event, quest, concept ..."),
    argument("--attributes", default="{}", metavar="JSON", help='an object, such as {"level": 9}'),
    argument("--alias", action="append", default=[], metavar="ALIAS", help="can be repeated"),
    argument("--id", metavar="ID", help="default: made from the name"),
    argument("--new-type", help="TYPE is a new type of this campaign"),
    any_option,
    epilog="An option with any other name is an attribute: --personality 'paranoid wizard' --level 9",
    allow_abbrev=False,
)
async def _add(desk: Desk, options: argparse.Namespace) -> int:
    attributes = {**json_object(options.attributes), **attributes_of(options.free)}
    entity = Entity(EntityId(options.id or ""), options.type, options.name, tuple(options.alias), attributes)
    events = await desk.entities.add(entity, is_new_type=options.new_type)
    return _tell_events(desk, events[:1])


@ENTITY.action("remove an entity and everything known about it", _NAME, YES)
async def _remove(desk: Desk, options: argparse.Namespace) -> int:
    entity = desk.resolver.entity(options.entity)
    facts = await desk.entities.ends_with(entity.id)
    told = "; ".join(desk.facts.words(fact) for fact in facts[:_MOST_LISTED])
    more = f"; {len(facts) - _MOST_LISTED} more" if len(facts) > _MOST_LISTED else ""
    with_it = f" and with it {told}{more}" if facts else ""
    if not await goes_on(f"This removes {entity.name}{with_it}.", is_sure=options.yes):
        return 1
    return _tell_events(desk, await desk.entities.remove(entity.id))


@ENTITY.action(
    "change an entity's name or type; the old name becomes an alias",
    _NAME,
    argument("--name", dest="new_name", metavar="NEW", help="its new name"),
    argument("--type", dest="new_type", metavar="TYPE", help="its new type, such as npc or location"),
)
async def _change(desk: Desk, options: argparse.Namespace) -> int:
    entity = desk.resolver.entity(options.entity)
    changed, *more = await desk.entities.change(entity.id, name=options.new_name, type=options.new_type)
    _tell_events(desk, [changed])
    return _tell_events(desk, more, resolver=desk.resolver.with_names({entity.id: options.new_name or entity.name}))


_ON_ENTITY.action(
    "merge two entities: GONE is the same as KEPT",
    argument("kept", metavar="KEPT", help="an entity's name, alias or id"),
    argument("gone", metavar="GONE", help="the one that KEPT replaces"),
)(EntityDesk.merge)


@ENTITY.action("undo a merge: NAME is an entity of its own again", _NAME)
async def _split(desk: Desk, options: argparse.Namespace) -> int:
    merge = await desk.entities.split(options.entity)
    gone = merge.event.gone if isinstance(merge.event, EntitiesMerged) else EntityId("")
    resolver = desk.resolver.with_names({gone: options.entity})  # which is known here by no other name
    print(f"undone: {merge.event.in_words(resolver)}")
    return 0


_ON_ENTITY.action("add an alias: NAME is also called ALIAS", _NAME, _ALIAS, name="alias")(EntityDesk.add_alias)
_ON_ENTITY.action("remove an alias: NAME is not called ALIAS", _NAME, _ALIAS, name="unalias")(EntityDesk.remove_alias)
_ON_ENTITY.action(
    "keep an entity secret: only these NPCs know that it exists",
    _NAME,
    _people("--known-by", required=True),
    name="secret",
)(EntityDesk.keep_secret)
_ON_ENTITY.action("hide an entity: nobody knows of it until you reveal it", _NAME)(EntityDesk.hide)
_ON_ENTITY.action("reveal an entity: everybody may know of it", _NAME)(EntityDesk.reveal)


@ENTITY.action(
    "let a person speak: add it to the campaign file as an NPC, with a persona that you edit",
    _NAME,
    argument("--voice", metavar="PRESET", help="a local voice; default: the first that the fewest NPCs have"),
    argument("--scene", metavar="SCENE", help="id or place of a scene; default: the one where a table would open"),
    argument("--dry-run", help="print the draft, and write nothing"),
)
async def _speak(desk: Desk, options: argparse.Namespace) -> int:
    path = file_named(options.campaign) or desk.settings.campaign
    if path is None or await declared_in(path) != desk.campaign:
        raise InvalidInput(f"campaign {desk.campaign!r} is stored without a file; name its file: --campaign FILE")
    text = text_of(path)
    before = read_playable(path, desk.settings, text).campaign
    scene = None if options.scene is None else scene_called(options.scene, before)
    form = await desk.npc_form(options.entity, before, scene=scene)
    form |= {"add": "person", "voice": options.voice or form["voice"]}
    added = insert_all(text, additions(form, before))
    made = read_playable(path, desk.settings, added)
    npc = made.campaign.npcs[-1]
    print(plain(f"{npc.name}, voice {npc.voice.preset}: {npc.persona}"))
    if desk.resolver.visibility_of(npc.entity_id) != PUBLIC:
        name = plain(npc.name)
        print(f"not everybody may know of {name}, so the draft contains only the name; for its sheet, first")
        print(f"reveal it: glyphoxa entity reveal {shlex.quote(name)}")
    if options.dry_run:
        print("nothing was written")
        return 0
    AtomicFile(path).replace(added, base=stamp_of(text))
    line = made.source.line(("npcs", len(before.npcs)))
    print(f"added to {path}, line {line}: edit the persona there; it applies when the table is next opened")
    return 0


# The transcript


@TRANSCRIPT.action(
    "retract an utterance: it was never said; nobody recalls it, and no fact depends on it", _UTTERANCE, YES
)
async def _retract(desk: Desk, options: argparse.Namespace) -> int:
    said = await desk.sessions.find(options.utterance)
    print(f"retracted: {_in_words(desk, said)}")
    if not await _is_wanted(desk, said, options):
        return 1
    return _done("retracted", await desk.timeline.retract(said))


@TRANSCRIPT.action(
    "correct an utterance: something else was said, and everybody heard that",
    _UTTERANCE,
    YES,
    argument("text", nargs="?", metavar="WORDS", help="what was said instead; without it, only the speaker changes"),
    argument("--speaker", metavar="PLAYER", help="who said it"),
    name="correct",
)
async def _correct_utterance(desk: Desk, options: argparse.Namespace) -> int:
    if options.text is None and options.speaker is None:
        raise InvalidInput("nothing to correct: give WORDS, --speaker PLAYER, or both")
    said = await desk.sessions.find(options.utterance)
    text = said.text if options.text is None else options.text
    by = desk.resolver.speaking_player(options.speaker) if options.speaker else None
    print(f"heard: {_in_words(desk, said)}")
    print(f"instead: {plain(' '.join((f'{by.name}: ' if by else '', *text.split())).strip())}")
    if not await _is_wanted(desk, said, options):
        return 1
    return _done("corrected", await desk.timeline.correct(said, text, by=by))


async def _is_wanted(desk: Desk, said: CitedUtterance, options: argparse.Namespace) -> bool:
    show_preview(desk, await desk.timeline.preview_without(said))
    return await goes_on("It stays in the log; open tables follow.", is_sure=options.yes)


def _in_words(desk: Desk, said: CitedUtterance) -> str:
    return plain(f"{said.speaker_name}, {moment(said.at_ms)}, {desk.resolver.session(said.session_id)}: {said.text}")


def _done(what: str, event: WorldEvent) -> int:
    print(f"{what}; to undo it: glyphoxa facts undo {event.seq}")
    return 0


@TRANSCRIPT.action(
    "show a session's summary; with WORDS, set what NPCs recall of the session from now on",
    session_argument("session", nargs="?", default=LAST, about="default: the last one"),
    argument("words", nargs="*", metavar="WORDS", help="in the third person: They found the seal and lost the boat."),
    one_of(
        argument("--known-by", nargs="+", metavar="NPC", help="who recalls it; default: who heard any of the session"),
        argument("--public", help="everybody recalls it"),
    ),
)
async def _summary(desk: Desk, options: argparse.Namespace) -> int:
    session: SessionId = options.session
    if options.words:
        known_by: list[NpcId] | None = None
        if options.known_by is not None:
            known_by = [desk.resolver.npc(name) for name in options.known_by]
        elif not options.public:
            known_by = await desk.sessions.heard_by(session, [npc.id for npc in desk.resolver.npcs])
        await desk.sessions.summarise(session, " ".join(options.words), known_by)
    kept = await desk.sessions.summary(session)
    if kept is None:
        print(f"session {session} has no summary")
        return 0
    print(plain(kept.text))
    print(visibility_in_words(kept.visibility, desk.resolver))
    return 0


# The wrap-up of a session

_NUMBERS = "lines, such as 12,14b,20-25; or all"


def _lines(option: str, text: str, *words: str) -> Argument:
    return argument(option, nargs=len(words), action="append", default=[], metavar=words, help=text)


@WRAP_UP.itself(
    session_argument("session", nargs="?", default=LAST, about="default: the last one"),
    _lines("--accept", f"{_NUMBERS}: those who heard the line know it from now on", "NUMBERS"),
    _lines("--drop", f"{_NUMBERS}: they are not proposed again", "NUMBERS"),
    _lines("--edit", "accept it in your words; can be repeated", "NUMBER", "WORDS"),
    _lines("--to", "accept it about another person, place or thing; can be repeated", "NUMBER", "NAME"),
)
async def _wrap_up(desk: Desk, options: argparse.Namespace) -> int:
    last = LastSessions(desk.settings.data_directory).of(desk.campaign)
    if last is not None and last.session == options.session and last.closed_ms is None:
        again = "after a crash, open it once more with `glyphoxa serve --continue`"
        raise InvalidInput(f"session {options.session!r} is still open: close its table first; {again}")
    given = {"confirm": options.accept, "reject": options.drop, "edit": options.edit, "to": options.to}
    decisions = [LineDecision(what, *words) for what, all_words in given.items() for words in all_words]
    if decisions:
        show_decision(desk, await desk.decide(options.session, decisions))
    elif sys.stdin and sys.stdin.isatty() and sys.stdout.isatty():
        await _one_by_one(desk, options.session)
    _show_wrap_up(desk, await desk.wrap_up(options.session))
    return 0


_KEYS = {"a": "confirm", "e": "edit", "t": "to", "d": "reject"}


async def _one_by_one(desk: Desk, session: SessionId) -> None:
    """Ask on the terminal about each proposal, until none is left or the user quits."""
    later, made = set[str](), list[Decision]()
    while waiting := [each for each in (await desk.wrap_up(session)).proposals if each.name not in later]:
        print(f"\n{len(waiting)} left")
        _show_proposal(desk, waiting[0])
        key = await asyncio.to_thread(_key)
        try:
            if key in _KEYS:
                words = await answer_to("Words: " if key == "e" else "Name: ") if key in "et" else ""
                decision = LineDecision(_KEYS[key], waiting[0].name, words)
                seen = claim_in_words(waiting[0].claim, desk.resolver)
                made.append(await desk.decide(session, [decision], seen=seen))
                show_decision(desk, made[-1])
            elif key == "u" and made:
                await desk.store.world.undo(desk.campaign, made.pop().events[::-1], Cause("dm", now_ms()))
            elif key == "n":
                later.add(waiting[0].name)
            elif key in "q\x03\x04":
                return
        except GlyphoxaError as error:
            print(f"glyphoxa: {error}")


def _key() -> str:
    """Wait for one key of the terminal, without Enter; Ctrl-C and Ctrl-D are keys, too, and "" is the end of input."""
    terminal, before = sys.stdin.fileno(), termios.tcgetattr(sys.stdin)
    try:
        tty.setraw(terminal, termios.TCSADRAIN)
        print("[a]ccept [e]dit [t]o another name [d]rop [n]ext [u]ndo [q]uit", end="", flush=True)
        if (pressed := os.read(terminal, 1)) == b"\x1b":
            termios.tcflush(terminal, termios.TCIFLUSH)  # the rest of an arrow key, which ends with a letter
        return pressed.decode(errors="replace")
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        print()


def _show_proposal(desk: Desk, each: FactProposal) -> None:
    print(f"  {each.name:>5}  {plain(claim_in_words(each.claim, desk.resolver))}")
    if each.finding is not None:
        print(f"         {plain(f'{each.line.utterance.speaker_name}: {each.line.utterance.text}')}")
    print(f"         {visibility_in_words(each.heard_by, desk.resolver)}")


def _show_wrap_up(desk: Desk, seen: WrappedUp) -> None:
    for subject, group in groupby(seen.proposals, key=lambda each: each.claim.subject):
        print(plain(desk.resolver.called(subject)))
        for each in group:
            _show_proposal(desk, each)
    if not seen.proposals:
        print("nothing is left to decide")
    for name in seen.names:
        print(f"new name: {plain(name.name)} ({name.type}); to merge it: glyphoxa entity merge KEPT {name.id}")
    for title, threads in (("opened", seen.opened), ("continued", seen.closed)):
        for thread in threads:
            print(f"thread {title}: {plain(thread)}")
    for line in seen.recap:
        print(f"to read aloud: {plain(line)}")
