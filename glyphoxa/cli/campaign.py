"""`glyphoxa campaign`: campaign files and tables, stored campaigns, and the days of their stories."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.log import PostgresTurns
from glyphoxa.adapters.postgres.world.bundle import (
    Parts,
    Place,
    bind_campaign,
    export_campaign,
    export_for_players,
    import_campaign,
)
from glyphoxa.app.background import chronicle_log
from glyphoxa.app.engines import read_playable
from glyphoxa.app.scope import Scope
from glyphoxa.chronicle.consent_requests import SpokenRequests
from glyphoxa.chronicle.ports import said_in
from glyphoxa.cli.render import show_changes, show_rows
from glyphoxa.cli.scope import (
    A_DAY,
    CAMPAIGN,
    CONFIG,
    SESSION,
    YES,
    as_it_is,
    campaign_argument,
    desk_in,
    goes_on,
    in_scope,
    inspection_of,
    new_file,
    npc_called,
    opened,
    opened_store,
    settings_with_memory,
    stored_campaign,
    stored_session,
    write_new_file,
)
from glyphoxa.cli.verb import Verb, argument, in_a_loop, one_of
from glyphoxa.config.campaign_edit import template
from glyphoxa.config.campaign_file import CampaignFile, read_campaign
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.dm.campaign_bundle import check_new_id
from glyphoxa.dm.sessions import is_number
from glyphoxa.dm.turns import address_cases
from glyphoxa.domain.budgets import STANDING_TOKENS
from glyphoxa.domain.calendar import StoryCalendar
from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS, Campaign
from glyphoxa.domain.errors import InvalidInput, counted
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId
from glyphoxa.language.facts import moment
from glyphoxa.language.relations import RelationWords
from glyphoxa.language.sentences import tokens_of
from glyphoxa.names.gazetteer import Gazetteer, entries_of
from glyphoxa.names.people import CallForms
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.identity import beginning_of
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.prompt import Message, Prompt, with_hot_context
from glyphoxa.recall.table_calendar import STILL_PLAYED_MS
from glyphoxa.transcript.sessions import BETWEEN, KeptTimes, LastSessions
from glyphoxa.world.state import WorldState

if TYPE_CHECKING:
    from glyphoxa.app.desk import Desk

_MOST_RELATED = 8
_MOST_TURNS = 100_000
"""Turns of one session."""


_FILE = argument("file", type=Path, help="a campaign file (YAML)")

VERB = Verb(in_a_loop)
_STORED = Verb(in_scope(as_it_is, to_hold="campaigns"), of=VERB)


# Bringing in


@VERB.action(
    "create a campaign file with one NPC and one player",
    argument("file", type=Path, help="the campaign file to create (YAML)"),
    argument("--name", metavar="NAME", help="the campaign's name; default: made from the file's name"),
    argument("--language", default="en", metavar="TAG", help="such as en or de; default en"),
    argument("--npc", default="Marta", metavar="NAME", help="the first NPC's name; default Marta"),
    argument("--player", default="Tamsin", metavar="NAME", help="the first player's character; default Tamsin"),
    CONFIG,
)
async def _new(options: argparse.Namespace) -> int:
    """Write the file.

    Raises:
        InvalidInput: There is such a file, or it cannot be written, or a name cannot be one.
    """
    path: Path = options.file
    name = options.name or path.stem.replace("-", " ").replace("_", " ").strip().title() or "My campaign"
    text = template(name, options.language, npc=options.npc, player=options.player)
    read_campaign(path, text)  # what was given may not be a name or a language
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidInput(f"{path} exists already; nothing was written. Choose another name") from None
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written: {error.strerror}") from None
    config = f" --config {options.config}" if options.config else ""
    print(f"{path} is a campaign with one NPC, {options.npc}, and one player, {options.player}")
    print(f"play it alone on this machine:  glyphoxa serve --open{config} --campaign {path}")
    print("then edit it on the desk's page Campaign, or in an editor (docs/writing-a-campaign.md)")
    return 0


@VERB.action("check a campaign file, and report what is wrong", _FILE, CONFIG)
async def _check(options: argparse.Namespace) -> int:
    campaign = _warned(_read(options, read_settings(options.config)))
    _say_what_it_holds(campaign)
    names = Gazetteer.build(entries_of(campaign), language=campaign.language)
    for entry, forms in CallForms.at_table(campaign, names).own():
        print(f"  {entry.name} is called by: {', '.join(forms) or 'nothing that is its own'}")
    print("It can be played.")
    return 0


@VERB.action("load a file: add what changed in it to the stored campaign", _FILE, YES, CONFIG)
async def _load(options: argparse.Namespace) -> int:
    """Show the changes, ask for confirmation, and load the campaign. Returns the exit status.

    Raises:
        InvalidInput: Nobody is there to be asked.
    """
    settings = settings_with_memory(options.config, to_hold="campaigns")
    file = _read(options, settings)
    async with opened_store(settings) as store:
        campaign = _warned(file)
        changes = await store.campaigns.changes(campaign)
        show_changes(changes)
        if changes.is_empty:
            print(f"{campaign.name} ({campaign.id}): nothing to change")
            return 0
        if not await goes_on(f"This changes {campaign.name} ({campaign.id}).", is_sure=options.yes):
            return 1
        await store.campaigns.load(campaign, only_if=changes)
    _say_what_it_holds(campaign)
    return 0


def _read(options: argparse.Namespace, settings: Settings) -> CampaignFile:
    """
    Raises:
        InvalidInput: It is no campaign file, or has mistakes.
    """
    path: Path = options.file
    if path.is_dir() or path.suffix.casefold() == ".csv":
        raise InvalidInput(f"{path} is no campaign file (YAML); to bring in tables: glyphoxa import csv {path}")
    return read_playable(path, settings)


def _warned(file: CampaignFile) -> Campaign:
    """Print the warnings of a file, and return its campaign."""
    for warning in file.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return file.campaign


def _say_what_it_holds(campaign: Campaign) -> None:
    others = (
        counted(len(parts), what)
        for what, parts in (
            ("relationship", campaign.relationships),
            ("NPC", campaign.npcs),
            ("player", campaign.players),
            ("scene", campaign.scenes),
            ("secret", campaign.secrets),
            ("line", campaign.safety.lines),
            ("veil", campaign.safety.veils),
        )
    )
    print(f"{campaign.name} ({campaign.id}): {', '.join((_entities(len(campaign.entities)), *others))}")


def _entities(n: int) -> str:
    return counted(n, "entity", "entities")


# Looking


@VERB.action(
    "show how every prompt of an NPC begins: persona, frame, examples; no model is asked",
    argument("file", type=Path, help="a campaign file (YAML)"),
    argument("--npc", required=True, metavar="NAME", help="its name, an alias or its id"),
)
async def _prompt(options: argparse.Namespace) -> int:
    campaign = read_campaign(options.file).campaign
    npc = npc_called(options.npc, campaign)
    contexts = HotContexts(Prefetch(KnownWorld(campaign, None), talk=None, present=dict))
    identity, budgets = contexts.identities.read(npc.id), contexts.budgets
    asked = Prompt(npc.id, (*beginning_of(campaign, npc, identity.known), Message("user", "")), "", "")
    *shown, _ = with_hot_context(asked, contexts.gather_nowait(npc.id, "")).messages
    print("\n\n".join(f"[{message.role}]\n{message.content}" for message in shown))
    n_tokens = sum(tokens_of(message.content) for message in shown)
    most = STANDING_TOKENS + budgets.bible_tokens + budgets.identity_tokens + budgets.glossary_tokens
    print(f"\nIn every prompt of {npc.name}: about {n_tokens:,} of {most:,} tokens that a small model has for this.")
    if n_tokens > most:
        print(f"Shorten `persona:` or `examples:` of {npc.name!r}: a small model has less room for the conversation.")
    if not npc.examples:
        print(f"These are the default examples. To replace them, write `examples:` under {npc.name!r}.")
    if identity.secrets:
        print("Secrets, included only if the conversation is about them:")
        for secret in identity.secrets:
            print(f"  {secret.told.text}")
    return 0


@VERB.action("list the stored campaigns", CONFIG)
async def _list(options: argparse.Namespace) -> int:
    async with opened_store(settings_with_memory(options.config, to_hold="campaigns")) as store:
        names = await store.campaigns.names()
        rows = [(campaign, name, str(await store.log.count(campaign))) for campaign, name in names.items()]
    nothing = "no campaign is stored; load one: glyphoxa campaign load FILE"
    return show_rows(("id", "name", "utterances"), rows, nothing=nothing)


@_STORED.action(
    "show a stored campaign: its entities, and what they are related to",
    campaign_argument("campaign", nargs="?", otherwise="default: that of the settings, or the only one stored"),
    CONFIG,
)
async def _show(scope: Scope, _options: argparse.Namespace) -> int:
    campaign = await scope.store.campaigns.get(scope.campaign)
    world = await scope.store.world.now(campaign.id)
    print(f"{campaign.name} ({campaign.id}), {campaign.language}")
    for what, names in (
        ("NPCs", [npc.name for npc in campaign.npcs]),
        ("players", [player.name for player in campaign.players]),
        ("scenes", [scene.id for scene in campaign.scenes]),
    ):
        if names:
            print(f"{what}: {', '.join(names)}")
    words = RelationWords.of(campaign)
    entities = sorted(world.entities.values(), key=lambda each: (each.type, each.name, each.id))
    rows = ((each.type, each.name, _related(each.id, world, words)) for each in entities)
    return show_rows(("type", "name", "relations"), rows)


def _related(entity: EntityId, world: WorldState, words: RelationWords) -> str:
    """List the accepted relations of an entity, each without its name: is at The Anvil, knows Elowen."""
    related: list[str] = []
    for fact in world.touching(entity):
        claim = fact.claim
        if fact.status != "accepted" or claim.object is None:
            continue
        if claim.subject == entity or claim.predicate in BIDIRECTIONAL_RELATIONS:
            other = claim.object if claim.subject == entity else claim.subject
            related.append(f"{words.between(claim.predicate)} {world.entities[other].name}")
    if len(related) > _MOST_RELATED:
        related[_MOST_RELATED:] = [f"and {len(related) - _MOST_RELATED} more"]
    return ", ".join(related)


@_STORED.action(
    "copy a campaign with its history to a new id; changes to one do not affect the other",
    campaign_argument("campaign", otherwise="the one to copy"),
    argument("new", type=CampaignId, metavar="NEW", help="the id of the copy"),
    argument("--name", metavar="NAME", help="the new campaign's name; default: its id"),
    CONFIG,
)
async def _fork(scope: Scope, options: argparse.Namespace) -> int:
    check_new_id(options.new)
    await scope.store.world.fork(scope.campaign, options.new, name=options.name or options.new)
    print(f"{options.new} is a copy of {scope.campaign}; changes to one do not affect the other")
    return 0


# Between databases


@_STORED.action(
    "export a whole campaign to one file, or the part that players may know",
    argument("file", type=Path, help="the file to write (JSON); it must not exist"),
    *CAMPAIGN,
    one_of(
        argument("--with-secrets", help="also if the campaign has secrets; the file then contains them"),
        argument("--player-safe", help="only what players may know: for your players"),
        argument("--addressees", help="only the lines that you readdressed, a case of benchmarks.address a line"),
    ),
    argument("--without-talk", help="only the world, without transcripts: for another table"),
    argument("--with-embeddings", help="also the vectors of utterances and entities, for a database with their model"),
)
async def _export(scope: Scope, options: argparse.Namespace) -> int:
    """
    Raises:
        InvalidInput: The file is there already or cannot be written; or the campaign has secrets, and nobody said that
            the file may tell them.
    """
    if options.player_safe and options.with_embeddings:
        raise InvalidInput("--player-safe has no embeddings: leave out --with-embeddings")
    store, campaign, talk = scope.store, scope.campaign, not options.without_talk
    if options.addressees:
        lines = [json.dumps(each, ensure_ascii=False) for each in await _address_cases(store, campaign)]
        write_new_file(options.file, "".join(f"{line}\n" for line in lines).encode())
        print(f"{options.file}: {counted(len(lines), 'line')}")
        return 0
    with new_file(options.file) as file:
        if options.player_safe:
            bundle = await export_for_players(store.database, campaign, file, transcript=talk)
        else:
            parts = Parts(talk, options.with_embeddings, options.with_secrets)
            bundle = await export_campaign(store.database, campaign, file, parts)
        n_bytes = file.tell()
    print(f"{options.file}: {bundle.campaign.name} ({campaign}), {_held(bundle.n_rows)}, {n_bytes:,} bytes")
    return 0


async def _address_cases(store: Store, campaign: CampaignId) -> list[dict[str, object]]:
    """Return the cases of all sessions, without what players asked to forget."""
    cases: list[dict[str, object]] = []
    played, log = await store.campaigns.get(campaign), chronicle_log(store)
    for session in await inspection_of(store).sessions(campaign):
        turns = await PostgresTurns(store.database).latest(campaign, session=session.id, limit=_MOST_TURNS)
        if any(turn.is_readdressed for turn in turns):
            said = [each.utterance for each in await said_in(log, campaign, session.id)]
            requests = SpokenRequests()
            withheld = {each.id for one in said for each in requests.take(one)}
            cases += address_cases(played, [each for each in said if each.id not in withheld], turns)
    return cases


_RESTORE, _LATEST = "restore", "latest"


@VERB.action(
    "import a campaign from such a file: all of it, or nothing",
    argument("file", type=Path, help="a file that `campaign export` wrote"),
    argument("--as", dest="new", type=CampaignId, metavar="NEWID", help="its id here; default: its own"),
    argument(
        "--bind",
        default=_RESTORE,
        metavar="WHERE",
        help=f"{_RESTORE} (default): a new campaign, as it was; {_LATEST}: its entities and facts enter the campaign "
        "--campaign after the newest utterance; SESSION:ORDINAL: after that utterance",
    ),
    *CAMPAIGN,
)
async def _import(options: argparse.Namespace) -> int:
    """
    Raises:
        InvalidInput: The file is no bundle, or there is such a campaign already; nothing was stored.
    """
    if options.new is not None:
        check_new_id(options.new)
    is_new = options.bind == _RESTORE
    if (options.campaign if is_new else options.new) is not None:
        raise InvalidInput(f"--campaign needs --bind {_LATEST} or SESSION:ORDINAL, and --as needs --bind {_RESTORE}")
    settings = settings_with_memory(options.config, to_hold="campaigns")
    with opened(options.file) as file:
        try:
            async with opened_store(settings) as store:
                return await (_restored(store, file, options) if is_new else _bound(store, file, options, settings))
        except InvalidInput as error:
            raise InvalidInput(f"{options.file}: {error}; nothing was imported") from None


async def _restored(store: Store, file: BinaryIO, options: argparse.Namespace) -> int:
    bundle = await import_campaign(store.database, file, into=options.new)
    print(f"{bundle.campaign.name} ({options.new or bundle.campaign.id}): {_held(bundle.n_rows)}")
    print("transcripts are embedded when its table opens, or now by: glyphoxa worker reindex")
    return 0


async def _bound(store: Store, file: BinaryIO, options: argparse.Namespace, settings: Settings) -> int:
    campaign = await stored_campaign(store, options.campaign, settings)
    place = Place(campaign)
    if options.bind != _LATEST:
        session, _, ordinal = options.bind.rpartition(":")
        if not session or not is_number(ordinal):
            raise InvalidInput(f"--bind {options.bind}: write {_RESTORE}, {_LATEST} or SESSION:ORDINAL, such as 2:15")
        place = Place(campaign, await stored_session(store, campaign, session), int(ordinal))
    now_ms = time.time_ns() // 1_000_000
    bundled, events = await bind_campaign(store.database, store.world, file, place, now_ms=now_ms)
    cause = events[0].cause if events else None
    where = "" if cause is None or cause.session_id is None else f" at utterance {cause.ordinal} of {cause.session_id}"
    print(f"{bundled.name} entered {campaign}{where}: {counted(len(events), 'event')}")
    return 0


def _held(n_rows: Mapping[str, int]) -> str:
    return (
        f"{counted(n_rows['sessions'], 'session')}, {counted(n_rows['session_entries'], 'utterance')}, "
        f"{_entities(n_rows['entities'])}, {counted(n_rows['world_events'], 'event')}"
    )


# The story's calendar


@dataclass(frozen=True, slots=True)
class _Story:
    """A campaign that counts the days of its story."""

    desk: Desk
    calendar: StoryCalendar
    kept: KeptTimes

    def day(self, text: str) -> str:
        """Return a day as the calendar writes it.

        Raises:
            InvalidInput: There is no such day.
        """
        return self.calendar.in_words(self.desk.days.day_named(text))


async def _story_in(scope: Scope) -> _Story:
    desk = await desk_in(scope)
    kept = await desk.store.times.kept(desk.campaign)
    if kept.calendar is None:
        raise InvalidInput(
            f"campaign {desk.campaign!r} has no calendar: add a block `calendar:` to its file, "
            "and load it (docs/writing-a-campaign.md shows one)"
        )
    return _Story(desk, kept.calendar, kept)


_DAYS = Verb(in_scope(_story_in, to_hold="talk or facts"), common=CAMPAIGN, of=VERB)


@_DAYS.action("show the story's current day, and the days of each session")
async def _calendar(story: _Story, options: argparse.Namespace) -> int:
    if now := story.kept.day_now:
        print(f"it is {_as_written(now, story.calendar)}")
    else:
        print('the current day is not set: glyphoxa campaign today "..."')
    sessions = await story.desk.inspection.sessions(story.desk.campaign)
    rows = (
        (str(number), session.id, moment(session.started_ms), _days_of(story, session.id))
        for number, session in enumerate(sessions, start=1)
    )
    return show_rows(("no.", "session", "began", "days of the story"), rows) if sessions else 0


def _days_of(story: _Story, session: SessionId) -> str:
    """Return the days of a session, such as: 3 Hammer 1492 to 5 Hammer 1492."""
    days = story.desk.days.sessions.get(session)
    known = "" if days is None else story.desk.days.in_words(days.first, days.last)
    told = dict.fromkeys(one.day for one in story.kept.told if one.session == session)
    gone = (written for day in told if (written := _as_written(day, story.calendar)) != day)
    return ", ".join(part for part in (known, *gone) if part)


def _as_written(day: str, calendar: StoryCalendar) -> str:
    """Return a day, marked if the calendar no longer has it."""
    try:
        calendar.day_named(day)
    except InvalidInput:
        return f"{day} (not in the calendar)"
    return day


@_DAYS.action(
    "set the story's current day: for the session being played, or for the next",
    argument("day", nargs="+", metavar="DAY", help=A_DAY),
)
async def _today(story: _Story, options: argparse.Namespace) -> int:
    day = story.day(" ".join(options.day))
    session = await _played_now(story)
    await story.desk.store.times.tell(story.desk.campaign, session, day)
    of_what = f"session {session} continues on it" if session else "the next session begins on it"
    print(f"it is {day}: {of_what}")
    return 0


async def _played_now(story: _Story) -> str:
    """Return the session that was opened or used within the last hours, unless this machine closed it."""
    since_ms = time.time_ns() // 1_000_000 - STILL_PLAYED_MS
    said = await story.desk.store.times.last_said(story.desk.campaign)
    recent = [(told.told_ms, told.session) for told in story.kept.told if told.session != BETWEEN]
    if said is not None:
        recent.append((said[1], said[0]))
    last_ms, session = max(recent, default=(0, BETWEEN))
    last = LastSessions(story.desk.settings.data_directory).of(story.desk.campaign)
    is_closed = last is not None and last.session == session and last.closed_ms is not None
    return session if last_ms > since_ms and not is_closed else BETWEEN


@_DAYS.action(
    "set the days of the story that a session covered",
    SESSION,
    argument("first", metavar="FIRST", help=A_DAY),
    argument("last", nargs="?", metavar="LAST", help="default: one day only"),
)
async def _days(story: _Story, options: argparse.Namespace) -> int:
    session: SessionId = options.session
    days = [story.day(text) for text in (options.first, options.last) if text is not None]
    if story.calendar.day_named(days[0]) > story.calendar.day_named(days[-1]):
        raise InvalidInput(f"{days[0]} is after {days[-1]}: write the earlier day first")
    days = list(dict.fromkeys(days))
    await story.desk.store.times.set_days(story.desk.campaign, session, days)
    print(f"session {session} was played on {' to '.join(days)}")
    return 0
