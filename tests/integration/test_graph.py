from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.campaign import Campaign, Entity, Relationship
from glyphoxa.domain.errors import NotFound
from glyphoxa.domain.ids import CampaignId, EntityId
from tests.support.builders import CAMPAIGN, a_campaign

TIDE, SKARN = EntityId("tide"), EntityId("skarn")


def with_factions(campaign: Campaign) -> Campaign:
    return replace(
        campaign,
        entities=(*campaign.entities, Entity(TIDE, "faction", "The Tide"), Entity(SKARN, "faction", "Skarn")),
        relationships=(*campaign.relationships, Relationship(TIDE, SKARN, "HOSTILE_TO", confidence=0.8)),
    )


async def rows_of(store: Store, table: str) -> list[tuple[object, ...]]:
    async with store.database.use(CAMPAIGN) as connection:
        return [tuple(row) for row in await connection.fetch(f"SELECT xmin, * FROM {table} ORDER BY 2, 3, 4")]


async def test_a_loaded_campaign_is_read_back_equal(store: Store) -> None:
    campaign = with_factions(a_campaign())
    await store.graph.load(campaign)
    assert await store.graph.campaign(CAMPAIGN) == campaign
    assert sorted(await store.graph.entities(CAMPAIGN), key=lambda e: e.id) == sorted(
        campaign.entities, key=lambda e: e.id
    )
    assert [e.id for e in await store.graph.entities(CAMPAIGN, of_type="faction")] == [SKARN, TIDE]


@pytest.mark.parametrize("table", ["campaigns", "entities", "relationships"])
async def test_loading_the_same_campaign_again_writes_nothing(store: Store, table: str) -> None:
    """xmin is the transaction that last wrote a row."""
    await store.graph.load(with_factions(a_campaign()))
    before = await rows_of(store, table)
    await store.graph.load(with_factions(a_campaign()))
    assert await rows_of(store, table) == before


async def test_what_left_the_file_leaves_the_graph_and_what_changed_changes(store: Store) -> None:
    campaign = with_factions(a_campaign())
    await store.graph.load(campaign)
    renamed = replace(campaign.entity(TIDE), name="The Ebb", aliases=("Ebbers",))
    await store.graph.load(replace(campaign, entities=(*a_campaign().entities, renamed), relationships=()))
    assert {e.name for e in await store.graph.entities(CAMPAIGN, of_type="faction")} == {"The Ebb"}
    assert await store.graph.neighbourhood(CAMPAIGN, TIDE) == (renamed, [])


async def test_what_the_dm_added_by_hand_survives_a_reload(store: Store) -> None:
    await store.graph.load(a_campaign())
    async with store.database.use(CAMPAIGN) as connection:
        await connection.execute(
            "INSERT INTO entities (campaign_id, id, type, name, origin) VALUES ($1, 'new', 'npc', 'Orla', 'dm')",
            CAMPAIGN,
        )
    await store.graph.load(a_campaign())
    assert "Orla" in {e.name for e in await store.graph.entities(CAMPAIGN)}


async def test_a_relation_that_holds_both_ways_is_stored_both_ways_and_told_once(store: Store) -> None:
    """R-106, R-107"""
    await store.graph.load(with_factions(a_campaign()))
    for mine, other in ((TIDE, SKARN), (SKARN, TIDE)):
        _, related = await store.graph.neighbourhood(CAMPAIGN, mine)
        assert [(r.source, r.type, r.target, r.confidence, e.id) for r, e in related] == [
            (mine, "HOSTILE_TO", other, 0.8, other)
        ]


async def test_a_directed_relation_is_seen_from_both_ends(store: Store) -> None:
    """R-102, C-18"""
    await store.graph.load(a_campaign())
    for end, other in (("e-grimjaw", "e-mirelle"), ("e-mirelle", "e-grimjaw")):
        _, related = await store.graph.neighbourhood(CAMPAIGN, EntityId(end))
        assert [(r.source, r.target, e.id) for r, e in related] == [("e-mirelle", "e-grimjaw", other)]


async def test_one_campaign_never_sees_another(store: Store) -> None:
    """C-19"""
    other = replace(with_factions(a_campaign()), id=CampaignId("other"))
    await store.graph.load(a_campaign())
    await store.graph.load(other)
    assert await store.graph.neighbourhood(CAMPAIGN, TIDE) == (None, [])
    await store.graph.load(replace(other, entities=(), relationships=()))
    assert len(await store.graph.entities(CAMPAIGN)) == len(a_campaign().entities)


async def test_an_unknown_campaign_is_named_with_the_known_ones(store: Store) -> None:
    await store.graph.load(a_campaign())
    with pytest.raises(NotFound, match="no campaign 'twon' here: did you mean 'town'"):
        await store.graph.campaign(CampaignId("twon"))
