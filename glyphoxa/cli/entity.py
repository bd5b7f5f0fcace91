"""`glyphoxa entity`: the people, places and things of a campaign, by hand."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli import shown
from glyphoxa.cli.scope import CAMPAIGN, YES, goes_on, run_at_desk
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Verb, any_option, argument
from glyphoxa.dm.entities import MOST_FACTS
from glyphoxa.dm.resolver import NameResolver
from glyphoxa.dm.stating import json_or_text
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import DM
from glyphoxa.world.api import EntitiesMerged, Words, WorldEvent, visibility_in_words

_MOST_TOLD = 5


_NAME = argument("entity", metavar="NAME", help="an entity's name, alias or id")
_KEPT = argument("entity", metavar="KEPT", help="an entity's name, alias or id")
_ALIAS = argument("alias", metavar="ALIAS")

VERB = Verb(run_at_desk, common=CAMPAIGN)


@VERB.action(
    "register an entity, with attributes of any name: --personality gruff",
    argument("name", metavar="NAME"),
    argument("type", metavar="TYPE", help="npc, player, location, item, faction, event, quest, concept ..."),
    argument("--attributes", default="{}", metavar="JSON", help='an object, such as {"level": 9}'),
    argument("--alias", action="append", default=[], metavar="ALIAS", help="may be given several times"),
    argument("--id", metavar="ID", help="else made of the name"),
    argument("--new-type", help="TYPE is a new one of this campaign's own"),
    any_option,
    epilog="An option of any other name is an attribute: --personality 'paranoid wizard' --level 9",
    allow_abbrev=False,
)
async def _add(desk: Desk, options: argparse.Namespace) -> int:
    attributes = {**json_object(options.attributes), **attributes_of(options.free)}
    events = await desk.entities.add(
        options.name,
        options.type,
        aliases=options.alias,
        attributes=attributes,
        id=options.id,
        is_new_type=options.new_type,
    )
    return _said(desk, events[:1])


def json_object(text: str) -> dict[str, object]:
    """
    Raises:
        InvalidInput: It is no JSON object.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"--attributes is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidInput(f'--attributes is an object, such as {{"level": 9}}, not {text!r}')
    return value


def attributes_of(free: Sequence[str]) -> dict[str, object]:
    """Attributes out of unknown options.

    >>> attributes_of(["--personality", "paranoid wizard", "--level=9"])
    {'personality': 'paranoid wizard', 'level': 9}

    Raises:
        InvalidInput: A value is missing, or stands alone.
    """
    found: dict[str, object] = {}
    waiting = list(free)
    while waiting:
        option = waiting.pop(0)
        name, equals, value = option.removeprefix("--").partition("=")
        if not option.startswith("--") or not name:
            raise InvalidInput(f"{option!r} belongs to no option; an attribute is written --name VALUE")
        if not equals:
            if not waiting or waiting[0].startswith("--"):
                raise InvalidInput(f"{option} has no value; an attribute is written --name VALUE")
            value = waiting.pop(0)
        found[name.replace("-", "_")] = json_or_text(value)
    return found


@VERB.action("all entities, or those of a type", argument("type", nargs="?", metavar="TYPE"))
async def _list(desk: Desk, options: argparse.Namespace) -> int:
    seen = [each for each in desk.seen if options.type in (None, each.entity.type)]
    if not seen:
        types = ", ".join(sorted({each.entity.type for each in desk.seen})) or "none"
        print(f"no entities of type {options.type}; types here: {types}" if options.type else "no entities")
        return 0
    table = a_table("type", "name", "also called", "id", "known to")
    for each in seen:
        entity = each.entity
        known_to = "" if each.visibility.scope == "public" else visibility_in_words(each.visibility, desk.resolver)
        aliases = ", ".join(entity.aliases)
        table.add_row(entity.type, entity.name, aliases, entity.id, known_to)
    show(table)
    return 0


