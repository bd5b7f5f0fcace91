"""The state of a campaign's world, derived from its events. Values in, values out: no database.

One set of rules serves replay and the append of an event, which is applied to the current state before it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from glyphoxa.domain.campaign import SLOT_RULES, SlotRule
from glyphoxa.domain.ids import EntityId, FactId, NpcId
from glyphoxa.domain.knowledge import PUBLIC, Claim, EndedFact, Fact, Origin, Visibility

# Rows of a campaign's world.


@dataclass(frozen=True, slots=True)
class WorldEntity:
    """An entity without its attributes, which are facts."""

    id: EntityId
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    visibility: Visibility = PUBLIC
    origin: Origin = "dm"

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    @property
    def is_of_talk(self) -> bool:
        """Whether it was learned from the transcript, not written by an author."""
        return self.origin == "talk"


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows to insert, update or delete."""

    entities_put: tuple[WorldEntity, ...] = ()
    entities_gone: tuple[EntityId, ...] = ()
    merged_put: tuple[tuple[EntityId, EntityId], ...] = ()
    """Gone, kept."""
    merged_gone: tuple[EntityId, ...] = ()
    facts_put: tuple[Fact, ...] = ()
    facts_gone: tuple[FactId, ...] = ()
    ended_put: tuple[EndedFact, ...] = ()
    ended_gone: tuple[tuple[FactId, int], ...] = ()
    """Fact and the event that ended it."""
    rules_put: tuple[tuple[str, SlotRule], ...] = ()
    rules_gone: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self == Changes()


def changes_of(tables: Mapping[str, tuple[Mapping[Any, Any], Mapping[Any, Any]]]) -> Changes:
    """
    Args:
        tables: Rows before and after, by table and key; a missing row is None or absent.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for table, (before, after) in tables.items():
        put = [(key, row) for key, row in after.items() if before.get(key) != row]
        found[f"{table}_put"] = tuple(put if table in PAIRS else (row for _, row in put))
        found[f"{table}_gone"] = tuple(key for key, row in before.items() if row is not None and key not in after)
    return Changes(**found)


_Key: TypeAlias = tuple[str, ...]
"""Something by which facts are looked up:

    ("slot", subject, predicate)    current facts of a subject and a predicate
    ("object", object, predicate)   current facts of an object and a predicate
    ("touching", entity)            current facts with this entity at one end
    ("resting_on", fact)            current facts that it supports
    ("disputing", fact)             current facts that dispute it
    ("refused", fact)               ends of a fact that the DM rejected, retconned or replaced
