"""One event on its way through a state, and what the effects of several kinds of events share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, Protocol

from glyphoxa.domain.ids import EntityId, FactId
from glyphoxa.domain.knowledge import Claim, Fact, Provenance, Visibility
from glyphoxa.world.state import OPPOSITES, Key, WorldState, claim_key, rule_of
from glyphoxa.world.status import StatusUpdate

_OPEN: Final = ("public", "witnessed", "told")
"""What the DM does not guard."""


class Statement(Protocol):
    """What is said of a claim, beyond the claim."""

    @property
    def provenance(self) -> Provenance: ...
    @property
    def visibility(self) -> Visibility: ...
    @property
    def attributes(self) -> Mapping[str, object]: ...
    @property
    def supports(self) -> tuple[FactId, ...]: ...


class Change:
    """
    Attributes:
        seq: Of the event.
        at_ms: When it happened.
    """

    def __init__(self, state: WorldState, *, seq: int, at_ms: int) -> None:
        self.state = state
        self.seq = seq
        self.at_ms = at_ms
        self.status = StatusUpdate(state, seq)

    def resolved(self, claim: Claim) -> Claim | None:
        """The claim in the words of the entities that are there; None when one is not."""
        ends = [claim.subject] if claim.object is None else [claim.subject, claim.object]
        if any(self.state.entity(end) is None for end in ends):
            return None
        return self.claim_of_kept(claim)

    def claim_of_kept(self, claim: Claim) -> Claim | None:
        """Of the entities into which its own were merged; None when both are one."""
        subject = self.state.resolve(claim.subject)
        if claim.object is None:
            return replace(claim, subject=subject)
        entity: EntityId = self.state.resolve(claim.object)
        return None if entity == subject else Claim.relation(subject, claim.predicate, entity)

    def free_id(self, claim: Claim) -> FactId:
        """The claim's own, unless a fact has it whose claim became another by a merge."""
        fact_id, n = claim.fact_id, 1
        while self.state.fact(fact_id) is not None:
            n += 1
            fact_id = FactId(f"{claim.fact_id}-{n}")
        return fact_id


def stated_again(held: Fact, stated: Statement) -> Fact:
    """What is heard once more is surer and better known; what the DM guards (secret, hidden) stays guarded, though
    somebody may have heard it.
    """
    old, new = held.provenance, stated.provenance
    visibility = _heard_again(held, stated)
    # What only some were told of it is told to nobody who learns of it otherwise.
    known = [said.attributes for said in (held, stated) if visibility.is_within(said.visibility)]
    return held.with_(
        provenance=new if (new.dm_confirmed, new.confidence) > (old.dm_confirmed, old.confidence) else old,
        visibility=visibility,
        attributes={name: value for attributes in known for name, value in attributes.items()},
        supports=_supports(held, stated),
        mentions=held.mentions + 1,
    )


def _heard_again(held: Fact, stated: Statement) -> Visibility:
    seen, told = held.visibility, stated.visibility
    if seen.scope in _OPEN:
        if told.scope == "public":
            return replace(seen, scope="public")
        if told.scope not in _OPEN and held.status != "accepted":
            return told  # nobody was told it before it became true
    return seen.known_to(*told.knowers)


def _supports(held: Fact, stated: Statement) -> tuple[FactId, ...]:
    """Who says it of his own accord needs no support."""
    if not held.supports or not stated.supports:
        return ()
    return stated.supports if held.status == "stale" else held.supports


# What events will ask of a partial state, so that it can be loaded at once. Only a guess: what is missing in it costs
# a round trip (`Missing`), what is too much a row.


def of_facts(facts: Iterable[Fact]) -> set[Key]:
    """What is asked once these facts are known: on what they rest, what rests on them and what rivals them."""
    keys: set[Key] = set()
    for fact in facts:
        keys.update(_dependents(fact.id))
        keys.update(("fact", support) for support in fact.supports)
        keys.update(_rivals(fact.claim))
    return keys


def of_claim(claim: Claim) -> Iterator[Key]:
    fact = claim.fact_id
    yield from of_fact(fact)
    yield "refused", fact
    yield claim_key(claim)
    yield "entity", claim.subject
    if claim.object is not None:
        yield "entity", claim.object
    yield from _rivals(claim)


def of_fact(fact: FactId) -> Iterator[Key]:
    yield "fact", fact
    yield from _dependents(fact)


def _rivals(claim: Claim) -> Iterator[Key]:
    """Those by the program's own rules: a slot that may hold many holds none."""
    match rule_of(claim, {}):
        case "one" | "functional":
            yield "slot", claim.subject, claim.predicate
        case "functional_object" if claim.object is not None:
            yield "object", claim.object, claim.predicate
        case _:
            pass
    if (opposite := OPPOSITES.get(claim.predicate)) is not None:
        yield "slot", claim.subject, opposite


def _dependents(fact: FactId) -> Iterator[Key]:
    yield "resting_on", fact
    yield "disputing", fact


# Why something cannot be said of the world as it is: None when it can. What several kinds of events ask.
#
# Raises:
#     Missing: The state is partial and lacks something.


def no_entity(state: WorldState, entity: EntityId) -> str | None:
    return None if state.entity(entity) is not None else f"there is no entity {entity!r}"


def no_fact(state: WorldState, fact: FactId) -> str | None:
    return None if state.fact(fact) is not None else f"there is no current fact {fact!r}"


def bad_claim(state: WorldState, claim: Claim) -> str | None:
    problem = no_entity(state, claim.subject)
    if claim.object is None or problem is not None:
        return problem
    problem = no_entity(state, claim.object)
    if problem is None and state.resolve(claim.subject) == state.resolve(claim.object):
        return f"{claim.subject!r} cannot be related to itself ({claim.predicate})"
    return problem
