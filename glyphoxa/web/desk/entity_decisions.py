"""What the game master may change of an entity in one form, and what is said of it afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.dm.resolver import NameResolver
from glyphoxa.dm.stating import json_or_text
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import EntityId
from glyphoxa.world.api import EntityAdded, Words, WorldEvent

Form = Mapping[str, str]
EVERYBODY: Final = ""
NOBODY: Final = "-"
"""In a form's `known_to`, which else names an NPC."""
GONE_AFTER: Final = frozenset({"remove"})
"""After which the entity has no page any more."""


async def add_entity(desk: Desk, form: Form) -> tuple[EntityId, str]:
    """A new entity of `name` and `type`.

    Returns: Its id, and what was done, in a line.

    Raises:
        InvalidInput: There is one of that name, or the type is unknown and `new_type` is not set.
    """
    events = await desk.entities.add(form.get("name", ""), form.get("type", ""), is_new_type=bool(form.get("new_type")))
    added = events[0].event
    if not isinstance(added, EntityAdded):
        raise TypeError(f"adding an entity begins with {EntityAdded.__name__}, not {added!r}")
    return added.entity, f"added: {added.name}"


async def change_entity(desk: Desk, entity: EntityId, form: Form) -> str:
    """
    Args:
        entity: One of the campaign's.
        form: `do`, and what that needs.

    Returns: What was done, in a line.

    Raises:
        NotFound: There is no such entity any more, or none of a name in the form.
        InvalidInput: It cannot be changed so.
    """
    what = form.get("do", "")
    if what not in _DO:
        raise InvalidInput(f"an entity cannot be changed by {what!r}: {did_you_mean(what, list(_DO))}")
    return await _DO[what](desk, entity, form)


async def _change(desk: Desk, entity: EntityId, form: Form) -> str:
    old = desk.resolver.entity(entity)
    name, of_type = form.get("name", "").strip() or None, form.get("type") or None
    changed = await desk.entities.change(
        entity, name=None if name == old.name else name, type=None if of_type == old.type else of_type
    )
    return _told(desk.resolver, changed[:1])


async def _alias(desk: Desk, entity: EntityId, form: Form) -> str:
    return _told(desk.resolver, await desk.entities.add_alias(entity, form.get("alias", "")))


async def _unalias(desk: Desk, entity: EntityId, form: Form) -> str:
    return _told(desk.resolver, await desk.entities.remove_alias(entity, form.get("alias", "")))


async def _scope(desk: Desk, entity: EntityId, form: Form) -> str:
    match form.get("known_to", EVERYBODY):
        case "":
            made = await desk.entities.reveal(entity)
        case "-":
            made = await desk.entities.hide(entity)
        case npc:
            made = await desk.entities.keep_secret(entity, [npc])
    return _told(desk.resolver, made)


async def _merge(desk: Desk, entity: EntityId, form: Form) -> str:
    return _told(desk.resolver, await desk.entities.merge(entity, form.get("gone", "")))


async def _remove(desk: Desk, entity: EntityId, _: Form) -> str:
    return _told(desk.resolver, await desk.entities.remove(entity))


async def _state(desk: Desk, entity: EntityId, form: Form) -> str:
    known_to = form.get("known_to", EVERYBODY)
    value = form.get("value", "").strip()
    made = await desk.facts.add(
        entity,
        form.get("predicate", ""),
        object=form.get("object", "").strip() or None,
        value=json_or_text(value) if value else None,
        known_by=() if known_to in (EVERYBODY, NOBODY) else [known_to],
        is_hidden=known_to == NOBODY,
    )
    return "; ".join(f"{desk.facts.words(fact)}: {fact.status}" for fact in made.facts) or "it was known already"


_DO: Final[Mapping[str, Callable[[Desk, EntityId, Form], Awaitable[str]]]] = {
    "change": _change,
    "alias": _alias,
    "unalias": _unalias,
    "scope": _scope,
    "merge": _merge,
    "remove": _remove,
    "state": _state,
}


def _told(resolver: NameResolver, events: Sequence[WorldEvent]) -> str:
    return "; ".join(each.event.in_words(Words(resolver)) for each in events)
