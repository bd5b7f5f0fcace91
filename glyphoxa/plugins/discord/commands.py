"""The commands, each an adapter over a service that the desk and the command line use, too.

A player's answer is made from what players may know: public entities, and accepted public facts about them.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter, Signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, get_args

import discord
from discord import app_commands

from glyphoxa.adapters.postgres.transcript.table_commands import PostgresTableCommands
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection, SeenEntity
from glyphoxa.app.campaign_editor import CampaignEditor
from glyphoxa.app.desk import Desk, SessionRecaps, desk_of, recap_of
from glyphoxa.app.engines import read_playable
from glyphoxa.app.scope import Scope
from glyphoxa.app.source_reader import SourceReader
from glyphoxa.config.campaign_edit import stamp_of
from glyphoxa.config.located_yaml import InvalidFile, text_of
from glyphoxa.dm.actions import DmAction, actions_of
from glyphoxa.dm.campaign_diff import CampaignChanges
from glyphoxa.dm.facts import Decision, ExplainedFact, lines_of
from glyphoxa.dm.handouts import PlayersView
from glyphoxa.dm.sessions import LAST
from glyphoxa.dm.source_world import ImportKind
from glyphoxa.domain.campaign import ENTITY_TYPES
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, counted
from glyphoxa.domain.ids import PlayerId
from glyphoxa.domain.knowledge import DM, PUBLIC, Fact
from glyphoxa.language.facts import entity_in_words, knower_in_words, visibility_in_words
from glyphoxa.language.words import fold
from glyphoxa.npc.commands import MAX_DIRECTED, MAX_SAID, MAX_TURNS
from glyphoxa.plugins.discord.access import Caller
from glyphoxa.transcript.sessions import session_of

MOST_CARDS: Final = 5
_MOST_FACTS: Final = 1_000
_ON_CARD: Final = ("from", "because", "said", "contradicts")
"""Rows of a fact that its card shows, below its line."""
_MOST_SUGGESTED: Final = 25
_LONGEST_SUGGESTION: Final = 100
_MOST_BYTES: Final = 32 << 20
"""Limit of an upload, which is held in memory; a larger file is imported on the desk or the command line."""

Act = Callable[[], Awaitable["Answer"]]


@dataclass(frozen=True, slots=True)
class Services:
    """Services for the commands; `link` returns a player's personal link, or with None the game master's. May block."""

    source: Scope
    tables: PostgresTableCommands
    link: Callable[[PlayerId | None], str]
    reader: SourceReader = field(default_factory=SourceReader)


@dataclass(frozen=True, slots=True)
class DiscordCall:
    """A command or suggestion: whose, and what it works on."""

    caller: Caller
    services: Services

    async def desk(self) -> Desk:
        return await desk_of(self.services.source)

    async def table(self, do: str, **told: object) -> Answer:
        """Send a command to the open table; see `glyphoxa.npc.commands`."""
        command = {"do": do, **{key: value for key, value in told.items() if value is not None}}
        done = await self.services.tables.command(self.services.source.campaign, command)
        return Answer(tuple(done.splitlines()))


@dataclass(frozen=True, slots=True)
class Card:
    """A fact that needs review; `shown` is its id, a colon, and what was shown of its state, as `decide` takes them."""

    lines: tuple[str, ...]
    shown: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Lines; `act` is what follows if the caller confirms it."""

    lines: tuple[str, ...]
    cards: tuple[Card, ...] = ()
    act: Act | None = None


COMMANDS: Final[list[tuple[str, str, Any]]] = []
"""Name (one word, or a group and a word), description and function of each command."""


def _command(
    name: str,
    text: str,
    /,
    *,
    is_for_players: bool = False,
    is_public: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    **meanings: str,
) -> Callable[[Any], Any]:
    """Declare a command of the game master, or also of players.

    Args:
        is_public: Whether everybody in the channel may read the answer, given the options.
        meanings: The meaning of each option.
    """

    def declare(run: Callable[..., Awaitable[Answer]]) -> Callable[..., Awaitable[Answer]]:
        @app_commands.describe(**meanings)
        @functools.wraps(run)  # discord.py reads the options there
        async def answered(interaction: discord.Interaction[Any], **options: Any) -> None:
            call: DiscordCall = interaction.extras["call"]

            async def ask() -> Answer:
                if not is_for_players:
                    call.caller.need_dm()
                return await run(call, **options)

            await interaction.client.answer(interaction, ask, is_public=is_public(options))

        COMMANDS.append((name, text, answered))
        return run

    return declare


# What players may know


def _listed(seen: Iterable[SeenEntity]) -> Sequence[SeenEntity]:
    """Return entities by name, without those that hold a session's summary."""
    listed = (each for each in seen if session_of(each.entity) is None)
    return sorted(listed, key=lambda each: fold(each.entity.name))


