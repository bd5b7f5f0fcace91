"""What loading a campaign file does to the world: only what differs from the file as it was loaded before.

So what the DM decided in the meantime (a merge, an edit, a secret, something removed) survives a reload, and loading
the same file again does nothing. Where a change of the file meets such a decision, the decision stands and is pointed
out, unless the file changed that very thing.

What leaves a file is retconned, not closed: who takes a line out of his notes says that it never was so, not that it
ended today. A value that was changed there replaces the old one for as long as that was held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final

from glyphoxa.dm.campaign_facts import FactComparison, Findings, Loading, claims_of, visibility_of
from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS, Campaign, Entity, Relationship
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import PUBLIC, Origin, Visibility
from glyphoxa.world.entity_events import (
    AliasAdded,
    AliasRemoved,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    SlotDeclared,
)
from glyphoxa.world.events import Cause, Event, WorldEvent, apply
from glyphoxa.world.fact_events import FactRejected, FactReplaced, FactScoped
from glyphoxa.world.state import DEFAULT_RULES, WorldState

# How the entities and rules of a campaign file differ from those it had before, and what that does to the world.


_MOST_COMPARED: Final = 50


@dataclass(frozen=True, slots=True)
class EntityComparison:
    """
    Args:
        found: Is told what is found, and what everything is called.
    """

    previous: Campaign
    new: Campaign
    world: WorldState
    origin: Origin
    found: Findings

    def run(self) -> None:
        names = self.found.names
        names.update((entity.id, entity.name) for entity in self.previous.entities)
        names.update((entity.id, entity.name) for entity in self.world.entities.values())
        names.update((entity.id, entity.name) for entity in self.new.entities)
        self._slots()
        self._entities()

    def _slots(self) -> None:
        before, now, held = self.previous.slots, self.new.slots, self.world.own_rules()
        for predicate, rule in now.items():
            if before.get(predicate) != rule and held.get(predicate) != rule:
                self.found.made.append(SlotDeclared(predicate, rule))
                (self.found.changed if predicate in before else self.found.added).append(f"the rule of {predicate}")
        related = {relation.type for relation in (*self.previous.relationships, *self.new.relationships)}
        for predicate in before.keys() - now.keys():
            default = DEFAULT_RULES.get(predicate, "many" if predicate in related else "one")
            if held.get(predicate, default) != default:
                self.found.made.append(SlotDeclared(predicate, default))
            self.found.removed.append(f"the rule of {predicate}")

    def _entities(self) -> None:
        named = {entity.name.casefold(): entity.id for entity in self.world.entities.values()}
        before = {entity.id: entity for entity in self.previous.entities}
        for entity in self.new.entities:
            if entity.id in before:
                self._entity_changed(before[entity.id], entity)
            else:
                self._entity_added(entity, namesake=named.get(entity.name.casefold()))
        listed = {entity.id for entity in self.new.entities}
        standing_for = {self.world.resolve(entity.id): entity.name for entity in self.new.entities}
        for entity in self.previous.entities:
            if entity.id not in listed:
                self._entity_left(entity, stands_for=standing_for.get(entity.id))
        self._renamed(before)

    def _entity_added(self, entity: Entity, *, namesake: EntityId | None) -> None:
        held = self.world.entity(entity.id)
        visibility = _visibility(entity)
        if held is None:
            if namesake is not None:
                self.found.remark(
                    f"{entity.name}: there is another of that name already ({namesake}); merge them if they are one"
                )
            self.found.fresh.add(entity.id)
            self.found.made.append(
                EntityAdded(entity.id, entity.type, entity.name, entity.aliases, visibility, self.origin)
            )
            self.found.added.append(f"{entity.name} ({entity.type})")
        elif held.id != entity.id:
            self.found.remark(
                f"{entity.name}: is one with {held.name}, so that what the file says of it is said of that one"
            )
        else:
            as_held = Entity(held.id, held.type, held.name, held.aliases)
            additions = replace(entity, aliases=tuple(dict.fromkeys((*held.aliases, *entity.aliases))))
            self._describe(as_held, additions)
            if visibility not in (PUBLIC, held.visibility):
                self._scope_entity(entity, visibility)

    def _entity_changed(self, before: Entity, entity: Entity) -> None:
        if _face(before) == _face(entity):
            return
        held = self.world.entity(entity.id)
        if held is None:
            self.found.left_out(entity.id)
        elif held.id != entity.id:
            self.found.remark(f"{entity.name}: is one with {held.name}; its new name, type or aliases are left out")
        else:
            for what, was, by_hand in (("name", before.name, held.name), ("type", before.type, held.type)):
                if by_hand != was and by_hand != getattr(entity, what) != was:
                    self.found.remark(
                        f"{entity.name}: its {what} is what the file says now, no longer your {by_hand!r}"
                    )
            self._describe(before, entity)
            visibility = _visibility(entity)
            if visibility != _visibility(before) and visibility != held.visibility:
                self._scope_entity(entity, visibility)

    def _describe(self, before: Entity, entity: Entity) -> None:
        held = self.world.entities[entity.id]
        name = entity.name if entity.name not in (before.name, held.name) else None
        kind = entity.type if entity.type not in (before.type, held.type) else None
        what = [word for word, new in (("name", name), ("type", kind)) if new is not None]
        if what:
            self.found.made.append(EntityChanged(entity.id, kind, name))
        for alias in entity.aliases:
            if alias not in before.aliases and alias not in held.aliases:
                self.found.made.append(AliasAdded(entity.id, alias))
                what.append("aliases")
        for alias in before.aliases:
            if alias not in entity.aliases and alias in held.aliases:
                self.found.made.append(AliasRemoved(entity.id, alias))
                what.append("aliases")
        if what:
            was = f" (was {held.name})" if name is not None else ""
            self.found.changed.append(f"{entity.name}{was}: {', '.join(dict.fromkeys(what))}")

    def _scope_entity(self, entity: Entity, visibility: Visibility) -> None:
        self.found.made.append(EntityScoped(entity.id, visibility))
        self.found.changed.append(f"{entity.name}: who may know of it")

    def _entity_left(self, entity: Entity, *, stands_for: str | None) -> None:
        held = self.world.entity(entity.id)
        if held is None:
            return
        if held.id != entity.id:
            self.found.remark(f"{entity.name}: left the file, and is one with {held.name}, who stays")
            return
        if stands_for is not None:
            self.found.remark(f"{entity.name}: left the file, and stays: {stands_for} is one with it")
            return
        self.found.gone.add(entity.id)
        self.found.made.append(EntityRemoved(entity.id))
        self.found.removed.append(f"{held.name} ({held.type})")

    def _renamed(self, before: Mapping[EntityId, Entity]) -> None:
        """Something that leaves while something like it comes may have been renamed, and would lose its past."""
        if not 0 < len(self.found.gone) <= _MOST_COMPARED >= len(self.found.fresh):
            return
        for entity in self.new.entities:
            if entity.id not in self.found.fresh:
                continue
            alike = {before[gone].name: gone for gone in self.found.gone if before[gone].type == entity.type}
            for name in get_close_matches(entity.name, alike, 1):
                self.found.remark(
                    f"{entity.name}: if this is {name} renamed, give it `id: {alike[name]}` in the file; "
                    f"otherwise what is known of {name} goes with that name"
                )


def _visibility(entity: Entity) -> Visibility:
    return visibility_of(entity.known_by, hidden=entity.hidden)


def _face(entity: Entity) -> tuple[object, ...]:
    """All but its attributes, which are facts."""
    return entity.name, entity.type, entity.aliases, _visibility(entity)


_LATER: Final = 2**62
"""The number of an event that is tried and never kept."""


@dataclass(frozen=True, slots=True)
class CampaignChanges:
    """
    Attributes:
        events: To be committed, in this order.
        added: What is new, in words for the DM; `changed` and `removed` likewise.
        remarks: Where a decision of the DM stands, or gives way, or waits for another.
        discreet_remarks: The same without what the facts say, for a log.
    """

    events: tuple[Event, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    discreet_remarks: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Neither the world nor what the campaign is otherwise (its NPCs, its scenes) changes."""
        return not (self.events or self.added or self.changed or self.removed)


