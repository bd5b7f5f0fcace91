"""The projections in the tables, for comparison with the log."""

from __future__ import annotations

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.tables import WorldTables
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.world.entity_events import EntityAdded
from glyphoxa.world.events import Cause, difference, replay
from glyphoxa.world.state import WorldState

TOWN = CampaignId("town")
MIRA, INN, FORGE, SWORD = EntityId("mira"), EntityId("inn"), EntityId("forge"), EntityId("sword")
DM = Cause("dm", 1_000)


async def a_town(store: Store, campaign: CampaignId) -> None:
    """A campaign with four entities, of which nothing is known: events 1 to 4."""
    await a_campaign_row(store, campaign)
    people = (
        EntityAdded(MIRA, "npc", "Mira", ("the innkeeper",)),
        EntityAdded(INN, "location", "The Inn"),
        EntityAdded(FORGE, "location", "The Forge"),
        EntityAdded(SWORD, "item", "The Sword"),
    )
    await store.world.commit(campaign, people, DM)


async def told_of(store: Store, campaign: CampaignId, entity: EntityId) -> dict[str, object]:
    """Its attributes, as `entities` shows them."""
    async with store.database.use(campaign) as connection:
        found: dict[str, object] = await connection.fetchval(
            "SELECT attributes FROM entities WHERE campaign_id = $1 AND id = $2", campaign, entity
        )
    return found


async def a_campaign_row(store: Store, campaign: CampaignId, *, language: str = "en") -> None:
    async with store.database.use(None) as connection:
        await connection.execute(
            "INSERT INTO campaigns (id, name, language) VALUES ($1, $1, $2) ON CONFLICT DO NOTHING", campaign, language
        )


async def everything(store: Store, campaign: CampaignId) -> WorldState:
    async with store.database.use(campaign) as connection, connection.transaction():
        return await WorldTables(connection, campaign).read(with_ended=True)


async def stands_as_replayed(store: Store, campaign: CampaignId) -> WorldState:
    """Fails unless each projection says what a replay of the log says; returns that."""
    replayed = replay(await store.world.events(campaign, limit=100_000))
    stored = await everything(store, campaign)
    assert difference(stored, replayed).is_empty
    async with store.database.use(campaign) as connection:
        told = await connection.fetch("SELECT id, attributes FROM entities WHERE campaign_id = $1", campaign)
        rests = await connection.fetch("SELECT support_id, fact_id FROM fact_supports WHERE campaign_id = $1", campaign)
        ways = await connection.fetch(
            "SELECT fact_id, source_id, target_id FROM relationships WHERE campaign_id = $1", campaign
        )
    assert {row["id"]: row["attributes"] for row in told} == _attributes(replayed)
    assert sorted(map(tuple, rests)) == sorted((on, f.id) for f in replayed.facts.values() for on in f.supports)
    assert sorted(map(tuple, ways)) == sorted(way for fact in replayed.facts.values() for way in _ways(fact))
    return replayed


def _attributes(state: WorldState) -> dict[EntityId, dict[str, object]]:
    values: dict[EntityId, dict[str, list[object]]] = {entity: {} for entity in state.entities}
    for fact in sorted(state.facts.values(), key=lambda fact: (fact.seq, fact.id)):
        if fact.claim.object is None and fact.status == "accepted" and fact.visibility.scope == "public":
            values[fact.claim.subject].setdefault(fact.claim.predicate, []).append(fact.claim.content)
    return {
        entity: {name: held[0] if len(held) == 1 else held for name, held in of_entity.items()}
        for entity, of_entity in values.items()
    }


def _ways(fact: Fact) -> set[tuple[str, str, str]]:
    claim = fact.claim
    if claim.object is None:
        return set()
    ways = {(fact.id, claim.subject, claim.object)}
    if claim.predicate in ("ALLIED_WITH", "HOSTILE_TO"):
        ways.add((fact.id, claim.object, claim.subject))
    return ways
