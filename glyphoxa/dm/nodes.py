"""The memory graph as the DM sees it: nodes of the campaign's types with their fields, and what connects them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from glyphoxa.chronicle.timeline import FLOOR, PART_OF
from glyphoxa.domain.ids import EntityId, SessionId
from glyphoxa.domain.knowledge import Fact, Visibility
from glyphoxa.domain.node_types import NODE_TYPE_OF, Schema
from glyphoxa.transcript.sessions import tier_of
from glyphoxa.world.state import WorldEntity, WorldState

_OF_THE_STORE: Final = ("kind", FLOOR)
"""Attributes that are no field."""


@dataclass(frozen=True, slots=True)
class MemoryNode:
    """
    Attributes:
        type: The schema's name: an entity of type npc is a `character_sheet`.
        fields: Values by name: those of the type first, also without a value, then all others.
        session, floor: The utterance from which the node was last changed; None if it was not changed by talk.
        tier: The tier of an event node, see `glyphoxa.chronicle.timeline`.
        parent: The event node that sums it up.
    """

    id: EntityId
    type: str
    title: str
    visibility: Visibility
    fields: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    session: SessionId | None = None
    floor: int | None = None
    tier: int = 0
    parent: EntityId | None = None

    @property
    def values(self) -> dict[str, str]:
        """Return each field as one text."""
        return {name: "; ".join(map(str, values)) for name, values in self.fields.items()}

    def as_json(self) -> dict[str, object]:
        """Return the node as the memory graph document shows it."""
        return {
            "id": self.id,
            "type": self.type,
            "level": "semantic",
            "title": self.title,
            "fields": self.values,
            "floor": self.floor,
        }


def nodes_of(world: WorldState, schema: Schema) -> list[MemoryNode]:
    """Return the nodes of a world, ordered by type and title, with the facts that the DM accepted."""
    found = (_node(entity, world.touching(entity.id), schema) for entity in world.entities.values())
    return sorted(found, key=lambda node: (node.type, node.tier, node.title.casefold(), node.id))


def _node(entity: WorldEntity, facts: Iterable[Fact], schema: Schema) -> MemoryNode:
    type_ = schema.of_entity(entity.type)
    fields: dict[str, list[object]] = {name: [] for name in type_.fields}
    parent: EntityId | None = None
    said: list[tuple[int, SessionId | None, int | None]] = []
    for fact in facts:
        claim, by = fact.claim, fact.provenance
        if claim.subject != entity.id or fact.status != "accepted":
            continue
        if by.ordinal is not None:
            said.append((by.at_ms or 0, by.session_id, by.ordinal))
        if claim.object is None and claim.predicate not in _OF_THE_STORE:
            fields.setdefault(claim.predicate, []).append(claim.content)
        elif claim.predicate == PART_OF:
            parent = claim.object
    if "aliases" in fields:
        fields["aliases"] = [*entity.aliases]
    _, session, floor = max(said, key=lambda one: one[0], default=(0, None, None))
    return MemoryNode(
        entity.id,
        entity.type if entity.type in schema.declared else NODE_TYPE_OF.get(entity.type, entity.type),
        entity.name,
        entity.visibility,
        {name: tuple(values) for name, values in fields.items()},
        session,
        floor,
        tier_of(entity.id),
        parent,
    )
