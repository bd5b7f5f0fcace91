"""The state of a campaign's world, derived from its events, and the status of its facts.

Values in, values out: no database. One set of rules serves replay and the append of an event, which is applied to the
current state before it is stored.

The status of a fact is recomputed whenever something it depends on changes, in this order:

    stale      one of its supports is no longer current, or is itself stale
    pending    not certain enough (0.70) or rejected before, and not confirmed; or a support is not accepted yet
    conflict   an accepted fact disagrees with it
    accepted   otherwise

An accepted fact may supersede accepted facts of its slot if the slot is functional (see `SLOT_RULES`): the later one
in the world's time wins, and an inferred fact never supersedes a confirmed one. The DM decides all other conflicts;
until then the older fact stays accepted.

Supports cannot form a harmful cycle: a fact is stated after its supports, and is stale if a support did not exist.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from glyphoxa.domain.campaign import SLOT_RULES, SlotRule
from glyphoxa.domain.ids import EntityId, FactId, NpcId
from glyphoxa.domain.knowledge import PUBLIC, Claim, EndedAs, EndedFact, Fact, Origin, Provenance, Validity, Visibility

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


# The status of facts.

_EVER = -(2**63)
_Ground: TypeAlias = Literal["stale", "pending"]


class _StatusUpdate:
    """Ends facts and recomputes the status of dependent facts, in one state and for one event.

    Args:
        seq: Number of the event.
    """

    def __init__(self, state: WorldState, seq: int) -> None:
        self._state = state
        self._seq = seq
        self._may_supersede = True

    def end(
        self, fact: Fact, ended_as: EndedAs, *, by: FactId | None = None, validity: Validity | None = None
    ) -> list[FactId]:
        """Move a fact to the history. Returns the facts whose status may depend on it."""
        concerned = self.dependents(fact.id)
        self._state.drop_fact(fact.id)
        past = fact if validity is None else fact.with_(validity=validity)
        self._state.put_ended(EndedFact(past, self._seq, ended_as, by))
        return concerned

    def dependents(self, fact_id: FactId) -> list[FactId]:
        return [f.id for f in (*self._state.resting_on(fact_id), *self._state.disputing(fact_id))]

    def settle(self, facts: Iterable[FactId], *, may_supersede: bool = True) -> None:
        """Recompute the status of these facts and of every fact that depends on a change.

        Args:
            may_supersede: Whether facts of a functional slot end each other; otherwise they conflict.
        """
        self._may_supersede = may_supersede
        waiting = deque(dict.fromkeys(facts))
        while waiting:
            fact = self._state.facts.get(waiting.popleft())
            if fact is None:
                continue
            for fact_id in self._settle_one(fact):
                if fact_id not in waiting:
                    waiting.append(fact_id)

    def _settle_one(self, fact: Fact) -> list[FactId]:
        ground = self._ground(fact)
        if ground is not None:
            return self._stand(fact.with_(status=ground, disputes=()), was=fact)
        rivals = self.rivals(fact)
        if fact.status == "accepted" and not rivals:
            return []
        rule = self.rule(fact)
        opposite = OPPOSITES.get(fact.claim.predicate)
        is_opposed = any(rival.claim.predicate == opposite for rival in rivals)
        if rule not in ("functional", "functional_object") or is_opposed:
            return self._accept(fact, against=rivals)
        later = [rival for rival in rivals if since(rival) > since(fact)]
        if later and self._may_supersede:
            first = min(later, key=since)
            return self.end(fact, "superseded", by=first.id, validity=until(fact, first))
        firm = [r for r in rivals if not self._may_supersede or _outranks(r.provenance, fact.provenance)]
        if firm:
            return self._accept(fact, against=firm)
        concerned: list[FactId] = []
        for rival in rivals:
            concerned += self.end(rival, "superseded", by=fact.id, validity=until(rival, fact))
        return [*self._accept(fact, against=()), *concerned]

    def _ground(self, fact: Fact) -> _Ground | None:
        """The status its supports limit it to; None when it may be accepted."""
        supports = [self._state.facts.get(support) for support in fact.supports]
        if any(on is None or on.status == "stale" for on in supports):
            return "stale"
        is_enough = fact.provenance.dm_confirmed or (fact.provenance.is_enough and not fact.doubted)
        if not is_enough or any(on is not None and on.status != "accepted" for on in supports):
            return "pending"
        return None

    def _accept(self, fact: Fact, *, against: Sequence[Fact]) -> list[FactId]:
        disputes = tuple(sorted(rival.id for rival in against))
        return self._stand(fact.with_(status="conflict" if disputes else "accepted", disputes=disputes), was=fact)

    def _stand(self, fact: Fact, *, was: Fact) -> list[FactId]:
        self._state.put_fact(fact)
        return [] if fact.status == was.status else self.dependents(fact.id)

    def rivals(self, fact: Fact) -> list[Fact]:
        """Accepted facts that contradict it. Facts that only held in the past do not count."""
        claim, state = fact.claim, self._state
        if fact.validity.to_ms is not None:
            return []
        found = state.beside(claim, state.rules)
        if claim.object is not None and (opposite := OPPOSITES.get(claim.predicate)) is not None:
            found += [f for f in state.in_slot(claim.subject, opposite) if f.claim.object == claim.object]
        return [f for f in found if f.id != fact.id and f.status == "accepted" and f.validity.to_ms is None]

    def rule(self, fact: Fact) -> SlotRule:
        return rule_of(fact.claim, self._state.rules)


def since(fact: Fact) -> int:
    """When it begins to hold, milliseconds since the Unix epoch; the minimum if it has always held."""
    return _EVER if fact.validity.from_ms is None else fact.validity.from_ms


def until(fact: Fact, successor: Fact) -> Validity:
    """The validity of a fact that `successor` supersedes."""
    to_ms = successor.validity.from_ms
    if to_ms is None:
        to_ms = successor.provenance.at_ms
    return replace(fact.validity, to_ms=to_ms, story_to=successor.validity.story_from)


def _outranks(held: Provenance, new: Provenance) -> bool:
    """Whether a new inferred fact meets a confirmed one."""
    return held.dm_confirmed and new.source == "inferred" and not new.dm_confirmed


_OPEN: Final = ("public", "witnessed", "told")
"""Scopes that the DM does not guard."""


class Change:
    """One event as it is applied to a state.

    Attributes:
        seq: Number of the event.
        at_ms: When it happened.
    """

    def __init__(self, state: WorldState, *, seq: int, at_ms: int) -> None:
        self.state = state
        self.seq = seq
        self.at_ms = at_ms
        self.status = _StatusUpdate(state, seq)

    def resolved(self, claim: Claim) -> Claim | None:
        """The claim with merged entities resolved; None when an entity does not exist."""
        ends = [claim.subject] if claim.object is None else [claim.subject, claim.object]
        if any(self.state.entity(end) is None for end in ends):
            return None
        return self.claim_of_kept(claim)

    def claim_of_kept(self, claim: Claim) -> Claim | None:
        """The claim with merged entities resolved; None when both ends are now the same entity."""
        subject = self.state.resolve(claim.subject)
        if claim.object is None:
            return replace(claim, subject=subject)
        entity: EntityId = self.state.resolve(claim.object)
        return None if entity == subject else Claim.relation(subject, claim.predicate, entity)

    def free_id(self, claim: Claim) -> FactId:
        """The claim's own fact id, unless a merge gave that id to another claim."""
        fact_id, n = claim.fact_id, 1
        while fact_id in self.state.facts:
            n += 1
            fact_id = FactId(f"{claim.fact_id}-{n}")
        return fact_id


