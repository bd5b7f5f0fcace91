"""What "everybody" means: `known_in:` of an entity, or of a campaign, as the NPCs that a campaign's places reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from glyphoxa.config.campaign_blocks import CampaignDocument
from glyphoxa.config.located_yaml import YamlPath
from glyphoxa.domain.campaign import Entity, Npc, Relationship
from glyphoxa.domain.errors import did_you_mean
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.paths import reached_from


@dataclass(slots=True)
class Reach:
    """
    Args:
        entities: With who may know of them by name; those of the document first, in its order.

    Attributes:
        problems: Where, and what.
    """

    document: CampaignDocument
    entities: Sequence[Entity]
    npcs: Sequence[Npc]
    relationships: Sequence[Relationship]
    problems: list[tuple[YamlPath, str]] = field(default_factory=list)
    _reached: dict[tuple[str, ...], list[NpcId]] = field(default_factory=dict)

    def scoped(self) -> tuple[Entity, ...]:
        """The entities, with those who may know of them by a path as well."""
        by_name = {entity.name.casefold(): entity for entity in self.entities}
        of_all = self.document.campaign.known_in
        self._check(of_all, ("campaign", "known_in"), by_name)
        made = list(self.entities)
        for i, block in enumerate(self.document.entities):
            entity, places = self.entities[i], block.known_in
            at: YamlPath = ("entities", i, "known_in")
            if places is not None:
                self._check(places, at, by_name)
            elif of_all and not block.known_by and not block.hidden and block.type != "player":
                places, at = of_all, ("entities", i)
            if places and not self.problems:
                made[i] = self._known_in(entity, places, by_name, at)
        return tuple(made)

    def _check(self, places: Sequence[str], at: YamlPath, by_name: Mapping[str, Entity]) -> None:
        for j, place in enumerate(places):
            if place.casefold() not in by_name:
                hint = did_you_mean(place, (entity.name for entity in by_name.values()))
                self.problems.append(((*at, j), f"unknown entity {place!r}, {hint}"))

    def _known_in(self, entity: Entity, places: Sequence[str], by_name: Mapping[str, Entity], at: YamlPath) -> Entity:
        ids = frozenset(by_name[place.casefold()].id for place in places)
        own = [npc.id for npc in self.npcs if npc.entity_id == entity.id]
        reached = self._reached_from(ids)
        if not (own or entity.known_by or reached or entity.hidden):
            listed = ", ".join(places)
            self.problems.append(
                (
                    at,
                    f"nobody under `npcs:` has a path to {listed}, so that nobody would know of {entity.name!r}: "
                    "say who is LOCATED_AT there or KNOWS somebody there, give `known_by:`, or write `hidden: true`",
                )
            )
        known_by = dict.fromkeys((*own, *entity.known_by, *reached))
        # Known to all of them is known to everybody, players and their captions too.
        is_public = len(known_by) == len(self.npcs) and not entity.hidden
        return replace(entity, known_by=() if is_public else tuple(known_by))

    def _reached_from(self, places: frozenset[EntityId]) -> list[NpcId]:
        key = tuple(sorted(places))
        if key not in self._reached:
            self._reached[key] = reached_from(places, self.npcs, self.relationships)
        return self._reached[key]
