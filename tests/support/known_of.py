"""Read what a viewer may know of a stored world, as the program reads it into memory."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.recall.world import World
from glyphoxa.world.graph import Known


async def entities_of(store: Store, campaign: CampaignId, viewer: Viewer, *, of_type: str = "") -> list[Entity]:
    """Return the entities that a viewer may know of, by type and name, each with its public attributes."""
    world = await store.world_memory(campaign).refresh()
    found = sorted(world.entities(viewer, of_type=of_type), key=lambda one: (one.type, one.name, one.id))
    return [replace(one, attributes=_public(world, viewer, one.id)) for one in found]


def _public(world: World, viewer: Viewer, entity: EntityId) -> dict[str, object]:
    known = world.known(viewer, entity)
    facts = () if known is None else known.attributes
    return {fact.claim.predicate: fact.claim.content for fact in facts if fact.visibility.scope == "public"}


async def known_of(store: Store, campaign: CampaignId, viewer: Viewer, entity: EntityId) -> Known | None:
    """Return what a viewer may know of an entity."""
    return (await store.world_memory(campaign).refresh()).known(viewer, entity)