"""


class WorldState:
    """A state, initially empty. Change it only through `glyphoxa.world.event_log.apply`.

    Attributes:
        entities: Existing entities.
        merged: Entities merged into others.
        facts: Current facts, whatever their status.
        ended: Ended facts, by fact and the event that ended it. May lack those that ended before the state was loaded.
        rules: The campaign's own slot rules.
    """

    def __init__(self, rules: Iterable[tuple[str, SlotRule]] = ()) -> None:
        self.entities: dict[EntityId, WorldEntity] = {}
        self.merged: dict[EntityId, EntityId] = {}
        self.facts: dict[FactId, Fact] = {}
        self.ended: dict[tuple[FactId, int], EndedFact] = {}
        self.rules: dict[str, SlotRule] = dict(rules)
        self._ids: dict[_Key, set[Any]] = {}
        self._refused: set[FactId] = set()
        self._journal: list[tuple[str, Any, Any]] = []

    def load(
        self,
        *,
        entities: Iterable[WorldEntity] = (),
        merged: Iterable[tuple[EntityId, EntityId]] = (),
        facts: Iterable[Fact] = (),
        ended: Iterable[EndedFact] = (),
        refused: Iterable[FactId] = (),
    ) -> None:
        """Load stored rows; they do not count as changes.

        Args:
            merged: Gone, kept.
            refused: Facts that the DM rejected, retconned or replaced, if `ended` lacks them.
        """
        self.entities.update((entity.id, entity) for entity in entities)
        self.merged.update(merged)
        for fact in facts:
            self._put("facts", fact.id, fact)
        for past in ended:
            self._put("ended", (past.fact.id, past.ended_seq), past)
        self._refused.update(refused)

    # Reading

    def resolve(self, entity: EntityId) -> EntityId:
        """The entity's id, or that of the one it was merged into."""
        seen = {entity}
        while entity not in self.entities and entity in self.merged:
            entity = self.merged[entity]
            if entity in seen:
                return entity
            seen.add(entity)
        return entity

    def entity(self, entity: EntityId) -> WorldEntity | None:
        """Return the entity with this id, or the one into which it was merged."""
        return self.entities.get(self.resolve(entity))

    def visibility_of(self, entity: EntityId) -> Visibility | None:
        """Return who may know of an entity, by its own id; None if it does not exist."""
        found = self.entities.get(entity)
        return None if found is None else found.visibility

    def in_slot(self, subject: EntityId, predicate: str) -> list[Fact]:
        """Return the facts of a slot in the order in which they were stated, as do the following methods."""
        return self._facts(("slot", subject, predicate))

    def beside(self, claim: Claim, rules: Mapping[str, SlotRule]) -> list[Fact]:
        """Return the facts of the claim's slot, itself among them; none if several can hold."""
        slot = slot_of(claim, rules)
        return [] if slot is None else self._facts(slot)

    def touching(self, entity: EntityId) -> list[Fact]:
        return self._facts(("touching", entity))

    def resting_on(self, fact: FactId) -> list[Fact]:
        return self._facts(("resting_on", fact))

    def disputing(self, fact: FactId) -> list[Fact]:
        return self._facts(("disputing", fact))

    def secrets_of(self, npc: NpcId) -> list[Fact]:
        """Return the secrets that an NPC knows, about any entity."""
        return self._facts(("secret", npc))

    def of_claim(self, claim: Claim) -> Fact | None:
        """Return the current fact with this claim."""
        slot = self._ids.get(("slot", claim.subject, claim.predicate), ())
        return next((fact for each in slot if (fact := self.facts[each]).claim == claim), None)

    def was_refused(self, fact: FactId) -> bool:
        """Whether the DM rejected, retconned or replaced a fact with this id."""
        return fact in self._refused or bool(self._ids.get(("refused", fact)))

    # Changing: for the projection

    def put_entity(self, entity: WorldEntity) -> None:
        self._change("entities", entity.id, entity)

    def drop_entity(self, entity: EntityId) -> None:
        self._change("entities", entity, None)

    def put_merge(self, gone: EntityId, kept: EntityId) -> None:
        self._change("merged", gone, kept)

    def put_fact(self, fact: Fact) -> None:
        self._change("facts", fact.id, fact)

    def drop_fact(self, fact: FactId) -> None:
        self._change("facts", fact, None)

    def put_ended(self, ended: EndedFact) -> None:
        self._change("ended", (ended.fact.id, ended.ended_seq), ended)

    def put_rule(self, predicate: str, rule: SlotRule) -> None:
        self._change("rules", predicate, rule)

    def begin(self) -> None:
        """Start counting changes."""
        self._journal.clear()

    def changes(self) -> Changes:
        """Changes since `begin`."""
        before: dict[str, dict[Any, Any]] = {table: {} for table in TABLES}
        for table, key, old in self._journal:
            before[table].setdefault(key, old)
        return changes_of(
            {
                table: (keys, {key: getattr(self, table)[key] for key in keys if key in getattr(self, table)})
                for table, keys in before.items()
            }
        )

    def savepoint(self) -> int:
        """A point to roll back to."""
        return len(self._journal)

    def roll_back_to(self, savepoint: int) -> None:
        while len(self._journal) > savepoint:
            table, key, old = self._journal.pop()
            self._put(table, key, old)

    def _facts(self, key: _Key) -> list[Fact]:
        facts = [self.facts[fact] for fact in self._ids.get(key, ())]
        return sorted(facts, key=lambda fact: (fact.seq, fact.id))

    def _change(self, table: str, key: Any, value: Any) -> None:
        old = getattr(self, table).get(key)
        if old != value:
            self._journal.append((table, key, old))
            self._put(table, key, value)

    def _put(self, table: str, key: Any, value: Any) -> None:
        rows: dict[Any, Any] = getattr(self, table)
        for entry in _entries(rows.get(key)):
            ids = self._ids.get(entry, set())
            ids.discard(key)
            if not ids:
                self._ids.pop(entry, None)
        for entry in _entries(value):
            self._ids.setdefault(entry, set()).add(key)
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value


REFUSED: Final = frozenset({"rejected", "retconned", "edited"})
"""Ways to end a fact that mean it was never true."""
TABLES: Final = ("entities", "merged", "facts", "ended", "rules")
"""The tables of a state, by attribute name."""
PAIRS: Final = ("merged", "rules")
"""Tables whose rows are pairs."""


def _entries(row: object) -> Iterator[_Key]:
    """Keys under which a row is found."""
    if isinstance(row, Fact):
        claim = row.claim
        yield "slot", claim.subject, claim.predicate
        yield "touching", claim.subject
        if claim.object is not None:
            yield "object", claim.object, claim.predicate
            yield "touching", claim.object
        yield from (("resting_on", support) for support in row.supports)
        yield from (("disputing", disputed) for disputed in row.disputes)
        if row.visibility.scope == "secret":
            yield from (("secret", knower.npc) for knower in row.visibility.knowers)
    elif isinstance(row, EndedFact) and row.ended_as in REFUSED:
        yield "refused", row.fact.id


OPPOSITES: Final[Mapping[str, str]] = {"ALLIED_WITH": "HOSTILE_TO", "HOSTILE_TO": "ALLIED_WITH"}
"""Relations that exclude each other between two entities."""


def rule_of(claim: Claim, declared: Mapping[str, SlotRule]) -> SlotRule:
    """The campaign's own rule for the claim's predicate, otherwise the default."""
    known = declared.get(claim.predicate) or SLOT_RULES.get(claim.predicate)
    if known is not None:
        return known
    return "many" if claim.object is not None else "one"


def slot_of(claim: Claim, declared: Mapping[str, SlotRule]) -> tuple[str, str, str] | None:
    """Return the slot in which one claim holds at a time; None if several can hold."""
    match rule_of(claim, declared):
        case "one" | "functional":
            return "slot", claim.subject, claim.predicate
        case "functional_object" if claim.object is not None:
            return "object", claim.object, claim.predicate
    return None