@VERB.action("an entity with all that is known of it", _NAME)
async def _show(desk: Desk, options: argparse.Namespace) -> int:
    entity = desk.resolver.entity(options.entity)
    [seen] = [each for each in desk.seen if each.entity.id == entity.id]
    print(f"{entity.name} ({entity.type}, id {entity.id})")
    if entity.aliases:
        print(f"  also called: {', '.join(entity.aliases)}")
    print(f"  known to: {visibility_in_words(seen.visibility, desk.resolver)}")
    facts = await desk.inspection.current(desk.campaign, DM, about=entity.id, limit=MOST_FACTS)
    shown.listing(facts, desk.resolver, limit=MOST_FACTS, nothing="nothing is known of it")
    return 0


@VERB.action("an entity and all that is known of it", _NAME, YES)
async def _remove(desk: Desk, options: argparse.Namespace) -> int:
    entity = desk.resolver.entity(options.entity)
    facts = await desk.entities.ends_with(entity.id)
    told = "; ".join(desk.facts.words(fact) for fact in facts[:_MOST_TOLD])
    more = f"; {len(facts) - _MOST_TOLD} more" if len(facts) > _MOST_TOLD else ""
    with_it = f" and with it {told}{more}" if facts else ""
    if not await goes_on(f"This removes {entity.name}{with_it}.", is_sure=options.yes):
        print("nothing was changed")
        return 1
    return _said(desk, await desk.entities.remove(entity.id))


@VERB.action(
    "another name or type; the old name is kept as an alias",
    _NAME,
    argument("--name", dest="new_name", metavar="NEW"),
    argument("--type", dest="new_type", metavar="TYPE"),
)
async def _change(desk: Desk, options: argparse.Namespace) -> int:
    entity = desk.resolver.entity(options.entity)
    changed, *more = await desk.entities.change(entity.id, name=options.new_name, type=options.new_type)
    _said(desk, [changed])
    return _said(desk, more, resolver=desk.resolver.with_names({entity.id: options.new_name or entity.name}))


@VERB.action("GONE was KEPT all along", _KEPT, argument("gone", metavar="GONE"))
async def _merge(desk: Desk, options: argparse.Namespace) -> int:
    return _said(desk, await desk.entities.merge(options.entity, options.gone))


@VERB.action("undo the merge by which NAME was gone", _NAME)
async def _split(desk: Desk, options: argparse.Namespace) -> int:
    merge = await desk.entities.split(options.entity)
    gone = merge.event.gone if isinstance(merge.event, EntitiesMerged) else EntityId("")
    resolver = desk.resolver.with_names({gone: options.entity})  # which is known here by no other name
    print(f"undone: {merge.event.in_words(Words(resolver))}")
    return 0


@VERB.action("NAME is also called ALIAS", _NAME, _ALIAS)
async def _alias(desk: Desk, options: argparse.Namespace) -> int:
    return _said(desk, await desk.entities.add_alias(options.entity, options.alias))


@VERB.action("NAME is not called ALIAS", _NAME, _ALIAS)
async def _unalias(desk: Desk, options: argparse.Namespace) -> int:
    return _said(desk, await desk.entities.remove_alias(options.entity, options.alias))


@VERB.action(
    "only these NPCs know that there is such a thing",
    _NAME,
    argument("--known-by", nargs="+", required=True, metavar="NPC"),
)
async def _secret(desk: Desk, options: argparse.Namespace) -> int:
    return _said(desk, await desk.entities.keep_secret(options.entity, options.known_by))


@VERB.action("nobody knows of it until you reveal it", _NAME)
async def _hide(desk: Desk, options: argparse.Namespace) -> int:
    return _said(desk, await desk.entities.hide(options.entity))


@VERB.action("everybody may know of it", _NAME)
async def _reveal(desk: Desk, options: argparse.Namespace) -> int:
    return _said(desk, await desk.entities.reveal(options.entity))


def _said(desk: Desk, events: Sequence[WorldEvent], *, resolver: NameResolver | None = None) -> int:
    for recorded in events:
        print(recorded.event.in_words(Words(resolver or desk.resolver)))
    return 0