def stated_again(held: Fact, stated: Fact) -> Fact:
    """Merge a repeated statement into a fact: confidence and visibility grow.

    What the DM guards (secret, hidden) stays guarded, whoever heard it.
    """
    old, new = held.provenance, stated.provenance
    visibility = _heard_again(held, stated)
    # Attributes that only some NPCs were told are not passed on to NPCs that learn of the fact otherwise.
    known = [said.attributes for said in (held, stated) if visibility.is_within(said.visibility)]
    return held.with_(
        provenance=new if (new.dm_confirmed, new.confidence) > (old.dm_confirmed, old.confidence) else old,
        visibility=visibility,
        attributes={name: value for attributes in known for name, value in attributes.items()},
        supports=_supports(held, stated),
        mentions=held.mentions + 1,
    )


def _heard_again(held: Fact, stated: Fact) -> Visibility:
    seen, told = held.visibility, stated.visibility
    if seen.scope in _OPEN:
        if told.scope == "public":
            return replace(seen, scope="public")
        if told.scope not in _OPEN and held.status != "accepted":
            return told  # nobody was told it before it became true
    return seen.known_to(*told.knowers)


def _supports(held: Fact, stated: Fact) -> tuple[FactId, ...]:
    """Supports of the merged fact; a direct statement needs none."""
    if not held.supports or not stated.supports:
        return ()
    return stated.supports if held.status == "stale" else held.supports


# Preconditions shared by several kinds of events. Each returns why it fails, or None.


def no_entity(state: WorldState, entity: EntityId) -> str | None:
    return None if state.entity(entity) is not None else f"there is no entity {entity!r}"


def no_fact(state: WorldState, fact: FactId) -> str | None:
    return None if fact in state.facts else f"there is no current fact {fact!r}"


def bad_claim(state: WorldState, claim: Claim) -> str | None:
    problem = no_entity(state, claim.subject)
    if claim.object is None or problem is not None:
        return problem
    problem = no_entity(state, claim.object)
    if problem is None and state.resolve(claim.subject) == state.resolve(claim.object):
        return f"{claim.subject!r} cannot be related to itself ({claim.predicate})"
    return problem
