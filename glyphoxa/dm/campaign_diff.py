"""Compute how loading a campaign file changes the world: only by its differences from the last loaded version.

Decisions of the DM since then (a merge, an edit, a secret, a removal) survive a reload, and loading the same file again
does nothing. Where a change of the file meets such a decision, the decision wins and is reported, unless the file
changed that very thing.

What is removed from a file is retconned, not closed: deleting a line means it was never true, not that it ended today.
A changed value replaces the old one for the whole time it was current.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Final, TypeVar

from glyphoxa.domain.campaign import (
    BIDIRECTIONAL_RELATIONS,
    SLOT_RULES,
    Campaign,
    Entity,
    Relationship,
    Secret,
    SlotRule,
)
from glyphoxa.domain.errors import nearest
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import PUBLIC, Claim, Fact, Origin, Provenance, Visibility, visibility_of
from glyphoxa.language.relations import IN_ENGLISH, RelationWords, in_words
from glyphoxa.world.event_kinds import (
    AliasAdded,
    AliasRemoved,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    FactRejected,
    FactReplaced,
    FactScoped,
    FactStated,
    SlotDeclared,
)
from glyphoxa.world.event_log import Cause, Event, WorldEvent, apply
from glyphoxa.world.file_claims import OFFERED, Guards, claims_of
from glyphoxa.world.state import WorldState, rule_of, slot_of


def _guards(previous: Campaign, new: Campaign, world: WorldState) -> tuple[Guards, Guards]:
    """Return the entities that an import hides and players know: the DM revealed them, or merged them into others.

    What the import adds to them from then on is only for those who may know its entity.

    Returns: Those of the previous campaign, and of the new one.
    """
    before: dict[EntityId, Visibility] = {}
    now: dict[EntityId, Visibility] = {}
    for campaign, guards in ((previous, before), (new, now)):
        for entity in campaign.entities:
            held, visibility = world.entity(entity.id), visibility_of(entity)
            if held is None or held.visibility.is_within(visibility):
                continue
            if guards is before or held.id != entity.id or before.get(entity.id) == visibility:
                guards[entity.id] = visibility
    return before, now


def is_offer(stated: FactStated) -> bool:
    return stated.provenance.reason == OFFERED


_FROM_FILES: Final = ("campaign_file", "import")
Statements = Mapping[Claim, FactStated]


@dataclass(slots=True)
class Findings:
    """Collects the result of comparing two campaigns.

    Attributes:
        fresh: Entities that this load adds.
        gone: Entities that this load removes.
    """

    made: list[Event] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    remarks: dict[str, str] = field(default_factory=dict)
    names: dict[EntityId, str] = field(default_factory=dict)
    relations: RelationWords = IN_ENGLISH
    fresh: set[EntityId] = field(default_factory=set)
    gone: set[EntityId] = field(default_factory=set)

    def remark(self, text: str, *, discreet: str | None = None) -> None:
        """Add a remark, once.

        Args:
            discreet: A version without the content of facts, if `text` contains any.
        """
        self.remarks.setdefault(text, text if discreet is None else discreet)

    def left_out(self, entity: EntityId) -> None:
        self.remark(f"{self.name(entity)}: you removed it, so the file's changes to it are skipped")

    def name(self, entity: EntityId) -> str:
        return self.names.get(entity, entity)


@dataclass(frozen=True, slots=True)
class FactComparison:
    """
    Args:
        before: The file's statements when it was last loaded.
        now: Its present statements.
        rules: The campaign's current slot rules.
    """

    before: Statements
    now: Statements
    rules: Mapping[str, SlotRule]
    world: WorldState
    found: Findings

    def run(self) -> None:
        leaving = {claim: stated for claim, stated in self.before.items() if claim not in self.now}
        coming = {claim: stated for claim, stated in self.now.items() if claim not in self.before}
        for old, new in self._replacements(leaving, coming):
            if self._replace(leaving[old], coming[new]):
                del leaving[old], coming[new]
        for stated in leaving.values():
            self._left(stated)
        for stated in coming.values():
            self._came(stated)
        for claim, stated in self.now.items():
            if claim in self.before and self.before[claim] != stated:
                self._changed(self.before[claim], stated)

    def _replacements(self, leaving: Statements, coming: Statements) -> list[tuple[Claim, Claim]]:
        """Return pairs of an old and a new claim for slots that take only one."""
        left, came = self._by_slot(leaving), self._by_slot(coming)
        pairs = [(left[slot], came[slot]) for slot in left if slot in came]
        return [(old[0], new[0]) for old, new in pairs if len(old) == len(new) == 1]

    def _by_slot(self, statements: Statements) -> dict[tuple[str, str, str], list[Claim]]:
        found: dict[tuple[str, str, str], list[Claim]] = {}
        for claim, stated in statements.items():
            if stated.provenance.is_enough and (slot := slot_of(claim, self.rules)) is not None:
                found.setdefault(slot, []).append(claim)
        return found

    def _replace(self, before: FactStated, stated: FactStated) -> bool:
        """Replace a claim, or the DM's replacement of it; return whether that was possible."""
        claim = stated.claim
        by_dm = (fact for fact in self._in_the_way(claim) if fact.provenance.origin != "talk")
        held = self.world.of_claim(before.claim) or next(by_dm, None)
        if self._is_away(claim) or held is None or self.found.gone & {held.claim.subject, held.claim.object}:
            return False
        if held.provenance.origin == "talk" or not held.attributes.keys() <= stated.attributes.keys():
            return False
        if held.claim == claim:
            return True  # the DM has already replaced it
        if held.claim != before.claim:
            text = "the file changed it, which overrides your {}"
            self._remark(claim, text.format(self._value(held.claim)), discreet=text.format("decision"))
        self.found.made.append(FactReplaced(held.id, claim, "retcon"))
        already = self.world.of_claim(claim)
        if before.visibility != stated.visibility:
            self.found.made.append(FactScoped(already.id if already else claim.fact_id, stated.visibility))
        if dict(stated.attributes) != dict(held.attributes):
            self.found.made.append(stated)
        self.found.changed.append(self._label(claim))
        return True

    def _in_the_way(self, claim: Claim) -> list[Fact]:
        """Return accepted facts that cannot hold together with the claim."""
        return [fact for fact in self.world.beside(claim, self.rules) if fact.status == "accepted"]

    def _left(self, stated: FactStated) -> None:
        claim = stated.claim
        held = self.world.of_claim(claim)
        if held is None or self.found.gone & {claim.subject, claim.object}:
            return
        if is_offer(stated) and held.provenance.dm_confirmed:
            return  # the DM accepted the offer
        if held.provenance.origin not in _FROM_FILES:
            self._remark(claim, "was removed from the file, but stays: it has other sources")
            return
        self.found.made.append(FactRejected(held.id, "retcon"))
        if not is_offer(stated):
            self.found.removed.append(self._label(claim))

    def _came(self, stated: FactStated) -> None:
        claim, found = stated.claim, self.found
        if self._is_away(claim):
            return
        held = self.world.of_claim(claim)
        if held is not None and is_offer(stated):
            return
        guarded = held is not None and held.visibility.scope in ("secret", "hidden")
        if held is not None and held.visibility == PUBLIC != stated.visibility:
            found.made.append(FactScoped(held.id, stated.visibility))
            found.changed.append(f"{self._label(claim)}: who may know it")
        if guarded and stated.visibility == PUBLIC:
            self._remark(claim, f"stays {held.visibility.scope}, as you decided" if held else "")
        if held is not None and not _adds_to(held, stated):
            return
        found.made.append(stated)
        if is_offer(stated):
            self._remark(claim, f"needs review, because {OFFERED}")
            return
        for fact in self._in_the_way(claim):
            if fact.claim != claim:
                waits = rule_of(claim, self.rules) == "one"
                what = "decide: `glyphoxa facts review conflict`" if waits else "whichever is later holds"
                text = "is {} in the world; " + what
                self._remark(claim, text.format(self._value(fact.claim)), discreet=text.format("another"))
        if claim.object is not None or claim.subject not in found.fresh or claim.predicate == "secret":
            found.added.append(self._label(claim))

    def _changed(self, before: FactStated, stated: FactStated) -> None:
        claim = stated.claim
        if self._is_away(claim):
            return
        held = self.world.of_claim(claim)
        if held is None:
            self._remark(claim, "no longer holds, so the file's change to it is skipped")
            return
        made: list[Event] = []
        if _words(before) != _words(stated) and _words(held) != _words(stated):
            if not _is_more(before, stated):
                made.append(FactRejected(held.id, "retcon"))
            made.append(replace(stated, visibility=held.visibility))
        if before.visibility != stated.visibility and held.visibility != stated.visibility:
            if held.visibility != before.visibility:
                self._remark(claim, "has the visibility of the file now, no longer the one you decided")
            made.append(FactScoped(held.id, stated.visibility))
        self.found.made += made
        if made and not is_offer(stated):
            self.found.changed.append(self._label(claim))

    def _is_away(self, claim: Claim) -> bool:
        """Return whether an end of the claim is being removed, or was removed by the DM (which is reported)."""
        if self.found.gone & {claim.subject, claim.object}:
            return True
        for end in (claim.subject, claim.object):
            if end is not None and end not in self.found.fresh and self.world.entity(end) is None:
                self.found.left_out(end)
                return True
        return False

    def _remark(self, claim: Claim, text: str, *, discreet: str | None = None) -> None:
        label = self._label(claim)
        kept = label if claim.object is None else f"{self.found.name(claim.subject)}, {in_words(claim.predicate)}"
        self.found.remark(f"{label}: {text}", discreet=f"{kept}: {text if discreet is None else discreet}")

    def _label(self, claim: Claim) -> str:
        subject = self.found.name(claim.subject)
        if claim.object is not None:
            return self.found.relations.sentence(claim.predicate, subject, self.found.name(claim.object))
        return f"a secret of {subject}" if claim.predicate == "secret" else f"{subject}, {in_words(claim.predicate)}"

    def _value(self, claim: Claim) -> str:
        text = self.found.name(claim.object) if claim.object is not None else str(claim.content)
        return repr(text if len(text) <= 40 else text[:40] + "...")


