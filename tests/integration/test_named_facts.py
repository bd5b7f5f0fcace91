"""Who is named, over a world in memory, beside the database that it is read from."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId
from glyphoxa.domain.knowledge import DM, Claim, Fact, Viewer, secret_of
from glyphoxa.recall.world import World, WorldMemory
from glyphoxa.world.entity_events import AliasAdded, EntityAdded, EntityScoped
from glyphoxa.world.events import Cause, dropped
from glyphoxa.world.fact_events import FactStated
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH, a_campaign, an_utterance
from tests.support.network import a_network
from tests.support.world_histories import ENTITIES, NPCS, an_event
from tests.support.world_tables import a_campaign_row, everything

NOW = 100
ELDRINAX, SECOND = EntityId("e-eldrinax"), SessionId("s2")
BY_DM = Cause("dm", NOW)


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


async def named(store: Store, question: str, npc: NpcId = SMITH) -> list[str]:
    world = await store.world_memory(CAMPAIGN).refresh()
    return [one.known.entity.name for one in world.by_name(npc, question)]


async def test_an_open_table_knows_what_the_dm_changes_in_another_process(
    store: Store,
    dsn: str,
) -> None:
    await store.campaigns.load(a_campaign())
    assert await named(store, "Has Eldrinax paid the smith?") == ["Eldrinax", "Grimjaw"]
    async with open_store(dsn) as desk:
        await desk.world.commit(CAMPAIGN, [AliasAdded(ELDRINAX, "the Old Man")], BY_DM)
        assert await named(store, "Where is the old man?") == ["Eldrinax"]
        await desk.world.commit(CAMPAIGN, [EntityScoped(ELDRINAX, secret_of([INNKEEPER]))], BY_DM)
        assert await named(store, "Where is the old man?") == []
        assert await named(store, "Where is the old man?", INNKEEPER) == ["Eldrinax"]


async def test_what_is_rolled_back_is_not_known_any_more(store: Store) -> None:
    await store.campaigns.load(a_campaign())
    said = replace(an_utterance("Eldrinax fears Mirelle.", id="u1"), session_id=SECOND)
    await store.log.append([said, replace(said, id=an_utterance("", id="u2").id, at_ms=said.at_ms + 1)])
    learned = Claim.relation(ELDRINAX, "FEARS", EntityId("e-mirelle"))
    await store.world.commit(CAMPAIGN, [FactStated(learned)], Cause("talk", NOW, SECOND, 2, said.id))

    async def fears() -> list[Fact]:
        (one, *_) = (await store.world_memory(CAMPAIGN).refresh()).by_name(SMITH, "What of Eldrinax?")
        return [fact for fact, _ in one.known.relations if fact.claim == learned]

    assert len(await fears()) == 1
    event = await store.world.rollback(CAMPAIGN, SECOND, 1, BY_DM)
    assert event is not None
    assert await fears() == []
    await store.world.undo(CAMPAIGN, [event.seq], BY_DM)
    assert len(await fears()) == 1


async def test_while_the_database_is_away_who_is_named_is_known(dsn: str) -> None:
    async with a_network(dsn) as network, open_store(network.dsn) as table:
        await table.campaigns.load(a_campaign())
        before = await named(table, "Has Eldrinax paid the smith?")
        network.cut()
        with pytest.raises(Unavailable):
            await table.world_memory(CAMPAIGN).refresh()
        world = table.world_memory(CAMPAIGN).world
        assert world is not None
        found = world.by_name(SMITH, "Has Eldrinax paid the smith?")
        assert [one.known.entity.name for one in found] == before
        network.well()
        assert await named(table, "Has Eldrinax paid the smith?") == before
