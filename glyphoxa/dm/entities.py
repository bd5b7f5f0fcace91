"""The DM's commands for entities. Each decision is an event of the campaign's world and can be undone."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, Final

from pydantic import BaseModel

from glyphoxa.dm.actions import EntityName, Knowers, Option, Question, action, listed
from glyphoxa.dm.ports import Review
from glyphoxa.dm.timeline import all_events
from glyphoxa.domain.campaign import DEFAULT_SCHEMA, Campaign, Entity, Npc, Player, Schema
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.heard import SpokenBy
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId, PlayerId, SessionId, SpeakerId, plain_name, slug
from glyphoxa.domain.knowledge import DM, PUBLIC, Claim, Knower, Provenance, Validity, Visibility
from glyphoxa.language.facts import entity_in_words, fact_in_words
from glyphoxa.language.relations import IN_ENGLISH, RelationWords
from glyphoxa.language.words import fold
from glyphoxa.names.naming import (
    Called,
    Resolver,
    called_npc,
    called_player,
    entities_by_name,
    npcs_by_name,
    players_by_name,
)
from glyphoxa.world.event_kinds import (
    AliasAdded,
    AliasRemoved,
    EntitiesMerged,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    FactStated,
)
from glyphoxa.world.event_log import Cause, Event, WorldEvent, dropped
from glyphoxa.world.file_claims import attribute_claims, offered
from glyphoxa.world.graph import WorldHistory
from glyphoxa.world.state import rule_of

# Resolving the names that a DM uses.

DM_SPEAKER: Final = SpeakerId("dm")
"""The DM as a speaker."""


@dataclass(frozen=True)
class NameResolver:
    """Finds entities, NPCs and players by name. See `glyphoxa.names.naming`."""

    campaign: CampaignId
    entities: Mapping[EntityId, Entity]
    npcs: tuple[Npc, ...] = ()
    players: tuple[Player, ...] = ()
    relations: RelationWords = IN_ENGLISH
    sessions: Mapping[SessionId, int] = field(default_factory=dict)
    scopes: Mapping[EntityId, Visibility] = field(default_factory=dict)
    facts: Mapping[FactId, str] = field(default_factory=dict)
    """Texts of facts."""
    schema: Schema = DEFAULT_SCHEMA

    @classmethod
    def of(cls, campaign: Campaign, entities: Iterable[Entity], sessions: Iterable[SessionId] = ()) -> NameResolver:
        """
        Args:
            entities: Entities of the graph in the DM's view, including those not in the campaign file.
            sessions: All stored sessions, in the order in which they began.
        """
        by_id = {each.id: each for each in entities}
        numbers = {session: number for number, session in enumerate(sessions, start=1)}
        words = RelationWords.of(campaign)
        return cls(campaign.id, by_id, campaign.npcs, campaign.players, words, numbers, schema=campaign.schema)

    @property
    def types(self) -> list[str]:
        """Types that an entity may have: the usual ones, the campaign's own and those in use."""
        return sorted({*self.schema.entity_types, *(each.type for each in self.entities.values())})

    def with_names(self, names: Mapping[EntityId, str]) -> NameResolver:
        """Return a copy in which these entities have other names."""
        called = {
            each: replace(self.entities[each], name=name) if each in self.entities else Entity(each, "", name)
            for each, name in names.items()
        }
        return replace(self, entities={**self.entities, **called})

    def entity(self, name: str) -> Entity:
        """Return the entity with this id, name, alias or part of a name, in this order.

        Raises:
            NotFound: There is none.
            InvalidInput: It may be several.
        """
        return self.by_name.one(name)

    @cached_property
    def by_name(self) -> Resolver[Entity]:
        """The entities by what they are called."""
        return entities_by_name(self.entities.values(), self.campaign)

    def npc(self, name: str) -> NpcId:
        """Return the NPC with this id, name, alias or part of a name. Its entity's current names count too.

        Raises:
            NotFound: There is none. An entity that no NPC of the campaign plays knows nothing.
            InvalidInput: It may be several.
        """
        return npcs_by_name(self.npcs, self.entities, self.campaign).one(name).id

    def player(self, name: str) -> PlayerId:
        """Return the player with this id or name.

        Raises:
            NotFound: There is none.
        """
        return players_by_name(self.players, self.campaign).one(name).id

    def speaking_player(self, name: str) -> SpokenBy:
        """Return the player with this id or name as the speaker of a line. Raises: NotFound: There is none."""
        player = SpeakerId(self.player(name))
        return SpokenBy(player, self.person(player))

    def speaker(self, name: str) -> SpeakerId:
        """Return the NPC, player or "dm" with this name.

        Raises:
            NotFound: There is none.
            InvalidInput: It may be several.
        """
        npcs = (called_npc(npc, self.entities) for npc in self.npcs)
        speakers = [Called(DM_SPEAKER, (DM_SPEAKER,)), *map(called_player, self.players), *npcs]
        return SpeakerId(Resolver(speakers, lambda one: one, campaign=self.campaign, what="speaker").one(name).id)

    def called(self, entity: EntityId) -> str:
        """Return an entity's name; its id if it no longer exists."""
        known = self.entities.get(entity)
        return entity if known is None else known.name

    def fact(self, fact: FactId) -> str:
        """Return the text of a fact; its id if it has none."""
        return self.facts.get(fact, f"a fact ({fact})")

    def visibility_of(self, entity: EntityId) -> Visibility:
        """Return who may know of an entity: everybody if it no longer exists."""
        return self.scopes.get(entity, PUBLIC)

    def session(self, session: SessionId) -> str:
        """Return what a session is called, such as "session 2"; with its id if nothing of it is stored."""
        return f"session {self.sessions.get(session, session)}"

    def person(self, who: NpcId | SpeakerId) -> str:
        """Return the name of an NPC, a player or the DM; the id of anybody else."""
        if who == DM_SPEAKER:
            return "the DM"
        for npc in self.npcs:
            if npc.id == who:
                return npc.name
        return next((each.name for each in self.players if SpeakerId(each.id) == who), who)