def _adds_to(held: Fact, stated: FactStated) -> bool:
    """Return whether stating it again changes more than the number of mentions."""
    knowers = {knower.npc for knower in held.visibility.knowers}
    return (
        _rank(stated.provenance) > _rank(held.provenance)
        or {**held.attributes, **stated.attributes} != dict(held.attributes)
        or (held.visibility.scope in ("witnessed", "told") and stated.visibility.scope == "public")
        or any(knower.npc not in knowers for knower in stated.visibility.knowers)
    )


def _is_more(before: FactStated, stated: FactStated) -> bool:
    """Return whether stating it again is enough to change it into its new form."""
    old, new = before.provenance, stated.provenance
    return (old == new or _rank(new) > _rank(old)) and before.attributes.keys() <= stated.attributes.keys()


def _words(stated: FactStated | Fact) -> tuple[object, ...]:
    """Return what the file states besides the claim and its visibility."""
    sure = stated.provenance
    return sure.confidence, sure.source, sure.dm_confirmed, dict(stated.attributes)


def _rank(provenance: Provenance) -> tuple[bool, float]:
    return provenance.dm_confirmed, provenance.confidence


# How the entities and rules of a campaign file changed, and the effect on the world.


_MAX_COMPARED: Final = 50


@dataclass(frozen=True, slots=True)
class EntityComparison:
    """
    Args:
        found: Collects the findings and knows all names.
    """

    previous: Campaign
    new: Campaign
    world: WorldState
    origin: Origin
    found: Findings
    guards: Guards

    def run(self) -> None:
        for entities in (self.previous.entities, self.world.entities.values(), self.new.entities):
            self.found.names.update((entity.id, entity.name) for entity in entities)
        self._slots()
        self._entities()

    def _slots(self) -> None:
        before, now, held = self.previous.slots, self.new.slots, self.world.rules
        for predicate, rule in now.items():
            if before.get(predicate) != rule and held.get(predicate) != rule:
                self.found.made.append(SlotDeclared(predicate, rule))
                (self.found.changed if predicate in before else self.found.added).append(
                    f"the slot rule of {in_words(predicate)!r}"
                )
        related = {relation.type for relation in (*self.previous.relationships, *self.new.relationships)}
        for predicate in before.keys() - now.keys():
            default = SLOT_RULES.get(predicate, "many" if predicate in related else "one")
            if held.get(predicate, default) != default:
                self.found.made.append(SlotDeclared(predicate, default))
            self.found.removed.append(f"the slot rule of {in_words(predicate)!r}")

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
        visibility = visibility_of(entity)
        if held is None:
            if namesake is not None:
                self.found.remark(
                    f"{entity.name}: there is already one with that name ({namesake}); merge them if they are the same"
                )
            self.found.fresh.add(entity.id)
            self.found.made.append(
                EntityAdded(entity.id, entity.type, entity.name, entity.aliases, visibility, self.origin)
            )
            self.found.added.append(f"{entity.name} ({entity.type}{', hidden' * entity.hidden})")
        elif held.id != entity.id:
            self.found.remark(f"{entity.name}: was merged into {held.name}, so the file's statements apply to that one")
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
            self.found.remark(f"{entity.name}: was merged into {held.name}; its new name, type or aliases are skipped")
        elif entity.id in self.guards:
            self.found.remark(
                f"{held.name}: you revealed it, and its source hides it; its new name, type or aliases are skipped"
            )
        else:
            for what, was, by_hand in (("name", before.name, held.name), ("type", before.type, held.type)):
                if by_hand != was and by_hand != getattr(entity, what) != was:
                    self.found.remark(f"{entity.name}: the file's {what} replaces your {by_hand!r}")
            self._describe(before, entity)
            visibility = visibility_of(entity)
            if visibility != visibility_of(before) and visibility != held.visibility:
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
            self.found.remark(f"{entity.name}: was removed from the file; {held.name}, which it was merged into, stays")
        elif stands_for is not None:
            self.found.remark(f"{entity.name}: was removed from the file, but stays: {stands_for} was merged into it")
        else:
            self.found.gone.add(entity.id)
            self.found.made.append(EntityRemoved(entity.id))
            self.found.removed.append(f"{held.name} ({held.type})")

    def _renamed(self, before: Mapping[EntityId, Entity]) -> None:
        """Report entities that may have been renamed: one leaves while a similar one arrives."""
        if not 0 < len(self.found.gone) <= _MAX_COMPARED >= len(self.found.fresh):
            return
        for entity in self.new.entities:
            if entity.id not in self.found.fresh:
                continue
            alike = {before[gone].name: gone for gone in self.found.gone if before[gone].type == entity.type}
            if (name := nearest(entity.name, alike)) is not None:
                self.found.remark(
                    f"{entity.name}: if you renamed {name}, give it `id: {alike[name]}` in the file; "
                    f"otherwise everything known about {name} is removed"
                )


