"""Campaigns in the store: what loading does to the world, and what it leaves alone."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.campaign import Campaign, Entity, Relationship
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import DM, Claim
from glyphoxa.world.event_kinds import EntityRemoved
from glyphoxa.world.event_log import Cause
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH, a_campaign
from tests.support.known_of import entities_of, known_of
from tests.support.patience import DEADLINE_S
from tests.support.postgres import the_one_that_waits

SALTMERE = Path(__file__).parents[1] / "support" / "campaign.yaml"
GRIMJAW, ELDRINAX, ORLA = EntityId("e-grimjaw"), EntityId("e-eldrinax"), EntityId("orla")
DECIDED = Cause("dm", 1_000)
SMITH_CLAIM = Claim.attribute(GRIMJAW, "description", "Grimjaw is a smith.")


def described(text: str) -> Campaign:
    entities = [replace(e, attributes={"description": text}) if e.id == GRIMJAW else e for e in a_campaign().entities]
    return replace(a_campaign(), entities=tuple(entities))


def without_eldrinax() -> Campaign:
    return replace(a_campaign(), entities=tuple(e for e in a_campaign().entities if e.id != ELDRINAX))


async def n_events(store: Store, campaign: CampaignId = CAMPAIGN) -> int:
    events = await store.world.events(campaign, limit=1, latest_first=True)
    return events[0].seq if events else 0


async def names(store: Store, campaign: CampaignId = CAMPAIGN) -> set[str]:
    return {entity.name for entity in await entities_of(store, campaign, DM)}


async def value(store: Store) -> object:
    """Grimjaw's description."""
    known = await known_of(store, CAMPAIGN, SMITH, GRIMJAW)
    assert known is not None
    return next((fact.claim.content for fact in known.attributes if fact.claim.predicate == "description"), None)


async def test_a_loaded_campaign_is_read_back_equal(store: Store) -> None:
    campaign = read_campaign(SALTMERE).campaign
    await store.campaigns.load(campaign)
    assert await store.campaigns.get(campaign.id) == campaign
    assert await store.campaigns.names() == {campaign.id: campaign.name}
    stored = {each.entity.id: each.entity for each in await PostgresInspection(store.database).entities(campaign.id)}
    for entity in campaign.entities:
        assert stored[entity.id] == entity


async def test_what_a_file_keeps_from_somebody_reaches_those_it_names_and_nobody_else(store: Store) -> None:
    campaign = a_campaign()
    crypt = Entity(EntityId("crypt"), "location", "The Crypt", (), {"depth": "deep"}, known_by=(SMITH,))
    king = Entity(EntityId("king"), "npc", "The Drowned King", hidden=True)
    knows = Relationship(GRIMJAW, crypt.id, "KNOWS")
    await store.campaigns.load(
        replace(campaign, entities=(*campaign.entities, crypt, king), relationships=(*campaign.relationships, knows))
    )
    for npc, crypts, secrets in ((SMITH, {"The Crypt"}, 1), (INNKEEPER, set(), 0)):
        seen = {entity.name for entity in await entities_of(store, CAMPAIGN, npc)}
        assert seen & {"The Crypt", "The Drowned King"} == crypts
        known = await known_of(store, CAMPAIGN, npc, GRIMJAW)
        assert known is not None
        assert {end.name for _, end in known.relations} == {"Mirelle", *crypts}
        assert [fact.claim.predicate for fact in known.attributes].count("secret") == secrets


async def test_a_change_of_the_file_can_be_undone_and_stays_undone(store: Store) -> None:
    await store.campaigns.load(a_campaign())
    await store.campaigns.load(described("A tired smith."))
    await store.world.undo(CAMPAIGN, [await n_events(store)], DECIDED)
    assert (await store.campaigns.load(described("A tired smith."))).is_empty
    assert await value(store) == "Grimjaw is a smith."


