"""What events will ask of a partial state, so that it can be loaded at once. Only a guess: what is missing in it costs
a round trip (`Missing`), what is too much a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from glyphoxa.domain.ids import FactId
from glyphoxa.domain.knowledge import Claim, Fact
from glyphoxa.world.slots import OPPOSITES, rule_of
from glyphoxa.world.state import Key, claim_key


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
