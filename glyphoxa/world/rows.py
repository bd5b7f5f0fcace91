"""Rows of a campaign's world: what a state is loaded from, and what a change of it puts and takes away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from glyphoxa.domain.campaign import SlotRule
from glyphoxa.domain.ids import EntityId, FactId
from glyphoxa.domain.knowledge import PUBLIC, EndedFact, Fact, Origin, Visibility


@dataclass(frozen=True, slots=True)
class WorldEntity:
    """An entity without its attributes, which are facts."""

    id: EntityId
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    visibility: Visibility = PUBLIC
    origin: Origin = "dm"


@dataclass(frozen=True, slots=True)
class StateRows:
    """What a state is loaded from.

    Attributes:
        merges: Gone, kept.
        refused: Facts that ended because the DM refused them.
        ended: For a complete state only.
    """

    entities: Iterable[WorldEntity] = ()
    merges: Mapping[EntityId, EntityId] = field(default_factory=dict)
    facts: Iterable[Fact] = ()
    rules: Mapping[str, SlotRule] = field(default_factory=dict)
    refused: Iterable[FactId] = ()
    ended: Iterable[EndedFact] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows that are to be other than they were."""

    entities_put: tuple[WorldEntity, ...] = ()
    entities_gone: tuple[EntityId, ...] = ()
    merges_put: tuple[tuple[EntityId, EntityId], ...] = ()
    """Gone, kept."""
    merges_gone: tuple[EntityId, ...] = ()
    facts_put: tuple[Fact, ...] = ()
    facts_gone: tuple[FactId, ...] = ()
    ended_put: tuple[EndedFact, ...] = ()
    ended_gone: tuple[tuple[FactId, int], ...] = ()
    """Fact and the event that ended it."""
    rules_put: tuple[tuple[str, SlotRule], ...] = ()
    rules_gone: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self == Changes()


def changes_of(tables: Mapping[str, tuple[Mapping[Any, Any], Mapping[Any, Any]]]) -> Changes:
    """
    Args:
        tables: Of each, rows before and rows after, of the keys in question; an absent row is None or not there.
    """

    def put(table: str) -> tuple[Any, ...]:
        before, after = tables[table]
        return tuple(row for key, row in after.items() if before.get(key) != row)

    def put_pairs(table: str) -> tuple[Any, ...]:
        before, after = tables[table]
        return tuple((key, row) for key, row in after.items() if before.get(key) != row)

    def gone(table: str) -> tuple[Any, ...]:
        before, after = tables[table]
        return tuple(key for key, row in before.items() if row is not None and key not in after)

    return Changes(
        entities_put=put("entities"),
        entities_gone=gone("entities"),
        merges_put=put_pairs("merged"),
        merges_gone=gone("merged"),
        facts_put=put("facts"),
        facts_gone=gone("facts"),
        ended_put=put("ended"),
        ended_gone=gone("ended"),
        rules_put=put_pairs("rules"),
        rules_gone=gone("rules"),
    )
