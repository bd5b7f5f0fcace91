"""The memory graph as the DM sees it: nodes of the campaign's types with their fields."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from glyphoxa.chronicle.timeline import FLOOR
from glyphoxa.domain.campaign import Entity, Schema
from glyphoxa.domain.ids import EntityId, SessionId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.language.facts import value_in_words
from glyphoxa.transcript.sessions import EPISODE

_OF_THE_STORE: Final = ("kind", FLOOR)
"""Attributes of the entity of a summary that are no field."""


@dataclass(frozen=True, slots=True)
class MemoryNode:
    """
    Attributes:
        type: The schema's name: an entity of type npc is a `character_sheet`.
        fields: Values by name: those of the type first, also without a value, then all others.
        session, floor: The utterance from which the node was last changed; None if it was not changed by talk.
    """

    id: EntityId
    type: str
    title: str
    fields: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    session: SessionId | None = None
    floor: int | None = None

    @property
    def values(self) -> dict[str, str]:
        """Return each field as one text."""
        return {name: "; ".join(map(value_in_words, values)) for name, values in self.fields.items()}

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


def nodes_of(entities: Iterable[Entity], facts: Iterable[Fact], schema: Schema) -> list[MemoryNode]:
    """Return entities as nodes, in their order, with the accepted ones of these facts."""
    about: defaultdict[EntityId, list[Fact]] = defaultdict(list)
    for fact in facts:
        about[fact.claim.subject].append(fact)
    return [_node(entity, about[entity.id], schema) for entity in entities]


def _node(entity: Entity, facts: Iterable[Fact], schema: Schema) -> MemoryNode:
    type_ = schema.of_entity(entity.type)
    no_fields = _OF_THE_STORE if entity.type == "event" and entity.id.startswith(f"{EPISODE}-") else ()
    fields: dict[str, list[object]] = {name: [] for name in type_.fields}
    said: list[tuple[int, SessionId | None, int | None]] = []
    for fact in facts:
        claim, by = fact.claim, fact.provenance
        if fact.status != "accepted":
            continue
        if by.ordinal is not None:
            said.append((by.at_ms or 0, by.session_id, by.ordinal))
        if claim.object is None and claim.predicate not in no_fields:
            fields.setdefault(claim.predicate, []).append(claim.content)
    if "aliases" in fields:
        fields["aliases"] = [*entity.aliases]
    _, session, floor = max(said, key=lambda one: one[0], default=(0, None, None))
    return MemoryNode(
        entity.id,
        schema.name_of(entity.type),
        entity.name,
        {name: tuple(values) for name, values in fields.items()},
        session,
        floor,
    )