async def _desk_for(call: DiscordCall) -> tuple[Desk, PlayersView | None]:
    """Return the desk with the entities and names that the caller may know, and for a player also the players' view.

    No message of a player's desk contains another name.
    """
    desk, source = await call.desk(), call.services.source
    if call.caller.is_dm:
        return desk, None
    view = (await SessionRecaps.of(source.store, source.campaign)).players
    known, _ = view.world((each.entity, each.visibility) for each in _listed(desk.seen))
    resolver = replace(desk.resolver, entities=known, npcs=())
    seen = tuple(SeenEntity(each, PUBLIC) for each in known.values())
    return replace(desk, seen=seen, resolver=resolver, facts=replace(desk.facts, resolver=resolver)), view


# Suggestions while somebody types. They contain nothing that the caller may not know.


def _suggested(kind: str) -> Any:
    async def suggest(interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
        try:
            known = await _names(interaction.extras["call"], kind)
        except GlyphoxaError:
            return []
        wanted = fold(current)
        found = sorted({name for name in known if wanted in fold(name) and 0 < len(name) <= _LONGEST_SUGGESTION})
        return [app_commands.Choice(name=name, value=name) for name in found[:_MOST_SUGGESTED]]

    return suggest


async def _names(call: DiscordCall, kind: str) -> Iterable[str]:
    source = call.services.source
    campaign = await source.store.campaigns.get(source.campaign)
    if kind in ("npc", "scene"):
        if not call.caller.is_dm:
            return ()
        return [npc.name for npc in campaign.npcs] if kind == "npc" else [scene.id for scene in campaign.scenes]
    seen = _listed(await PostgresInspection(source.store.database).entities(source.campaign))
    names = PlayersView((), campaign)  # names of hidden entities matter for aliases and facts only
    known = [each.entity for each in seen if call.caller.is_dm or names.may_name(each.entity.name, each.visibility)]
    if kind == "type":
        types = campaign.schema.entity_types if call.caller.is_dm else ENTITY_TYPES
        return [*types, *(each.type for each in known)]
    return [each.name for each in known]


_ENTITY, _TYPE, _NPC, _SCENE = map(_suggested, ("entity", "type", "npc", "scene"))


# The game master's actions


def _offer(name: str, action: DmAction) -> None:
    """Declare a command of an action; see `glyphoxa.dm.actions`."""

    async def run(call: DiscordCall, **given: Any) -> Answer:
        desk = await call.desk()
        asked = await action.question(desk, given)
        if asked is None:
            return Answer(tuple(desk.in_words(await action.run(desk, given))))

        async def confirmed() -> Answer:
            now = await call.desk()
            if await action.question(now, given) != asked:
                raise InvalidInput("what you saw has changed meanwhile; nothing was changed")
            return Answer(tuple(now.in_words(await action.run(now, given))))

        lines, question = asked
        return Answer((question, *lines), act=confirmed)

    parameters = [Parameter("call", Parameter.POSITIONAL_OR_KEYWORD)]
    for option in sorted(action.options, key=lambda each: not each.is_required):
        kind, default = (option.kind, Parameter.empty) if option.is_required else (option.kind | None, None)
        parameters.append(Parameter(option.name, Parameter.POSITIONAL_OR_KEYWORD, annotation=kind, default=default))
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    suggested = {"entity": _ENTITY, "npc": _NPC, "type": _TYPE}
    known = {each.name: suggested[each.names] for each in action.options if each.names in suggested}
    app_commands.autocomplete(**known)(run)
    app_commands.describe(**{each.name: each.meaning for each in action.options})(run)
    _command(name, action.meaning)(run)


for _name, _action in actions_of("discord").items():
    _offer(_name, _action)


# Entities


@_command("entity list", "List people, places and things", is_for_players=True, type="Only those of this type")
@app_commands.autocomplete(type=_TYPE)
async def _entity_list(call: DiscordCall, type: str | None = None) -> Answer:  # noqa: A002
    desk, _ = await _desk_for(call)
    found = [each for each in _listed(desk.seen) if type in (None, each.entity.type)]
    if not found:
        return Answer(("nothing is known yet" if type is None else f"nothing of type {type!r} is known",))
    lines = []
    for each in found:
        scope = visibility_in_words(each.visibility, desk.resolver) if call.caller.is_dm else ""
        lines.append(entity_in_words(each.entity) + (f": {scope}" if scope else ""))
    return Answer(tuple(lines))


# Facts


@_command("fact show", "Show what is known about somebody or something", is_for_players=True, about="Its name")
@app_commands.autocomplete(about=_ENTITY)
async def _fact_show(call: DiscordCall, about: str) -> Answer:
    desk, view = await _desk_for(call)
    entity = desk.resolver.entity(about)
    facts = await desk.inspection.current(desk.campaign, DM, about=entity.id, limit=_MOST_FACTS)
    if view is not None:
        facts = [fact for fact in facts if view.may_know(fact, desk.resolver.entities)]
    if not facts:
        return Answer((f"nothing is known about {entity.name}",))
    return Answer(tuple(desk.facts.line(fact) if call.caller.is_dm else desk.facts.words(fact) for fact in facts))


@_command("whoknows", "Show who knows what about somebody or something", about="Its name", npc="Only what it knows")
@app_commands.autocomplete(about=_ENTITY, npc=_NPC)
async def _whoknows(call: DiscordCall, about: str, npc: str | None = None) -> Answer:
    desk = await call.desk()
    entity, viewer = desk.resolver.entity(about), DM if npc is None else desk.resolver.npc(npc)
    facts, _ = await desk.timeline.known(viewer, about=entity.id, limit=_MOST_FACTS)
    lines = []
    for fact in facts:
        knowers = (knower_in_words(each, desk.resolver) for each in fact.visibility.knowers)
        lines.append("; ".join((desk.facts.line(fact), *knowers)))
    return Answer(tuple(lines) or (f"nothing is known about {entity.name}",))


# Review


@_command("review", "Review facts: accept, reject or hide each")
async def _review(call: DiscordCall) -> Answer:
    desk = await call.desk()
    facts = [
        fact
        for status in ("pending", "conflict", "stale")
        for fact in await desk.inspection.of_status(desk.campaign, status, limit=MOST_CARDS)
    ][:MOST_CARDS]
    n = sum(count for status, count in (await desk.inspection.waiting(desk.campaign)).items() if status != "accepted")
    first = f"{counted(n, 'fact needs', 'facts need')} review" if n else "no facts need review"
    more = f"; the first {len(facts)}:" if n > len(facts) else ":" if facts else ""
    return Answer((f"{first}{more}",), tuple([await _card(desk, fact) for fact in facts]))


async def _card(desk: Desk, fact: Fact) -> Card:
    said, disputed = await desk.facts.evidence(fact)
    rows = desk.facts.explained_in_words(ExplainedFact(fact, said=said, disputes=disputed))
    lines = lines_of({heading: rows[heading] for heading in _ON_CARD if heading in rows})
    return Card((desk.facts.line(fact), *lines), f"{fact.id}:{_seen(desk, fact)}")


def _seen(desk: Desk, fact: Fact) -> str:
    """Return 8 digits that are the same while campaign, fact and state are."""
    state = "\x1f".join((desk.campaign, fact.id, desk.facts.state_in_words(fact)))
    return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()[:8]


async def decide(call: DiscordCall, what: str, shown: str) -> Answer:
    """Accept, reject or hide a fact, as it was shown on a card.

    Raises:
        NotFound: There is no such fact any more.
        InvalidInput: It has changed since the card was shown.
    """
    fact, _, seen = shown.partition(":")
    desk = await call.desk()
    found = await desk.facts.find(fact)
    if _seen(desk, found) != seen:
        raise InvalidInput(f"{desk.facts.line(found)}: this is not what the card shows; nothing was decided: /review")
    action = actions_of("form", "facts")["confirm" if what == "accept" else what]
    made: Decision = await action.run(desk, {"facts": [found.id], "fact": found.id})
    ended = [each for each in made.ended if each.fact.id != found.id]
    return Answer(
        (
            f"{action.done}: {desk.facts.words(found)}",
            *desk.facts.decision_in_words(replace(made, facts=(), ended=tuple(ended))),
        )
    )


# Sessions


@_command(
    "recap",
    "Recap a session: lines to read aloud to the players",
    is_for_players=True,
    is_public=lambda options: not options.get("dm"),
    session="Its number; default: the last one",
    dm="With real names and everything that was said; only you see it",
)
async def _recap(call: DiscordCall, session: int | None = None, dm: bool = False) -> Answer:
    if dm:
        call.caller.need_dm()
    desk = await call.desk()
    found = await desk.sessions.named(LAST if session is None else str(session))
    lines = await recap_of(desk.store, desk.campaign, found, "dm" if dm else "players")
    title = (await desk.timeline.session(found)).session.title
    return Answer((title,) * bool(dm and title) + (tuple(lines) or ("the session has no lines worth recalling",)))


# The open table

_Words = app_commands.Range[str, 1, MAX_SAID]
_Direction = app_commands.Range[str, 1, MAX_DIRECTED]
_Turns = app_commands.Range[int, 1, MAX_TURNS]


@_command("say", "Speak as an NPC: it says these words in its voice", npc="Its name", words="What it says")
@app_commands.autocomplete(npc=_NPC)
async def _say(call: DiscordCall, npc: str, words: _Words) -> Answer:
    return await call.table("say", npc=npc, text=words)


@_command("mute", "Mute an NPC, or unmute it", npc="Its name; default: all of them", off="Let it speak again")
@app_commands.autocomplete(npc=_NPC)
async def _mute(call: DiscordCall, npc: str | None = None, off: bool = False) -> Answer:
    return await call.table("unmute" if off else "mute", npc=npc)


@_command(
    "direct",
    "Instruct an NPC for its next answers; nobody hears it",
    npc="Its name",
    words='Such as "be short with them; you are afraid"; without, the current instruction ends',
    turns="For so many answers; default: 3",
)
@app_commands.autocomplete(npc=_NPC)
async def _direct(call: DiscordCall, npc: str, words: _Direction | None = None, turns: _Turns = 3) -> Answer:
    return await call.table("direct", npc=npc, text=words or "", turns=turns)


@_command("scene", "Move the table to another scene", scene="Its id, or the name of its location")
@app_commands.autocomplete(scene=_SCENE)
async def _scene(call: DiscordCall, scene: str) -> Answer:
    return await call.table("scene", scene=scene)


@_command("join", "Get your own link to the table; only you see it", is_for_players=True)
async def _join(call: DiscordCall) -> Answer:
    return Answer((await asyncio.to_thread(call.services.link, call.caller.player),))


# Files


@_command(
    "campaign load",
    "Load a campaign file, or import tables or another tool's world; shows first what changes",
    file="A campaign file (YAML), a table (CSV), or with `tool` another tool's export",
    tool="The tool that exported it",
)
async def _campaign_load(call: DiscordCall, file: discord.Attachment, tool: ImportKind | None = None) -> Answer:
    if file.size > _MOST_BYTES:
        raise InvalidInput(
            f"{file.filename} has {file.size >> 20:,} MiB, and at most {_MOST_BYTES >> 20} can be loaded here; "
            "use the desk's page Import, or the command line"
        )
    with TemporaryDirectory(prefix="glyphoxa-discord-") as folder:
        path = Path(folder) / (Path(file.filename).name.strip(".") or "file")
        await asyncio.to_thread(path.write_bytes, await file.read())
        try:
            if tool is not None:
                return await _import(call, tool, path)
            if path.suffix.casefold() == ".csv":
                return await _import(call, "csv", path)
            if path.suffix.casefold() in (".yaml", ".yml"):
                return await _load_campaign(call, path)
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(f"{folder}/", "")) from None
    raise InvalidInput(
        f"{path.name} is neither a campaign file (.yaml) nor a table (.csv); "
        f"if another tool exported it, choose the tool: {', '.join(get_args(ImportKind))}"
    )