def changes(previous: Campaign | None, new: Campaign, world: WorldState, loading: Loading) -> CampaignChanges:
    """
    Args:
        previous: The campaign as it was loaded before; None if it never was.
        world: As it is now, with all its entities and current facts; the past may be missing from it.

    Raises:
        InvalidInput: The campaign says what cannot be said: see `claims_of`.
    """
    nothing = replace(new, entities=(), relationships=(), npcs=(), players=(), scenes=(), secrets=(), slots={})
    before = nothing if previous is None else previous
    found = Findings()
    EntityComparison(before, new, world, loading.origin, found).run()
    FactComparison(
        before=claims_of(before, world.resolve, loading),
        now=claims_of(new, world.resolve, loading),
        rules=new.slots,
        world=world,
        found=found,
    ).run()
    _compare_people(before, new, found)
    return CampaignChanges(
        tuple(_possible(found.made, world)),
        tuple(found.added),
        tuple(found.changed),
        tuple(found.removed),
        tuple(found.remarks),
        tuple(found.remarks.values()),
    )


def _possible(events: Sequence[Event], world: WorldState) -> list[Event]:
    """Without those that an earlier one has left without the fact that they are about."""
    if not any(isinstance(event, FactRejected | FactReplaced | FactScoped) for event in events):
        return list(events)
    possible: list[Event] = []
    savepoint = world.savepoint()
    for event in events:
        if event.failed_precondition(world) is None:
            possible.append(event)
            apply(world, WorldEvent(_LATER, Cause("campaign_file", 0), event))
    world.roll_back_to(savepoint)
    return possible


