"""Why something cannot be said of the world as it is."""

from __future__ import annotations

from typing import assert_never

from glyphoxa.domain.ids import EntityId, FactId
from glyphoxa.domain.knowledge import Claim
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
from glyphoxa.world.state import WorldState


def problem_with(state: WorldState, happening: Event) -> str | None:
    """Why this cannot be said of the world as it is; None when it can.

    Raises:
        Missing: The state is partial and lacks something.
    """
    match happening:
        case EntityAdded():
            return None
        case EntityChanged(entity=entity) | AliasAdded(entity=entity) | AliasRemoved(entity=entity):
            return _no_entity(state, entity)
        case EntityScoped(entity=entity) | EntityRemoved(entity=entity):
            return _no_entity(state, entity)
        case EntitiesMerged(kept, gone):
            if (problem := _no_entity(state, kept) or _no_entity(state, gone)) is not None:
                return problem
            return f"{gone!r} and {kept!r} are one already" if state.resolve(gone) == state.resolve(kept) else None
        case FactStated(claim=claim):
            return _bad_claim(state, claim)
        case FactReplaced(fact=fact, claim=claim):
            return _no_fact(state, fact) or _bad_claim(state, claim)
        case FactConfirmed(fact=fact) | FactRejected(fact=fact) | FactClosed(fact=fact):
            return _no_fact(state, fact)
        case FactScoped(fact=fact) | FactRevealed(fact=fact) | FactTold(fact=fact):
            return _no_fact(state, fact)
        case SlotDeclared():
            return None
        case Undone() | RolledBack() | UtteranceStruck() | UtteranceCorrected():
            return "undoing is not stated: ask for it"
        case _:
            assert_never(happening)


def _no_entity(state: WorldState, entity: EntityId) -> str | None:
    return None if state.entity(entity) is not None else f"there is no entity {entity!r}"


def _no_fact(state: WorldState, fact: FactId) -> str | None:
    return None if state.fact(fact) is not None else f"there is no current fact {fact!r}"


def _bad_claim(state: WorldState, claim: Claim) -> str | None:
    problem = _no_entity(state, claim.subject)
    if claim.object is None or problem is not None:
        return problem
    problem = _no_entity(state, claim.object)
    if problem is None and state.resolve(claim.subject) == state.resolve(claim.object):
        return f"{claim.subject!r} cannot be related to itself ({claim.predicate})"
    return problem
