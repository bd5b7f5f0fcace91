"""Whom and what a DM means by a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SpeakerId
from glyphoxa.speech.language.words import fold

DM_SPEAKER: Final = SpeakerId("dm")
"""The DM, as who told somebody something."""


@dataclass(frozen=True, slots=True)
class NameResolver:
    """The entities of a campaign as they are now, its NPCs and its players. A name counts in any case, without accents
    and spaces; an id counts as it is.
    """

    campaign: CampaignId
    entities: Mapping[EntityId, Entity]
    npcs: tuple[Npc, ...] = ()
    players: tuple[Player, ...] = ()

    @classmethod
    def of(cls, campaign: Campaign, entities: Iterable[Entity]) -> NameResolver:
        """
        Args:
            entities: Of the graph, as the DM sees it: more than the campaign's file tells.
        """
        return cls(campaign.id, {each.id: each for each in entities}, campaign.npcs, campaign.players)

    def with_names(self, names: Mapping[EntityId, str]) -> NameResolver:
        """The same, where these entities are called so."""
        called = {
            each: replace(self.entities[each], name=name) if each in self.entities else Entity(each, "", name)
            for each, name in names.items()
        }
        return replace(self, entities={**self.entities, **called})

    def entity(self, name: str) -> Entity:
        """The entity of this id, name or alias, in this order.

        Raises:
            NotFound: There is none.
            InvalidInput: It may be several.
        """
        if (known := self.entities.get(EntityId(name))) is not None:
            return known
        wanted = fold(name)
        found = [each for each in self.entities.values() if wanted and fold(each.name) == wanted]
        found = found or [each for each in self.entities.values() if wanted and wanted in map(fold, each.aliases)]
        if not found:
            names = [called for each in self.entities.values() for called in (each.name, *each.aliases)]
            raise NotFound(f"no entity {name!r} in campaign {self.campaign!r}: {did_you_mean(name, names)}")
        if len(found) > 1:
            several = ", ".join(f"{each.name} ({each.type}, id {each.id})" for each in found)
            raise InvalidInput(f"{name!r} may be several entities: {several}; say its id")
        return found[0]

    def npc(self, name: str) -> NpcId:
        """The NPC of this id, name or alias, in this order.

        Raises:
            NotFound: There is none. An entity that no NPC of the campaign plays knows nothing.
            InvalidInput: It may be several.
        """
        wanted = fold(name)
        found = [npc for npc in self.npcs if npc.id == name]
        found = found or [npc for npc in self.npcs if wanted and wanted in map(fold, self._names_of(npc))]
        found = found or [npc for npc in self.npcs if wanted and wanted in map(fold, self._aliases_of(npc))]
        if not found:
            names = [called for npc in self.npcs for called in (*self._names_of(npc), *self._aliases_of(npc))]
            raise NotFound(f"no NPC {name!r} in campaign {self.campaign!r}: {did_you_mean(name, names)}")
        if len(found) > 1:
            several = ", ".join(f"{npc.name} (id {npc.id})" for npc in found)
            raise InvalidInput(f"{name!r} may be several NPCs: {several}; say its id")
        return found[0].id

    def played(self, npc: NpcId) -> EntityId | None:
        """The entity that this NPC is; None when it is in the graph no more."""
        return next((each.entity_id for each in self.npcs if each.id == npc and each.entity_id in self.entities), None)

    def speaker(self, name: str) -> SpeakerId:
        """Somebody who says things: an NPC, a player or "dm".

        Raises:
            NotFound: It is none of them.
        """
        if fold(name) == DM_SPEAKER:
            return DM_SPEAKER
        for player in self.players:
            if name == player.id or (fold(name) and fold(name) == fold(player.name)):
                return SpeakerId(player.id)
        try:
            return SpeakerId(self.npc(name))
        except NotFound:
            names = [DM_SPEAKER, *(player.name for player in self.players), *(npc.name for npc in self.npcs)]
            raise NotFound(
                f"{name!r} is nobody who speaks in campaign {self.campaign!r}: {did_you_mean(name, names)}"
            ) from None

    def called(self, entity: EntityId) -> str:
        """What the DM calls it; its id when it is gone."""
        known = self.entities.get(entity)
        return entity if known is None else known.name

    def person(self, who: NpcId | SpeakerId) -> str:
        """The name of an NPC, a player or the DM; the id of anybody else."""
        if who == DM_SPEAKER:
            return "the DM"
        for npc in self.npcs:
            if npc.id == who:
                return npc.name
        return next((each.name for each in self.players if SpeakerId(each.id) == who), who)

    def _names_of(self, npc: Npc) -> tuple[str, ...]:
        """In its campaign file, and since then."""
        entity = self.entities.get(npc.entity_id)
        return (npc.name,) if entity is None else (npc.name, entity.name)

    def _aliases_of(self, npc: Npc) -> tuple[str, ...]:
        entity = self.entities.get(npc.entity_id)
        return npc.aliases if entity is None else (*npc.aliases, *entity.aliases)
