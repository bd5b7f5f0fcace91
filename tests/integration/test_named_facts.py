"""Who is named, over a world in memory, beside the database that it is read from."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId
from glyphoxa.domain.knowledge import DM, Claim, Fact, Viewer, secret_of
from glyphoxa.recall.world import World, WorldMemory
from glyphoxa.world.entity_events import AliasAdded, EntityAdded, EntityScoped
from glyphoxa.world.events import Cause, dropped
from glyphoxa.world.fact_events import FactStated
from glyphoxa.world.graph import Known
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


def _holds(fact: Fact) -> bool:
    since, until = fact.validity.from_ms, fact.validity.to_ms
    return (since is None or since <= NOW) and (until is None or until > NOW)


def as_held(known: Known | None) -> Known | None:
    """Return the graph's answer without facts of other times, and with attributes as facts alone."""
    if known is None:
        return None
    return Known(
        replace(known.entity, attributes={}),
        tuple(fact for fact in known.attributes if _holds(fact)),
        tuple((fact, replace(other, attributes={})) for fact, other in known.relations if _holds(fact)),
    )


async def says_what_the_graph_says(store: Store, campaign: CampaignId, world: World | None) -> None:
    assert world is not None
    viewers: tuple[Viewer, ...] = (DM, *NPCS)
    for viewer in viewers:
        for entity in ENTITIES:
            known = world.known(viewer, entity)
            assert known == as_held(await store.graph.known(campaign, viewer, entity))
    for npc in NPCS:
        for entity in ENTITIES:
            mine = await store.graph.identity_snapshot(campaign, npc, entity)
            identity = world.identity(npc, entity)
            assert (None if identity is None else identity.known) == as_held(None if mine is None else mine.known)
            assert (() if identity is None else identity.secrets) == (
                () if mine is None else tuple(fact for fact in mine.secrets if _holds(fact))
            )


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
        await says_what_the_graph_says(store, campaign, followed.world)
        cause, state = Cause("dm", 10 * step + 10), await everything(store, campaign)
        if chance.random() < 0.15:
            events = await store.world.events(campaign)
            left = sorted({event.seq for event in events} - dropped(events))
            with suppress(NotFound):
                await store.world.undo(campaign, chance.choice(left), cause)
        else:
            with suppress(InvalidInput):
                await store.world.commit(campaign, [an_event(chance, state)], cause)
    worlds = [await held.refresh() for held in (followed, again)]
    question = " and ".join(entity.title() for entity in ENTITIES)
    for npc in NPCS:
        assert worlds[1].by_name(npc, question) == worlds[0].by_name(npc, question)
    for held in (followed, again):
        await held.close()


async def named(store: Store, question: str, npc: NpcId = SMITH) -> list[str]:
    world = await store.world_memory(CAMPAIGN).refresh()
    return [one.known.entity.name for one in world.by_name(npc, question)]


async def test_an_open_table_knows_what_the_dm_changes_in_another_process(
    store: Store, dsn: str, tmp_path: Path
) -> None:
    await store.campaigns.load(a_campaign())
    assert await named(store, "Has Eldrinax paid the smith?") == ["Eldrinax", "Grimjaw"]
    async with open_store(dsn, data_dir=tmp_path) as desk:
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
    await store.world.undo(CAMPAIGN, event.seq, BY_DM)
    assert len(await fears()) == 1


async def test_while_the_database_is_away_who_is_named_is_known(dsn: str, tmp_path: Path) -> None:
    async with a_network(dsn) as network, open_store(network.dsn, data_dir=tmp_path) as table:
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
