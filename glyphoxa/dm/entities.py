"""What a DM does with entities. Each decision is an event of the campaign's world, and can be undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.dm.campaign_claims import OFFERED
from glyphoxa.dm.history import all_events
from glyphoxa.dm.ports import Review
from glyphoxa.dm.resolver import NameResolver
from glyphoxa.dm.stating import attribute_claim, secret_among
from glyphoxa.domain.campaign import ENTITY_TYPES
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, EntityId, slug
from glyphoxa.domain.knowledge import DM, PUBLIC, Claim, Fact, Provenance, Visibility
from glyphoxa.speech.language.words import fold
from glyphoxa.world.api import (
    AliasAdded,
    AliasRemoved,
    Cause,
    EntitiesMerged,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    Event,
    FactStated,
    World,
    WorldEvent,
    dropped,
    rule_of,
)

MOST_FACTS: Final = 10_000
"""No entity has more, as far as the DM is shown them."""
_OFFERED_CONFIDENCE: Final = 0.6  # too little to be accepted without the DM


@dataclass(frozen=True, slots=True)
class EntityDesk:
    """Entities of one campaign, named as `NameResolver.entity` takes them. Every call may raise what that raises
    and, when the database is away, `Unavailable`.

    Args:
        resolver: As it is before the call; a decision does not change it.
        now_ms: Milliseconds since the Unix epoch.
    """

    campaign: CampaignId
    world: World
    review: Review
    resolver: NameResolver
    now_ms: Callable[[], int]

    async def add(  # noqa: PLR0913 - each is a word of the command
        self,
        name: str,
        type: str,  # noqa: A002 - the entity's word
        *,
        aliases: Sequence[str] = (),
        attributes: Mapping[str, object] | None = None,
        id: str | None = None,  # noqa: A002 - the entity's word
        is_new_type: bool = False,
    ) -> list[WorldEvent]:
        """A new entity with what is known of it. An attribute `location` that names an entity offers a
        LOCATED_AT for review.

        Args:
            id: None: made of the name.
            is_new_type: `type` is none of those that the campaign has so far.

        Raises:
            InvalidInput: There is one of that name or id, the name cannot be one, the type is unknown, or JSON cannot
                hold an attribute.
        """
        called = _name(name)
        made = EntityId(id or slug(called))
        if not made:
            raise InvalidInput(f"{called!r} holds no letter or digit to make an id of; give one")
        if made in self.resolver.entities:
            other = self.resolver.entities[made]
            raise InvalidInput(f"{made!r} is the id of {other.name} ({other.type}): give this one another")
        if id is None and (other_name := self._called(called)) is not None:
            raise InvalidInput(f"{other_name} is called {called!r}; if this is another one, give it an id of its own")
        at_ms = self.now_ms()
        provenance = Provenance(1.0, "stated", dm_confirmed=True, origin="dm", at_ms=at_ms)
        kind = self._type(type, is_new=is_new_type)
        events: list[Event] = [EntityAdded(made, kind, called, tuple(map(_name, aliases)))]
        for attribute, value in (attributes or {}).items():
            events += [FactStated(claim, provenance) for claim in _claims(made, attribute, value)]
        place = self._named((attributes or {}).get("location"))
        if place is not None:
            wait = replace(provenance, confidence=_OFFERED_CONFIDENCE, source="inferred", dm_confirmed=False)
            located = Claim.relation(made, "LOCATED_AT", place)
            events.append(FactStated(located, replace(wait, reason=OFFERED)))
        return await self._commit(*events)

    async def change(self, entity: str, *, name: str | None = None, type: str | None = None) -> list[WorldEvent]:  # noqa: A002
        """Another name or type. The old name is kept as an alias: it was said.

        Raises:
            InvalidInput: Nothing is to change, another entity has that name, or the type is unknown.
        """
        found = self.resolver.entity(entity)
        new = None if name is None else _name(name)
        if new is None and type is None:
            raise InvalidInput("say what is to change: a name or a type")
        if new is not None and any(
            fold(new) == fold(each.name) for each in self.resolver.entities.values() if each.id != found.id
        ):
            raise InvalidInput(f"there is another entity {new!r}: merge the two, or choose another name")
        events: list[Event] = [EntityChanged(found.id, None if type is None else self._type(type), new)]
        if new is not None and fold(new) != fold(found.name):
            events.append(AliasAdded(found.id, found.name))
            events += [AliasRemoved(found.id, alias) for alias in found.aliases if fold(alias) == fold(new)]
        return await self._commit(*events)

    async def ends_with(self, entity: str) -> list[Fact]:
        """The facts that would end if it were removed."""
        found = self.resolver.entity(entity)
        return await self.review.current(self.campaign, DM, about=found.id, limit=MOST_FACTS)

    async def remove(self, entity: str) -> list[WorldEvent]:
        """With all that is known of it."""
        return await self._commit(EntityRemoved(self.resolver.entity(entity).id))

    async def add_alias(self, entity: str, alias: str) -> list[WorldEvent]:
        """
        Raises:
            InvalidInput: It is called so already, or another entity is.
        """
        found, new = self.resolver.entity(entity), _name(alias)
        if (other := self._called(new)) is not None:
            raise InvalidInput(f"{other} is called {new!r} already")
        return await self._commit(AliasAdded(found.id, new))

    async def remove_alias(self, entity: str, alias: str) -> list[WorldEvent]:
        """
        Raises:
            NotFound: It has no such alias.
        """
        found = self.resolver.entity(entity)
        for known in found.aliases:
            if fold(known) == fold(alias):
                return await self._commit(AliasRemoved(found.id, known))
        raise NotFound(f"{found.name} has no alias {alias!r}: {did_you_mean(alias, found.aliases)}")

    async def keep_secret(self, entity: str, known_by: Sequence[str]) -> list[WorldEvent]:
        """Only these NPCs know that there is such a thing at all."""
        npcs = tuple(dict.fromkeys(self.resolver.npc(name) for name in known_by))
        if not npcs:
            raise InvalidInput("say which NPCs")
        visibility = secret_among(npcs, PUBLIC, now_ms=self.now_ms())
        return await self._commit(EntityScoped(self.resolver.entity(entity).id, visibility))

    async def hide(self, entity: str) -> list[WorldEvent]:
        """Nobody knows of it until it is revealed."""
        return await self._commit(EntityScoped(self.resolver.entity(entity).id, Visibility("hidden")))

    async def reveal(self, entity: str) -> list[WorldEvent]:
        """Everybody may know of it."""
        return await self._commit(EntityScoped(self.resolver.entity(entity).id, PUBLIC))

    async def merge(self, kept: str, gone: str) -> list[WorldEvent]:
        """`gone` was `kept` all along: what is known of it is known of that one, and its names become aliases.

        Raises:
            InvalidInput: They are the same, or an NPC of the campaign plays the one that would be gone.
        """
        staying, leaving = self.resolver.entity(kept), self.resolver.entity(gone)
        if staying.id == leaving.id:
            raise InvalidInput(f"{kept!r} and {gone!r} are the same entity: {staying.name}")
        if any(npc.entity_id == leaving.id for npc in self.resolver.npcs):
            raise InvalidInput(f"{leaving.name} is an NPC that is played: merge the other one into it instead")
        return await self._commit(EntitiesMerged(staying.id, leaving.id))

    async def split(self, name: str) -> WorldEvent:
        """Undo the merge by which the entity of this name was gone; with the name of one that was kept, its last.

        Returns:
            The merge that is undone.

        Raises:
            NotFound: No merge concerns it.
            InvalidInput: It may be several.
        """
        events = await all_events(self.world, self.campaign)
        without = dropped(events)
        merges = [
            (recorded, recorded.event)
            for recorded in events
            if isinstance(recorded.event, EntitiesMerged) and recorded.seq not in without
        ]
        meant = {EntityId(name), *_ever_called(name, events)}
        found = [event for event, merged in merges if merged.gone in meant]
        if len(found) > 1:
            several = ", ".join(str(event.seq) for event in found)
            raise InvalidInput(f"{name!r} was merged several times, by the events {several}: undo one of them")
        if not found:
            kept = self.resolver.entity(name)
            found = [event for event, merged in merges if merged.kept == kept.id][-1:]
            if not found:
                raise NotFound(f"nothing was merged into {kept.name}")
        await self.world.undo(self.campaign, found[0].seq, Cause("dm", self.now_ms()))
        return found[0]

    async def _commit(self, *events: Event) -> list[WorldEvent]:
        return await self.world.commit(self.campaign, events, Cause("dm", self.now_ms()))

    def _called(self, name: str) -> str | None:
        """The name of the first entity that goes by this name or alias."""
        wanted = fold(name)
        found = (e for e in self.resolver.entities.values() if wanted in map(fold, (e.name, *e.aliases)))
        return next((each.name for each in found), None)

    def _named(self, value: object) -> EntityId | None:
        """The entity whose name this is."""
        if not isinstance(value, str) or not fold(value):
            return None
        return next((each.id for each in self.resolver.entities.values() if fold(each.name) == fold(value)), None)

    def _type(self, wanted: str, *, is_new: bool = False) -> str:
        known = {*ENTITY_TYPES, *(each.type for each in self.resolver.entities.values())}
        called = " ".join(wanted.split())
        if not called or (called not in known and not is_new):
            raise InvalidInput(f"unknown entity type {wanted!r}: {did_you_mean(wanted, known)}")
        return called


def _ever_called(name: str, events: Sequence[WorldEvent]) -> set[EntityId]:
    wanted = fold(name)
    return {
        recorded.event.entity
        for recorded in events
        if isinstance(recorded.event, EntityAdded | EntityChanged)
        and wanted
        and recorded.event.name is not None
        and fold(recorded.event.name) == wanted
    }


def _claims(entity: EntityId, attribute: str, value: object) -> Sequence[Claim]:
    """A list is one value, except where several may hold at a time: then each of its items is one."""
    whole = attribute_claim(entity, attribute, value)
    if isinstance(value, list) and rule_of(whole, {}) == "many":
        return [Claim.attribute(entity, attribute, item) for item in value]
    return [whole]


def _name(name: str) -> str:
    called = " ".join(name.split())
    if not fold(called):
        raise InvalidInput(f"{name!r} holds no letter or digit: it is no name")
    return called
