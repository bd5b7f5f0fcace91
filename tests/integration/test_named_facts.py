"""A world in memory, beside the database that it is read from."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import CampaignId
from glyphoxa.domain.knowledge import DM, Viewer
from glyphoxa.recall.world import World, WorldMemory
from glyphoxa.world.entity_events import EntityAdded
from glyphoxa.world.events import Cause, dropped
from tests.support.world_histories import ENTITIES, NPCS, an_event
from tests.support.world_tables import a_campaign_row, everything

NOW = 100


def held_by(store: Store, campaign: CampaignId) -> WorldMemory:
    """Another process's."""
    return WorldMemory(store.world, campaign, now_ms=lambda: NOW)


async def says_what_a_new_one_says(store: Store, campaign: CampaignId, world: World | None) -> None:
    """Compare a world that followed the events with one that is read from the tables."""
    assert world is not None
    fresh = held_by(store, campaign)
    read = await fresh.refresh()
    viewers: tuple[Viewer, ...] = (DM, *NPCS)
    for entity in ENTITIES:
        for viewer in viewers:
            assert world.known(viewer, entity) == read.known(viewer, entity)
            assert world.reach(viewer, entity, depth=3, limit=10) == read.reach(viewer, entity, depth=3, limit=10)
        for npc in NPCS:
            assert world.identity(npc, entity) == read.identity(npc, entity)
    await fresh.reading.close()


@pytest.mark.parametrize("seed", range(6))
async def test_a_world_in_memory_says_what_the_database_says_whatever_happens(store: Store, seed: int) -> None:
    """And another that is read at the end says the same."""
    campaign, chance = CampaignId("c"), random.Random(seed)
    await a_campaign_row(store, campaign)
    people = [EntityAdded(entity, "npc", entity.title()) for entity in chance.sample(ENTITIES, 4)]
    await store.world.commit(campaign, people, Cause("dm", 0))
    followed, again = held_by(store, campaign), held_by(store, campaign)
    for step in range(16):
        await followed.refresh()
        await says_what_a_new_one_says(store, campaign, followed.world)
        cause, state = Cause("dm", 10 * step + 10), await everything(store, campaign)
        if chance.random() < 0.15:
            events = await store.world.events(campaign)
            left = sorted({event.seq for event in events} - dropped(events))
            with suppress(NotFound):
                await store.world.undo(campaign, [chance.choice(left)], cause)
        else:
            with suppress(InvalidInput):
                await store.world.commit(campaign, [an_event(chance, state)], cause)
    worlds = [await held.refresh() for held in (followed, again)]
    question = " and ".join(entity.title() for entity in ENTITIES)
    for npc in NPCS:
        assert worlds[1].by_name(npc, question) == worlds[0].by_name(npc, question)
    for held in (followed, again):
        await held.reading.close()
