"""Why something cannot be said of the world as it is: None when it can. What several kinds of events ask.

Raises:
    Missing: The state is partial and lacks something.
"""

from __future__ import annotations

from glyphoxa.domain.ids import EntityId, FactId
from glyphoxa.domain.knowledge import Claim
from glyphoxa.world.state import WorldState


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
