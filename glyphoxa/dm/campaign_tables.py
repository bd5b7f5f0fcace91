"""What was read from tables (CSV) beside a campaign file, and the campaign that both make together.

The campaign file is read again whenever a table opens, and leaves what came from tables alone; where both say
something of the same thing, the campaign file's word stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS, Campaign, Entity, Relationship


@dataclass(frozen=True, slots=True)
class Tables:
    """
    Attributes:
        relationships: Between entities of these tables, of the campaign file, or of the world.
    """

    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()

    def with_(self, more: Tables) -> Tables:
        """These and more: a later word on the same thing counts, and nothing goes."""
        return Tables(
            _joined((*more.entities, *self.entities), self.entities),
            _edges((*more.relationships, *self.relationships), self.relationships),
        )


def with_tables(campaign: Campaign, tables: Tables) -> Campaign:
    """The campaign of a file together with what came from tables."""
    return replace(
        campaign,
        entities=_joined((*campaign.entities, *tables.entities), campaign.entities),
        relationships=_edges((*campaign.relationships, *tables.relationships), campaign.relationships),
    )


def _joined(entities: Iterable[Entity], order: Iterable[Entity]) -> tuple[Entity, ...]:
    """One an id: of what is said several times, the first word counts.

    Args:
        order: Those that come first.
    """
    found: dict[str, Entity | None] = {entity.id: None for entity in order}
    for entity in entities:
        first = found.get(entity.id)
        found[entity.id] = entity if first is None else _both(first, entity)
    return tuple(entity for entity in found.values() if entity is not None)


def _both(first: Entity, other: Entity) -> Entity:
    aliases: dict[str, str] = {}
    for alias in (*first.aliases, *other.aliases):
        aliases.setdefault(alias.casefold(), alias)
    return replace(
        first,
        aliases=tuple(aliases.values()),
        attributes={**other.attributes, **first.attributes},
        # Whoever guards it is heeded.
        known_by=first.known_by or other.known_by,
        hidden=first.hidden or other.hidden,
    )


def _edges(relationships: Iterable[Relationship], order: Iterable[Relationship]) -> tuple[Relationship, ...]:
    found: dict[tuple[str, ...], Relationship | None] = {_key(relation): None for relation in order}
    for relation in relationships:
        first = found.get(_key(relation))
        if first is None:
            found[_key(relation)] = relation
        else:
            found[_key(relation)] = replace(
                first,
                attributes={**relation.attributes, **first.attributes},
                known_by=first.known_by or relation.known_by,
                hidden=first.hidden or relation.hidden,
            )
    return tuple(relation for relation in found.values() if relation is not None)


def _key(relation: Relationship) -> tuple[str, ...]:
    ends = (relation.source, relation.target)
    if relation.type in BIDIRECTIONAL_RELATIONS:
        ends = (min(ends), max(ends))
    return (*ends, relation.type)
