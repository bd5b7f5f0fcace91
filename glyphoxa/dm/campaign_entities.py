"""How the entities and rules of a campaign file differ from those it had before, and what that does to the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from glyphoxa.dm.campaign_claims import visibility_of
from glyphoxa.dm.campaign_facts import Findings
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import PUBLIC, Origin, Visibility
from glyphoxa.world.api import (
    DEFAULT_RULES,
    AliasAdded,
    AliasRemoved,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    SlotDeclared,
    WorldState,
)

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
