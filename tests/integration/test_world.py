"""The world as it is kept: what is committed is in the tables, and a replay of the log gives the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import asyncpg
import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from glyphoxa.domain.knowledge import Claim, Fact, Provenance, secret_of
from glyphoxa.memory.world.happenings import (
    AliasAdded,
    Cause,
    EntitiesMerged,
    EntityAdded,
    EntityRemoved,
    FactClosed,
    FactConfirmed,
    FactReplaced,
    FactStated,
    Happening,
    SlotDeclared,
    Undone,
)
from glyphoxa.memory.world.state import WorldState
from tests.support.world_tables import a_campaign_row, everything, stands_as_replayed

TOWN = CampaignId("town")
MIRA, INN, FORGE, SWORD = EntityId("mira"), EntityId("inn"), EntityId("forge"), EntityId("sword")
DM = Cause("dm", 1_000)
PEOPLE = (
    EntityAdded(MIRA, "npc", "Mira", ("the innkeeper",)),
    EntityAdded(INN, "location", "The Inn"),
    EntityAdded(FORGE, "location", "The Forge"),
    EntityAdded(SWORD, "item", "The Sword"),
)


@pytest.fixture
async def town(store: Store) -> Store:
    await a_campaign_row(store, TOWN)
    await store.world.commit(TOWN, PEOPLE, DM)
    return store


def at(place: EntityId, **of_fact: object) -> FactStated:
    return FactStated(Claim.relation(MIRA, "LOCATED_AT", place), **of_fact)  # type: ignore[arg-type]


async def test_what_is_stated_is_in_the_tables(town: Store) -> None:
    events = await town.world.commit(TOWN, [at(INN), FactStated(Claim.attribute(MIRA, "occupation", "innkeeper"))], DM)
    assert [event.seq for event in events] == [5, 6]
    state = await everything(town, TOWN)
    assert state.facts[at(INN).claim.fact_id].status == "accepted"
    assert await town.world.events(TOWN, after=4) == events
    await stands_as_replayed(town, TOWN)
