"""The game master's decisions: `glyphoxa facts`, `entity`, `transcript`, `wrap-up` and `names`.

`glyphoxa.dm.actions` declares most of them, with their arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
import termios
import tty
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from glyphoxa.actors.clock import now_ms
from glyphoxa.app.campaign_editor import npc_form
from glyphoxa.app.desk import Desk, WrappedUp, names_desk_of
from glyphoxa.app.engines import read_playable
from glyphoxa.cli.render import show_facts, show_result, show_rows
from glyphoxa.cli.scope import (
    CAMPAIGN,
    ONE_SESSION,
    YES,
    answer_to,
    declared_in,
    file_named,
    goes_on,
    in_scope,
    run_at_desk,
    session_argument,
)
from glyphoxa.cli.verb import Argument, Verb, any_option, argument, limit, one_of
from glyphoxa.config.campaign_edit import AtomicFile, additions, insert, stamp_of
from glyphoxa.config.located_yaml import text_of
from glyphoxa.dm.actions import ACTIONS, DmAction, Option
from glyphoxa.dm.facts import Decision
from glyphoxa.dm.sessions import LAST
from glyphoxa.dm.wording import plain
from glyphoxa.dm.wrap_up import FactProposal, LineDecision
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.domain.knowledge import PUBLIC
from glyphoxa.language.facts import claim_in_words, moment, visibility_in_words
from glyphoxa.names.learning import NamesDesk
from glyphoxa.names.wrong_forms import LearnedName
from glyphoxa.npc.commands import scene_called
from glyphoxa.transcript.sessions import LastSessions
from glyphoxa.world.event_log import Cause

_MOST_SHOWN = 50

_NAME = argument("entity", metavar="NAME", help="an entity's name, alias or id")

FACTS = Verb(run_at_desk, common=CAMPAIGN)
ENTITY = Verb(run_at_desk, common=CAMPAIGN)
TRANSCRIPT = Verb(run_at_desk, common=CAMPAIGN)
WRAP_UP = Verb(run_at_desk, common=CAMPAIGN)
NAMES = Verb(in_scope(names_desk_of, to_hold="names"), common=CAMPAIGN)


# Actions that are declared for all surfaces


def _offer(verb: Verb[Any], name: str) -> None:
    """Declare the actions that the verb of this name has."""
    for each in ACTIONS:
        of, _, word = each.verb.partition(" ")
        if of == name:
            rest = [option.takes_rest for option in each.options if option.takes_rest]
            more = [*([any_option] if rest else ()), *((YES,) if each.asks else ())]
            how = {"epilog": rest[0], "allow_abbrev": False} if rest else {}
            verb.action(each.text, *map(_argument, each.options), *more, name=word, **how)(partial(_act, each))


def _argument(option: Option) -> Argument:
    if option.names == "session":
        return session_argument(option.name)
    told: dict[str, Any] = {"help": option.text}
    if option.kind is not bool:
        told |= {"metavar": option.word, "type": option.kind}
    if option.is_several and not option.is_repeated:
        told["nargs"] = "+"
    if option.is_required if option.is_argument is None else option.is_argument:
        return argument(option.name, **told, **({} if option.is_required else {"nargs": "?"}))
    if option.is_several:
        told["action"] = "append" if option.is_repeated else "extend"
    if option.is_required:
        told["required"] = True
    return argument(f"--{option.name.replace('_', '-')}", **told)


async def _act(action: DmAction, desk: Desk, options: argparse.Namespace) -> int:
    given = {each.name: getattr(options, each.name) for each in action.options}
    for each in action.options:
        if each.takes_rest:
            given[each.name] = f"{given[each.name] or ''} {shlex.join(options.free)}"
    if (asked := await action.question(desk, given)) is not None:
        lines, question = asked
        show_result(desk, lines)
        if not await goes_on(question, is_sure=options.yes):
            return 1
    return show_result(desk, await action.run(desk, given))


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
    lines = {fact.id: desk.facts.line(fact) for fact in disputed}
    also = ("contradicts", lambda fact: "; ".join(lines.get(each, each) for each in fact.disputes))
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


_offer(FACTS, "facts")


# Entities

_offer(ENTITY, "entity")


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
    form = await npc_form(desk, options.entity, before, scene=scene)
    form |= {"add": "person", "voice": options.voice or form["voice"]}
    added = insert(text, *additions(form, before))
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

_offer(TRANSCRIPT, "transcript")


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
        show_result(desk, await desk.decide(options.session, decisions))
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
                show_result(desk, made[-1])
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


# How names are misheard

_MOST_REFUSED_SHOWN = 20
_ALL_THE_SAME = "Use --yes to accept it anyway"
_HEARD = argument("heard", metavar="HEARD", help="the words as the transcript shows them")
_CALLED = argument("name", metavar="NAME", help="a name or alias of the campaign")
_WHY = argument("--why", default="", metavar="TEXT", help="a note for the history")
_SURE = argument("--yes", help="even if these words are common in ordinary speech")


@NAMES.action("list all names, with the wrong forms that are corrected")
async def _list(desk: NamesDesk, _options: argparse.Namespace) -> int:
    pairs = await desk.wrong_forms()
    rows = (
        (entry.name, entry.entity_type, ", ".join(map(_wrong_form, pairs.get(entry.entity_id, ()))))
        for entry in desk.names.entries
    )
    return show_rows(("name", "type", "heard as"), rows)


@NAMES.action("list suggested wrong forms that need review", name="review")
async def _review_names(desk: NamesDesk, _options: argparse.Namespace) -> int:
    found = await desk.suggestions()
    rows = ((one.heard, one.called, str(one.status.count), "; ".join(one.why)) for one in found[:_MOST_SHOWN])
    show_rows(("heard", "name", "times", "why"), rows, nothing="no names need review")
    if len(found) > _MOST_SHOWN:
        print(f"and {len(found) - _MOST_SHOWN} more, heard less often")
    return 0


@NAMES.action("accept a wrong form: HEARD means NAME from now on", _HEARD, _CALLED, _WHY, _SURE)
async def _accept(desk: NamesDesk, options: argparse.Namespace) -> int:
    unless = None if options.yes else _ALL_THE_SAME
    done, warned = await desk.accept(options.heard, options.name, unless=unless, why=options.why)
    if warned is not None:
        print(f"warning: {warned}", file=sys.stderr)
    print(done)
    return 0


@NAMES.action("reject a wrong form: HEARD does not mean NAME; it is not suggested again", _HEARD, _CALLED, _WHY)
async def _reject(desk: NamesDesk, options: argparse.Namespace) -> int:
    print(await desk.reject(options.heard, options.name, why=options.why))
    return 0


@NAMES.action(
    "undo your last decision; repeat it for the one before",
    argument("heard", nargs="?", metavar="HEARD", help="the last decision about these words"),
    name="undo",
)
async def _undo_name(desk: NamesDesk, options: argparse.Namespace) -> int:
    print(await desk.undo(options.heard))
    return 0


@NAMES.action(
    "list what happened, latest first",
    argument("heard", nargs="?", metavar="HEARD", help="only about these words"),
)
async def _history(desk: NamesDesk, options: argparse.Namespace) -> int:
    rows = []
    for happened in await desk.learned.history(desk.campaign, heard=options.heard, limit=_MOST_SHOWN):
        step, when = happened.step, moment(happened.at_ms)
        rows.append((when, step.kind, step.as_heard, happened.called, step.by, step.why, step.utterance or ""))
    return show_rows(("when", "what", "heard", "name", "by", "why", "utterance"), rows)


@NAMES.action(
    "accept a list: a line is HEARD, tab, NAME",
    argument("file", type=Path, metavar="FILE.tsv", help="the list to read"),
    _SURE,
)
async def _import(desk: NamesDesk, options: argparse.Namespace) -> int:
    taken = 0
    refused: list[str] = []
    unless = None if options.yes else _ALL_THE_SAME
    for number, heard, name in _pairs(options.file, desk):
        try:
            await desk.accept(heard, name, unless=unless, why=f"{options.file.name}, line {number}")
        except InvalidInput as error:
            refused.append(f"{options.file}:{number}: {error}")
        else:
            taken += 1
    for told in refused[:_MOST_REFUSED_SHOWN]:
        print(f"skipped: {told}", file=sys.stderr)
    if len(refused) > _MOST_REFUSED_SHOWN:
        print(f"skipped: {len(refused) - _MOST_REFUSED_SHOWN} more", file=sys.stderr)
    print(f"{taken} wrong forms accepted; {len(refused)} skipped")
    return 0


def _pairs(file: Path, desk: NamesDesk) -> list[tuple[int, str, str]]:
    """Return the lines of a file of pairs; all are checked before anything is learned.

    Raises:
        InvalidInput: The file cannot be read, a line is not a pair, or a name is unknown.
    """
    pairs: list[tuple[int, str, str]] = []
    for number, line in enumerate(text_of(file).splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) < 2 or not columns[0] or not columns[1]:
            raise InvalidInput(f"{file}:{number}: {line[:80]!r} is not HEARD, a tab and NAME")
        try:
            pairs.append((number, columns[0], desk.entity(columns[1]).name))
        except InvalidInput as error:
            raise type(error)(f"{file}:{number}: {error}") from None
    return pairs


@NAMES.action("print the wrong forms that are corrected, in the format of `import`")
async def _export(desk: NamesDesk, _options: argparse.Namespace) -> int:
    for pair in await desk.learned.statuses(desk.campaign):
        if pair.status.state == "active" and pair.name is not None:
            print(f"{pair.heard}\t{pair.name}")
    return 0


def _wrong_form(pair: LearnedName) -> str:
    state = "" if pair.status.state == "active" else f", {pair.status.state}"
    return f"{pair.heard} ({pair.status.count}{state})"
