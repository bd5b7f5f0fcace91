"""What somebody knew at an earlier time."""

from __future__ import annotations

from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import Fact, Viewer
from glyphoxa.world.api import WorldState, may_know


def of_state(state: WorldState, viewer: Viewer, *, about: EntityId | None) -> list[Fact]:
    """Facts of a world of the past that the viewer knew, as `PostgresInspection.current` has those of now."""
    resolved = None if about is None else state.resolve(about)
    facts = [
        fact
        for fact in state.facts.values()
        if resolved in (None, fact.claim.subject, fact.claim.object) and may_know(viewer, fact, state.visibility_of)
    ]
    return sorted(facts, key=lambda fact: (fact.claim.subject, fact.claim.predicate, fact.id))
