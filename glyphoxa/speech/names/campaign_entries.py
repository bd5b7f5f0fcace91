"""The names of a campaign, as a gazetteer is built from them."""

from __future__ import annotations

from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.names.naming import Entry


def entries_of(campaign: Campaign) -> list[Entry]:
    """The names of a campaign: its NPCs first, then its players, then all other entities."""
    entities = {entity.id: entity for entity in campaign.entities}
    public = {entity.id for entity in campaign.entities if not entity.hidden and not entity.known_by}
    listed: dict[EntityId, Entry] = {}
    for npc in campaign.npcs:
        entity = entities.get(npc.entity_id)
        name, aliases = (entity.name, (npc.name, *entity.aliases)) if entity else (npc.name, ())
        is_public = entity is None or entity.id in public
        listed[npc.entity_id] = Entry(name, npc.entity_id, "npc", (*aliases, *npc.aliases), is_public=is_public)
    for player in campaign.players:
        player_entity = EntityId(player.id)
        listed.setdefault(player_entity, Entry(player.name, player_entity, "player"))
    for entity in campaign.entities:
        listed.setdefault(
            entity.id, Entry(entity.name, entity.id, entity.type, entity.aliases, (), entity.id in public)
        )
    return list(listed.values())


def cast_of(campaign: Campaign) -> list[Entry]:
    """What those who sit at the table are called even where nothing is stored of them: NPCs that play, and players."""
    entities = {entity.id: entity for entity in campaign.entities}
    listed: dict[EntityId, Entry] = {}
    for npc in campaign.npcs:
        known = entities[npc.entity_id].aliases if npc.entity_id in entities else ()
        own = tuple(alias for alias in npc.aliases if alias not in known)
        listed[npc.entity_id] = Entry(npc.name, npc.entity_id, "npc", own)
    for player in campaign.players:
        listed.setdefault(EntityId(player.id), Entry(player.name, EntityId(player.id), "player"))
    return list(listed.values())