def _compare_people(was: Campaign, now: Campaign, found: Findings) -> None:
    """What is not in the world, but of the table: only told."""
    for what in ("name", "language", "time_zone", "calendar", "story_day", "bible", "glossary"):
        if getattr(was, what) != getattr(now, what):
            found.changed.append(f"the campaign's {what.replace('_', ' ')}")
    # What players call an NPC is its entity's.
    _tell(
        "NPC",
        {n.name: replace(n, aliases=()) for n in was.npcs},
        {n.name: replace(n, aliases=()) for n in now.npcs},
        found,
    )
    _tell("player", {p.name: p for p in was.players}, {p.name: p for p in now.players}, found)
    _tell("scene", {s.id: s for s in was.scenes}, {s.id: s for s in now.scenes}, found)


def _tell(what: str, before: Mapping[Any, object], now: Mapping[Any, object], found: Findings) -> None:
    found.added += [f"{what} {name}" for name in now if name not in before]
    found.removed += [f"{what} {name}" for name in before if name not in now]
    found.changed += [f"{what} {name}" for name in now if name in before and before[name] != now[name]]


# What was read from tables (CSV) beside a campaign file, and the campaign that both make together.
#
# The campaign file is read again whenever a table opens, and leaves what came from tables alone; where both say
# something of the same thing, the campaign file's word stands.


@dataclass(frozen=True, slots=True)
class Tables:
    """
    Attributes:
        relationships: Between entities of these tables, of the campaign file, or of the world.
    """

    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()

    def with_(self, more: Tables) -> Tables:
        """These and more: a later word on the same thing counts, and nothing goes."""
        return Tables(
            _joined((*more.entities, *self.entities), self.entities),
            _edges((*more.relationships, *self.relationships), self.relationships),
        )


def with_tables(campaign: Campaign, tables: Tables) -> Campaign:
    """The campaign of a file together with what came from tables."""
    return replace(
        campaign,
        entities=_joined((*campaign.entities, *tables.entities), campaign.entities),
        relationships=_edges((*campaign.relationships, *tables.relationships), campaign.relationships),
    )


def _joined(entities: Iterable[Entity], order: Iterable[Entity]) -> tuple[Entity, ...]:
    """One an id: of what is said several times, the first word counts.

    Args:
        order: Those that come first.
    """
    found: dict[str, Entity | None] = {entity.id: None for entity in order}
    for entity in entities:
        first = found.get(entity.id)
        found[entity.id] = entity if first is None else _both(first, entity)
    return tuple(entity for entity in found.values() if entity is not None)


def _both(first: Entity, other: Entity) -> Entity:
    aliases: dict[str, str] = {}
    for alias in (*first.aliases, *other.aliases):
        aliases.setdefault(alias.casefold(), alias)
    return replace(
        first,
        aliases=tuple(aliases.values()),
        attributes={**other.attributes, **first.attributes},
        # Whoever guards it is heeded.
        known_by=first.known_by or other.known_by,
        hidden=first.hidden or other.hidden,
    )


def _edges(relationships: Iterable[Relationship], order: Iterable[Relationship]) -> tuple[Relationship, ...]:
    found: dict[tuple[str, ...], Relationship | None] = {_key(relation): None for relation in order}
    for relation in relationships:
        first = found.get(_key(relation))
        if first is None:
            found[_key(relation)] = relation
        else:
            found[_key(relation)] = replace(
                first,
                attributes={**relation.attributes, **first.attributes},
                known_by=first.known_by or relation.known_by,
                hidden=first.hidden or relation.hidden,
            )
    return tuple(relation for relation in found.values() if relation is not None)


def _key(relation: Relationship) -> tuple[str, ...]:
    ends = (relation.source, relation.target)
    if relation.type in BIDIRECTIONAL_RELATIONS:
        ends = (min(ends), max(ends))
    return (*ends, relation.type)