async def test_what_was_shown_is_what_is_done_or_nothing(store: Store) -> None:
    await store.campaigns.load(a_campaign())
    shown = await store.campaigns.changes(without_eldrinax())
    assert shown.removed == ("Eldrinax (npc)",)
    await store.world.commit(CAMPAIGN, [EntityRemoved(ELDRINAX)], DECIDED)
    with pytest.raises(InvalidInput, match="has changed in the meantime; nothing was loaded"):
        await store.campaigns.load(without_eldrinax(), only_if=shown)
    assert await store.campaigns.get(CAMPAIGN) == a_campaign()


async def test_a_campaign_that_cannot_be_held_leaves_nothing(store: Store) -> None:
    no_index_holds = EntityId(random.Random(1).randbytes(10_000).hex())
    impossible = Entity(no_index_holds, "npc", "Orla")
    with pytest.raises(InvalidInput, match="cannot hold this"):
        await store.campaigns.load(replace(a_campaign(), entities=(*a_campaign().entities, impossible)))
    assert await store.campaigns.ids() == []
    assert await store.campaigns.described(CAMPAIGN) is None


async def test_a_load_whose_connection_is_cut_off_leaves_nothing_or_everything(store: Store, dsn: str) -> None:
    other = replace(a_campaign(), id=CampaignId("other"))
    await store.campaigns.load(other)
    dm = await asyncpg.connect(dsn)
    # The events are written, and the document waits for this transaction: there it is cut off.
    async with dm.transaction(), asyncio.timeout(DEADLINE_S):
        await dm.execute("LOCK TABLE campaign_documents IN SHARE MODE")
        loading = asyncio.create_task(store.campaigns.load(a_campaign()))
        await the_one_that_waits(dm)
        await dm.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"
        )
    await dm.close()
    with pytest.raises(Unavailable):
        await loading
    assert await store.campaigns.ids() == ["other"]
    await store.campaigns.load(a_campaign())
    assert await store.campaigns.get(CAMPAIGN) == a_campaign()


async def test_two_who_load_the_same_campaign_at_once_tell_it_once(store: Store) -> None:
    found = await asyncio.gather(*(store.campaigns.load(a_campaign()) for _ in range(3)))
    assert sorted(f.is_empty for f in found) == [False, True, True]
    assert len(await names(store)) == len(a_campaign().entities)
    state = await store.world.now(CAMPAIGN)
    assert {fact.mentions for fact in state.facts.values()} == {1}


async def test_campaign_without_events_is_loaded_again(store: Store, dsn: str) -> None:
    """Its document is kept from then on, and nothing is in its world."""
    await store.campaigns.load(a_campaign())
    dm = await asyncpg.connect(dsn)
    async with dm.transaction():
        for table in ("relationships", "attribute_facts", "fact_history", "world_events", "entities"):
            await dm.execute(f"DELETE FROM {table}")
        await dm.execute("UPDATE campaign_documents SET seq = NULL")
    await dm.close()
    told = await store.campaigns.load(a_campaign())
    assert "Grimjaw (npc)" in told.added and await value(store) == "Grimjaw is a smith."
    assert (await store.campaigns.load(a_campaign())).is_empty


async def test_tables_of_an_earlier_checkout_stay_when_the_file_is_loaded_again(store: Store, dsn: str) -> None:
    await store.campaigns.load(a_campaign())
    old = {
        "entities": [{"id": ORLA, "type": "npc", "name": "Orla"}],
        "relationships": [{"source": ORLA, "target": ELDRINAX, "type": "KNOWS"}],
    }
    dm = await asyncpg.connect(dsn)
    sql = "UPDATE campaign_documents SET document = jsonb_set(document::jsonb, '{tables}', $1::jsonb)"
    await dm.execute(sql, json.dumps(old))
    await dm.close()
    assert [each.name for each in (await store.campaigns.get(CAMPAIGN)).entities][-1] == "Orla"
    assert (await store.campaigns.load(a_campaign())).is_empty
    assert (await store.campaigns.load(without_eldrinax())).removed == ("Eldrinax (npc)",)
    described = await store.campaigns.described(CAMPAIGN)
    assert described is not None
    assert [each.id for tables in described.imports.values() for each in tables.entities] == [ORLA]