def _face(entity: Entity) -> tuple[object, ...]:
    """Return all parts of an entity except its attributes, which are facts."""
    return entity.name, entity.type, entity.aliases, visibility_of(entity)


T = TypeVar("T")
Scoped = TypeVar("Scoped", Entity, Relationship)

_LATER: Final = 2**62
"""The sequence number of a trial event that is never stored."""


@dataclass(frozen=True, slots=True)
class CampaignChanges:
    """
    Attributes:
        events: To commit, in this order.
        added: New items, in words for the DM; `changed` and `removed` likewise.
        remarks: Decisions of the DM that were kept, overridden, or are needed.
        discreet_remarks: The same without the content of facts, for a log.
    """

    events: tuple[Event, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    discreet_remarks: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether neither the world nor the campaign's people and scenes change."""
        return not (self.events or self.n)

    @property
    def n(self) -> int:
        """Number of new, changed and removed items."""
        return len(self.added) + len(self.changed) + len(self.removed)


def changes(previous: Campaign | None, new: Campaign, world: WorldState, firm: Provenance) -> CampaignChanges:
    """
    Args:
        previous: The last loaded version; None if there is none.
        world: The current state with all entities and facts; ended facts are optional.
        firm: See `claims_of`.

    Raises:
        InvalidInput: The campaign is invalid: see `claims_of`.
    """
    nothing = replace(new, entities=(), relationships=(), npcs=(), players=(), scenes=(), secrets=(), slots={})
    before = nothing if previous is None else previous
    found = Findings(relations=RelationWords.of(new))
    guarded: tuple[Guards, Guards] = _guards(before, new, world) if firm.origin == "import" else ({}, {})
    EntityComparison(before, new, world, firm.origin, found, guarded[1]).run()
    FactComparison(
        before=claims_of(before, firm, resolve=world.resolve, guards=guarded[0]),
        now=claims_of(new, firm, resolve=world.resolve, guards=guarded[1]),
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
    """Return the events without those whose fact an earlier event has removed."""
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


_BY_ITEM: Final[Mapping[str, Callable[[Campaign], Mapping[Any, object]]]] = {
    # Names and aliases of an NPC belong to its entity.
    "NPC": lambda campaign: {npc.name: replace(npc, aliases=()) for npc in campaign.npcs},
    "entity type": lambda campaign: campaign.node_types,
    "player": lambda campaign: {player.name: player for player in campaign.players},
    "scene": lambda campaign: {scene.id: scene for scene in campaign.scenes},
}
_NO_SETTINGS: Final = frozenset(
    ("id", "entities", "relationships", "npcs", "players", "scenes", "secrets", "slots", "node_types")
)


def _compare_people(was: Campaign, now: Campaign, found: Findings) -> None:
    """Report changes of NPCs, players, scenes and campaign settings, which are not part of the world."""
    for part in (each.name for each in fields(Campaign) if each.name not in _NO_SETTINGS):
        if getattr(was, part) != getattr(now, part):
            found.changed.append(f"the campaign's {part.replace('_', ' ')}")
    for what, items_of in _BY_ITEM.items():
        before, after = items_of(was), items_of(now)
        found.added += [f"{what} {name}" for name in after if name not in before]
        found.removed += [f"{what} {name}" for name in before if name not in after]
        found.changed += [f"{what} {name}" for name in after if name in before and before[name] != after[name]]


# Content of tables (CSV) and imports beside a campaign file, and the campaign that all make together.
#
# The campaign file is read again whenever a table opens, and does not affect content from tables; where both state
# the same thing, the campaign file wins.


@dataclass(frozen=True, slots=True)
class Tables:
    """
    Attributes:
        relationships: Between entities of these tables, of the campaign file, or of the world.
    """

    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    secrets: tuple[Secret, ...] = ()


def with_tables(campaign: Campaign, tables: Tables) -> Campaign:
    """Return the campaign of a file together with the content of its tables; what the file states wins."""
    return replace(
        campaign,
        entities=_merged((*campaign.entities, *tables.entities), by=attrgetter("id"), both=_one_entity),
        relationships=_merged((*campaign.relationships, *tables.relationships), by=_ends, both=_one_scope),
        secrets=_merged((*campaign.secrets, *tables.secrets), by=attrgetter("about", "text"), both=lambda one, _: one),
    )


def _merged(items: Iterable[T], *, by: Callable[[T], object], both: Callable[[T, T], T]) -> tuple[T, ...]:
    """Return one item per key, in the order of the keys; `both` joins two items of one key."""
    found: dict[object, T] = {}
    for item in items:
        key = by(item)
        found[key] = both(found[key], item) if key in found else item
    return tuple(found.values())


def _one_entity(first: Entity, other: Entity) -> Entity:
    aliases: dict[str, str] = {}
    for alias in (*first.aliases, *other.aliases):
        aliases.setdefault(alias.casefold(), alias)
    return replace(_one_scope(first, other), aliases=tuple(aliases.values()))


def _one_scope(first: Scoped, other: Scoped) -> Scoped:
    """Join attributes; the result is guarded if either item is."""
    return replace(
        first,
        attributes={**other.attributes, **first.attributes},
        known_by=first.known_by or other.known_by,
        hidden=first.hidden or other.hidden,
    )


def _ends(relation: Relationship) -> tuple[str, ...]:
    ends = (relation.source, relation.target)
    if relation.type in BIDIRECTIONAL_RELATIONS:
        ends = (min(ends), max(ends))
    return (*ends, relation.type)
