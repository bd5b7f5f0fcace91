"""Apply one event to a state: preconditions, effects, and the resulting status of facts.

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
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from glyphoxa.domain.campaign import SlotRule
from glyphoxa.domain.ids import EntityId, FactId
from glyphoxa.domain.knowledge import Claim, EndedAs, EndedFact, Fact, Provenance, Validity, Visibility
from glyphoxa.world.state import OPPOSITES, WorldState, rule_of

_EVER = -(2**63)
_Ground: TypeAlias = Literal["stale", "pending"]


class StatusUpdate:
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
        if rule not in ("functional", "functional_object") or any(_opposite(fact, rival) for rival in rivals):
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


def _opposite(fact: Fact, rival: Fact) -> bool:
    return OPPOSITES.get(fact.claim.predicate) == rival.claim.predicate


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
        self.status = StatusUpdate(state, seq)

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
