"""What a happening will ask of a partial state, so that it can be loaded at once. Only a guess: what is missing in it
costs a round trip (`Missing`), what is too much a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from glyphoxa.domain.ids import FactId
from glyphoxa.domain.knowledge import Claim, Fact
from glyphoxa.world.events import (
    AliasAdded,
    AliasRemoved,
    EntitiesMerged,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    Event,
    FactClosed,
    FactConfirmed,
    FactRejected,
    FactReplaced,
    FactRevealed,
    FactScoped,
    FactStated,
    FactTold,
    RolledBack,
    SlotDeclared,
    Undone,
    UtteranceCorrected,
    UtteranceStruck,
)
from glyphoxa.world.slots import OPPOSITES, rule_of
from glyphoxa.world.state import Key, claim_key


def asked_by(happenings: Iterable[Event]) -> set[Key]:
    return {key for happening in happenings for key in _asked(happening)}


def asked_about(facts: Iterable[Fact]) -> set[Key]:
    """What is asked once these facts are known: on what they rest, what rests on them and what rivals them."""
    keys: set[Key] = set()
    for fact in facts:
        keys.update(_dependents(fact.id))
        keys.update(("fact", support) for support in fact.supports)
        keys.update(_rivals(fact.claim))
    return keys


def _asked(happening: Event) -> Iterator[Key]:
    match happening:
        case EntityAdded(entity=entity) | EntityChanged(entity=entity) | EntityScoped(entity=entity):
            yield "entity", entity
        case AliasAdded(entity=entity) | AliasRemoved(entity=entity):
            yield "entity", entity
        case EntityRemoved(entity=entity):
            yield "entity", entity
            yield "touching", entity
        case EntitiesMerged(kept, gone):
            for entity in (kept, gone):
                yield "entity", entity
                yield "touching", entity
        case FactStated(claim=claim, supports=supports):
            yield from _of_claim(claim)
            yield from (("fact", support) for support in supports)
        case FactReplaced(fact=fact, claim=claim):
            yield from _of_claim(claim)
            yield from _of_fact(fact)
        case FactConfirmed(fact=fact) | FactRejected(fact=fact) | FactClosed(fact=fact):
            yield from _of_fact(fact)
        case FactScoped(fact=fact) | FactRevealed(fact=fact) | FactTold(fact=fact):
            yield "fact", fact
        case SlotDeclared() | Undone() | RolledBack() | UtteranceStruck() | UtteranceCorrected():
            return
        case _:
            assert_never(happening)


def _of_claim(claim: Claim) -> Iterator[Key]:
    fact = claim.fact_id
    yield from _of_fact(fact)
    yield "refused", fact
    yield claim_key(claim)
    yield "entity", claim.subject
    if claim.object is not None:
        yield "entity", claim.object
    yield from _rivals(claim)


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


def _of_fact(fact: FactId) -> Iterator[Key]:
    yield "fact", fact
    yield from _dependents(fact)


def _dependents(fact: FactId) -> Iterator[Key]:
    yield "resting_on", fact
    yield "disputing", fact