async def _load_campaign(call: DiscordCall, path: Path) -> Answer:
    source = call.services.source
    if source.settings.campaign is not None:
        editor = CampaignEditor(source)
        stamp = stamp_of(await asyncio.to_thread(editor.file.read))
        draft = await editor.check(await asyncio.to_thread(text_of, path), base=stamp)
        if draft.problems:
            raise InvalidFile(path, draft.problems)
        return _to_confirm(path, draft.changes, lambda: editor.save(draft, shown=draft.shown), draft.warnings)
    found = await asyncio.to_thread(read_playable, path, source.settings)
    if found.campaign.id != source.campaign:
        raise InvalidInput(f"{path.name} is the file of campaign {found.campaign.id!r}, not of {source.campaign!r}")
    campaigns = source.store.campaigns
    changes = await campaigns.changes(found.campaign)
    return _to_confirm(path, changes, lambda: campaigns.load(found.campaign, only_if=changes), found.warnings)


def _to_confirm(
    path: Path, changes: CampaignChanges | None, load: Callable[[], Awaitable[object]], warnings: Sequence[str]
) -> Answer:
    if changes is None or changes.is_empty:
        return Answer(("nothing to change",))

    async def confirmed() -> Answer:
        await load()
        return Answer(("loaded",))

    marked = (("+", changes.added), ("~", changes.changed), ("-", changes.removed), ("!", changes.remarks))
    warned = (f"warning, line {each.removeprefix(f'{path}:')}" for each in warnings)
    return Answer((*(f"{mark} {line}" for mark, lines in marked for line in lines), *warned), act=confirmed)


async def _import(call: DiscordCall, tool: ImportKind, path: Path) -> Answer:
    """Take in another tool's world. Nothing of it enters the campaign before the DM accepts it."""
    world = await call.services.reader.read(tool, path)
    arrival = await call.services.source.imports().take_in(world)
    waiting = f"{arrival.n_new:,} new and {arrival.n_changed:,} changed documents of {world.name} need review"
    return Answer((f"{waiting}: on the desk's page Import, or with glyphoxa import review", *arrival.remarks))