MAX_FACTS: Final = 10_000
"""Maximum number of an entity's facts shown to the DM."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """The DM's decisions about a campaign's world: each is one commit.

    Args:
        resolver: The names before the call; a decision does not change them.
        now_ms: Milliseconds since the Unix epoch.
    """

    campaign: CampaignId
    world: WorldHistory
    review: Review
    resolver: NameResolver
    now_ms: Callable[[], int]

    async def _commit(self, *events: Event) -> list[WorldEvent]:
        return await self.world.commit(self.campaign, events, Cause("dm", self.now_ms()))

    def _npcs(self, names: Sequence[str]) -> tuple[NpcId, ...]:
        """Raises: InvalidInput: There are none."""
        if not names:
            raise InvalidInput("name the NPCs")
        return tuple(dict.fromkeys(self.resolver.npc(name) for name in names))


class NewEntity(BaseModel):
    """An entity to add.

    Attributes:
        new_type: Its type is new to the campaign.
        attributes: JSON, options, or both in this order.
    """

    name: Annotated[str, Option("what it is called", "NAME")]
    type: Annotated[
        str, Option("npc, player, location, item, faction, event, quest, concept ...", "TYPE", names="type")
    ]
    attributes: Annotated[
        str,
        Option(
            'such as --personality "paranoid wizard" --level 9, or JSON',
            "JSON",
            takes_rest="An option with any other name is an attribute: --personality 'paranoid wizard' --level 9",
        ),
    ] = ""
    alias: Annotated[Sequence[str], Option("other names; can be repeated", "ALIAS", is_repeated=True)] = ()
    id: Annotated[str, Option("default: made from the name", "ID")] = ""
    new_type: Annotated[bool, Option("TYPE is a new type of this campaign")] = False


Alias = Annotated[str, Option("another name that it is called by", "ALIAS")]
_action = partial(action, "entities")


class EntityDesk(Decisions):
    """The DM's decisions about entities, each named as in `NameResolver.entity`.

    Every call may raise what that raises, and `Unavailable` when the database is away.
    """

    __slots__ = ()

    @_action(
        "entity add",
        "register an entity, with attributes of any name: --personality gruff",
        form="add",
        discord="entity add",
    )
    async def add(self, new: NewEntity) -> list[WorldEvent]:
        """Add an entity with its attributes.

        An attribute `location` that names an entity offers a LOCATED_AT for review.

        Raises:
            InvalidInput: The name or id is taken or invalid, the type is unknown, or JSON cannot hold an attribute.
        """
        called, attributes = _name(new.name), attributes_in(new.attributes)
        made = EntityId(new.id or slug(called))
        if not made:
            raise InvalidInput(f"{called!r} has no letter or digit to make an id from; give an id")
        if made in self.resolver.entities:
            other = self.resolver.entities[made]
            raise InvalidInput(f"the id {made!r} is taken by {entity_in_words(other)}: give another id")
        if not new.id and (same := self.resolver.by_name.exact(called)) is not None:
            raise InvalidInput(
                f"{same.name} is already called {called!r}; if this is a different entity, give it its own id"
            )
        at_ms = self.now_ms()
        provenance = Provenance(1.0, "stated", dm_confirmed=True, origin="dm", at_ms=at_ms)
        kind = self._type(new.type, is_new=new.new_type)
        events: list[Event] = [EntityAdded(made, kind, called, tuple(map(_name, new.alias)))]
        for attribute, value in attributes.items():
            events += [FactStated(storable(claim), provenance) for claim in attribute_claims(made, attribute, value)]
        location = attributes.get("location")
        place = self.resolver.by_name.exact(location) if isinstance(location, str) else None
        if place is not None:
            events.append(FactStated(Claim.relation(made, "LOCATED_AT", place.id), offered(provenance)))
        return await self._commit(*events)

    @_action("entity change", "change an entity's name or type; the old name becomes an alias", form="change")
    async def change(
        self,
        entity: EntityName,
        *,
        name: Annotated[str | None, Option("its new name", "NEW")] = None,
        type: Annotated[str | None, Option("its new type, such as npc or location", "TYPE", names="type")] = None,  # noqa: A002
    ) -> list[WorldEvent]:
        """Change an entity's name or type. The old name becomes an alias.

        Raises:
            InvalidInput: There is nothing to change, another entity has that name, or the type is unknown.
        """
        found = self.resolver.entity(entity)
        new = None if name in (None, found.name) else _name(name)
        type = None if type == found.type else type  # noqa: A001
        if new is None and type is None:
            raise InvalidInput("give a new name or type")
        if new is not None and self.resolver.by_name.tiers(new)[0].keys() - {found.id}:
            raise InvalidInput(f"there is another entity {new!r}: merge the two, or choose another name")
        events: list[Event] = [EntityChanged(found.id, None if type is None else self._type(type), new)]
        if new is not None and fold(new) != fold(found.name):
            events.append(AliasAdded(found.id, found.name))
            events += [AliasRemoved(found.id, alias) for alias in found.aliases if fold(alias) == fold(new)]
        return await self._commit(*events)

    async def before_removal(self, entity: str) -> Question:
        """Return the facts that would end if the entity were removed."""
        found = self.resolver.entity(entity)
        facts = await self.review.current(self.campaign, DM, about=found.id, limit=MAX_FACTS)
        ends = listed("with it ends", [fact_in_words(fact, self.resolver) for fact in facts])
        return ends, f"This removes {entity_in_words(found)}."

    @_action(
        "entity remove",
        "remove an entity and everything known about it",
        form="remove",
        discord="entity remove",
        asks=before_removal,
    )
    async def remove(self, entity: EntityName) -> list[WorldEvent]:
        """Remove an entity and everything known about it."""
        return await self._commit(EntityRemoved(self.resolver.entity(entity).id))

    @_action("entity alias", "add an alias: NAME is also called ALIAS", form="alias")
    async def add_alias(self, entity: EntityName, alias: Alias) -> list[WorldEvent]:
        """
        Raises:
            InvalidInput: It already has this name, or another entity has.
        """
        found, new = self.resolver.entity(entity), _name(alias)
        if (other := self.resolver.by_name.exact(new)) is not None:
            raise InvalidInput(f"{other.name} is already called {new!r}")
        return await self._commit(AliasAdded(found.id, new))

    @_action("entity unalias", "remove an alias: NAME is not called ALIAS", form="unalias")
    async def remove_alias(self, entity: EntityName, alias: Alias) -> list[WorldEvent]:
        """
        Raises:
            NotFound: It has no such alias.
        """
        found = self.resolver.entity(entity)
        for known in found.aliases:
            if fold(known) == fold(alias):
                return await self._commit(AliasRemoved(found.id, known))
        raise NotFound(f"{found.name} has no alias {alias!r}: {did_you_mean(alias, found.aliases)}")

    @_action("entity secret", "keep an entity secret: only these NPCs know that it exists", form="secret")
    async def keep_secret(self, entity: EntityName, known_by: Knowers) -> list[WorldEvent]:
        """Make an entity known to these NPCs only."""
        visibility = secret_among(self._npcs(known_by), PUBLIC, now_ms=self.now_ms())
        return await self._commit(EntityScoped(self.resolver.entity(entity).id, visibility))

    @_action("entity hide", "hide an entity: nobody knows of it until you reveal it", form="hide")
    async def hide(self, entity: EntityName) -> list[WorldEvent]:
        """Make an entity known to nobody until it is revealed."""
        return await self._commit(EntityScoped(self.resolver.entity(entity).id, Visibility("hidden")))

    @_action("entity reveal", "reveal an entity: everybody may know of it", form="reveal")
    async def reveal(self, entity: EntityName) -> list[WorldEvent]:
        """Make an entity known to everybody."""
        return await self._commit(EntityScoped(self.resolver.entity(entity).id, PUBLIC))

    @_action("entity merge", "merge two entities: GONE is the same as KEPT", form="merge")
    async def merge(
        self,
        kept: Annotated[str, Option("an entity's name, alias or id", "KEPT", names="entity")],
        gone: Annotated[str, Option("the one that KEPT replaces", "GONE", names="entity")],
    ) -> list[WorldEvent]:
        """Merge `gone` into `kept`: its facts move there, and its names become aliases.

        Raises:
            InvalidInput: They are the same, or an NPC of the campaign plays `gone`.
        """
        staying, leaving = self.resolver.entity(kept), self.resolver.entity(gone)
        if staying.id == leaving.id:
            raise InvalidInput(f"{kept!r} and {gone!r} are the same entity: {staying.name}")
        if any(npc.entity_id == leaving.id for npc in self.resolver.npcs):
            raise InvalidInput(f"{leaving.name} is an NPC of the campaign: merge the other one into it instead")
        return await self._commit(EntitiesMerged(staying.id, leaving.id))

    @_action("entity split", "undo a merge: NAME is an entity of its own again")
    async def split(self, name: EntityName) -> str:
        """Undo the merge that removed the entity of this name, or the last merge into it.

        Raises:
            NotFound: No merge concerns it.
            InvalidInput: It may be several.
        """
        events = await all_events(self.world, self.campaign)
        without = dropped(events)
        merges = [
            (recorded.seq, recorded.event)
            for recorded in events
            if isinstance(recorded.event, EntitiesMerged) and recorded.seq not in without
        ]
        meant = {EntityId(name), *_ever_called(name, events)}
        found = [(seq, merged) for seq, merged in merges if merged.gone in meant]
        if len(found) > 1:
            several = ", ".join(str(seq) for seq, _ in found)
            raise InvalidInput(f"{name!r} was merged several times, by events {several}: undo one of them")
        if not found:
            kept = self.resolver.entity(name)
            found = [(seq, merged) for seq, merged in merges if merged.kept == kept.id][-1:]
            if not found:
                raise NotFound(f"nothing was merged into {kept.name}")
        [(seq, undone)] = found
        await self.world.undo(self.campaign, [seq], Cause("dm", self.now_ms()))
        names = self.resolver.with_names({undone.gone: name})  # which is known here by no other name
        return f"undone: {undone.in_words(names)}"

    def _type(self, wanted: str, *, is_new: bool = False) -> str:
        known = self.resolver.types
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


def _name(name: str) -> str:
    called = plain_name(name)
    if not fold(called):
        raise InvalidInput(f"{name!r} is not a name: it has no letter or digit")
    return called


_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # as JSON writes it


def stated_by_dm(claim: Claim, visibility: Visibility, *, at_ms: int) -> FactStated:
    """Return a certain, confirmed statement."""
    # Where a later fact supersedes an earlier one, it counts from its start; elsewhere the start is unknown.
    since = at_ms if rule_of(claim, {}) in ("functional", "functional_object") else None
    provenance = Provenance(1.0, "stated", dm_confirmed=True, origin="dm", at_ms=at_ms)
    return FactStated(claim, provenance, visibility, Validity(from_ms=since))


def storable(claim: Claim) -> Claim:
    """Return the claim. Raises: InvalidInput: The database cannot hold its value."""
    if _NUL.search(claim.value or ""):
        raise InvalidInput(f"{claim.predicate!r} of {claim.subject!r}: text cannot hold NUL characters")
    return claim


def secret_among(npcs: Sequence[NpcId], before: Visibility, *, now_ms: int) -> Visibility:
    """Return the visibility of a secret among these NPCs; those that knew it before keep how they learned it."""
    how = {knower.npc: knower for knower in before.knowers}
    return Visibility.of("secret", (how.get(npc) or Knower(npc, "secret", None, now_ms) for npc in npcs))


def predicate_of(predicate: str) -> str:
    """
    Raises:
        InvalidInput: It is empty.
    """
    word = " ".join(predicate.split())
    if not word:
        raise InvalidInput("a fact needs a predicate, such as LOCATED_AT or occupation")
    return word


def json_or_text(text: str) -> object:
    """Read a value as a user types it: JSON, else plain text.

    >>> json_or_text("[1, true]"), json_or_text("a paranoid wizard")
    ([1, True], 'a paranoid wizard')
    """
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return text if value is None else value


def attributes_in(text: str) -> dict[str, object]:
    """Read attributes: a JSON object, options, or both. Raises: InvalidInput: It is neither, or an option is wrong.

    >>> attributes_in('{"level": 9} --personality "paranoid wizard"')
    {'level': 9, 'personality': 'paranoid wizard'}
    """
    found: dict[str, object] = {}
    options = text.lstrip()
    if options[:1] in ("{", "["):
        try:
            found, end = json.JSONDecoder().raw_decode(options)
        except ValueError as error:
            raise InvalidInput(f"attributes are not JSON: {error}") from None
        if not isinstance(found, dict):
            raise InvalidInput(f'attributes are an object, such as {{"level": 9}}, not {text!r}')
        options = options[end:]
    try:
        return found | _attributes_of(shlex.split(options))
    except ValueError as error:
        raise InvalidInput(f"attributes cannot be read: {error}; write --name value, or JSON") from None


def _attributes_of(free: Sequence[str]) -> dict[str, object]:
    """Read attributes from options. Raises: InvalidInput: A value is missing, or stands alone."""
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
