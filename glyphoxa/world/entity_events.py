"""Events of entities (added, changed, scoped, removed, merged), and of slot rules."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glyphoxa.domain.campaign import SlotRule
from glyphoxa.domain.ids import EntityId, FactId
from glyphoxa.domain.knowledge import PUBLIC, Fact, Origin, Visibility
from glyphoxa.language.facts import Names, visibility_in_words
from glyphoxa.language.relations import in_words
from glyphoxa.world.fact_status import Change, no_entity, stated_again
from glyphoxa.world.state import WorldEntity, WorldState


@dataclass(frozen=True, slots=True)
class EntityAdded:
    """Adds an entity; does nothing if it exists."""

    entity: EntityId
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    visibility: Visibility = PUBLIC
    origin: Origin = "dm"

    def failed_precondition(self, state: WorldState) -> str | None:
        return None

    def effect(self, change: Change) -> None:
        if change.state.entity(self.entity) is None:
            change.state.put_entity(
                WorldEntity(self.entity, self.type, self.name, self.aliases, self.visibility, self.origin)
            )

    def in_words(self, names: Names) -> str:
        return f"added {self.name} ({self.type}, id {self.entity})"


class _OneEntity:
    """Base of events that change or remove one existing entity."""

    __slots__ = ()
    entity: EntityId

    def failed_precondition(self, state: WorldState) -> str | None:
        return no_entity(state, self.entity)

    def effect(self, change: Change) -> None:
        if (entity := change.state.entity(self.entity)) is not None:
            change.state.put_entity(self._changed(entity))

    def _changed(self, entity: WorldEntity) -> WorldEntity:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class EntityChanged(_OneEntity):
    """Changes fields of an entity; None leaves a field unchanged."""

    entity: EntityId
    type: str | None = None
    name: str | None = None
    aliases: tuple[str, ...] | None = None

    def _changed(self, entity: WorldEntity) -> WorldEntity:
        return replace(
            entity,
            type=entity.type if self.type is None else self.type,
            name=entity.name if self.name is None else self.name,
            aliases=entity.aliases if self.aliases is None else self.aliases,
        )

    def in_words(self, names: Names) -> str:
        parts = [f"name {self.name}" * (self.name is not None), f"type {self.type}" * (self.type is not None)]
        parts.append("" if self.aliases is None else f"aliases {', '.join(self.aliases) or 'none'}")
        return f"changed {names.called(self.entity)}: {', '.join(part for part in parts if part)}"


@dataclass(frozen=True, slots=True)
class AliasAdded(_OneEntity):
    entity: EntityId
    alias: str

    def _changed(self, entity: WorldEntity) -> WorldEntity:
        return replace(entity, aliases=tuple(dict.fromkeys((*entity.aliases, self.alias))))

    def in_words(self, names: Names) -> str:
        return f"{names.called(self.entity)} is also called {self.alias}"


@dataclass(frozen=True, slots=True)
class AliasRemoved(_OneEntity):
    entity: EntityId
    alias: str

    def _changed(self, entity: WorldEntity) -> WorldEntity:
        return replace(entity, aliases=tuple(known for known in entity.aliases if known != self.alias))

    def in_words(self, names: Names) -> str:
        return f"{names.called(self.entity)} is not called {self.alias}"


@dataclass(frozen=True, slots=True)
class EntityScoped(_OneEntity):
    """Sets who may know that the entity exists."""

    entity: EntityId
    visibility: Visibility

    def _changed(self, entity: WorldEntity) -> WorldEntity:
        return replace(entity, visibility=self.visibility)

    def in_words(self, names: Names) -> str:
        return f"{names.called(self.entity)} is {visibility_in_words(self.visibility, names)}"


@dataclass(frozen=True, slots=True)
class EntityRemoved(_OneEntity):
    """Removes an entity; its facts end with it."""

    entity: EntityId

    def effect(self, change: Change) -> None:
        entity = change.state.entity(self.entity)
        if entity is None:
            return
        concerned: list[FactId] = []
        for fact in change.state.touching(entity.id):
            concerned += change.status.end(fact, "entity_removed")
        change.state.drop_entity(entity.id)
        change.status.settle(concerned)

    def in_words(self, names: Names) -> str:
        return f"removed {names.called(self.entity)}"


@dataclass(frozen=True, slots=True)
class EntitiesMerged:
    """`gone` turned out to be the same entity as `kept`. Undoing the event splits them again."""

    kept: EntityId
    gone: EntityId

    def failed_precondition(self, state: WorldState) -> str | None:
        if (problem := no_entity(state, self.kept) or no_entity(state, self.gone)) is not None:
            return problem
        is_one = state.resolve(self.gone) == state.resolve(self.kept)
        return f"{self.gone!r} and {self.kept!r} are already merged" if is_one else None

    def effect(self, change: Change) -> None:
        state = change.state
        kept, gone = state.entity(self.kept), state.entity(self.gone)
        if kept is None or gone is None or kept.id == gone.id:
            return
        # A guarded name must not become an alias that everybody hears.
        if gone.visibility.scope == "public" or gone.visibility == kept.visibility:
            names = dict.fromkeys((*kept.aliases, gone.name, *gone.aliases))
            state.put_entity(replace(kept, aliases=tuple(n for n in names if n.casefold() != kept.name.casefold())))
        touching = state.touching(gone.id)
        state.put_merge(gone.id, kept.id)
        state.drop_entity(gone.id)
        concerned: list[FactId] = []
        for fact in touching:
            concerned += _moved(change, fact, guarded=gone.visibility)
        # If the merged entities are in two places, the DM decides.
        change.status.settle(concerned, may_supersede=False)

    def in_words(self, names: Names) -> str:
        return f"merged {names.called(self.gone)} into {names.called(self.kept)}"


def _moved(change: Change, fact: Fact, *, guarded: Visibility) -> list[FactId]:
    """Move a fact from the merged entity to the kept one, no more visible than before."""
    state, status = change.state, change.status
    claim = change.claim_of_kept(fact.claim)
    if claim is None:
        return status.end(fact, "merged")
    known = fact.with_(visibility=fact.visibility.within(guarded))
    held = state.of_claim(claim)
    if held is None:
        state.put_fact(known.with_(claim=claim, status="pending", disputes=()))
        return [fact.id, *status.dependents(fact.id)]
    state.put_fact(stated_again(held, known).with_(mentions=held.mentions + fact.mentions))
    for resting in state.resting_on(fact.id):
        supports = dict.fromkeys(held.id if support == fact.id else support for support in resting.supports)
        state.put_fact(resting.with_(supports=tuple(supports)))
    return [held.id, *status.dependents(held.id), *status.end(fact, "merged", by=held.id)]


# A campaign's own rules for its predicates.


@dataclass(frozen=True, slots=True)
class SlotDeclared:
    """Declares this campaign's own rule for a predicate."""

    predicate: str
    rule: SlotRule

    def failed_precondition(self, state: WorldState) -> str | None:
        return None

    def effect(self, change: Change) -> None:
        change.state.put_rule(self.predicate, self.rule)

    def in_words(self, names: Names) -> str:
        return f"declared: {in_words(self.predicate)!r} is {self.rule.replace('_', ' ')}"
