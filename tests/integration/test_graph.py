"""The graph's answers depend on the viewer in whose name it is asked."""

from __future__ import annotations

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId
from glyphoxa.domain.knowledge import DM, HIDDEN, Claim, Fact, Provenance, Viewer, Visibility, secret_of, witnessed_by
from glyphoxa.world.entity_events import EntitiesMerged, EntityAdded
from glyphoxa.world.events import Cause, Event
from glyphoxa.world.fact_events import FactStated
from tests.support.known_of import entities_of, known_of
from tests.support.world_tables import a_campaign_row

TOWN = CampaignId("town")
MIRA, GRIM, VEX = NpcId("mira"), NpcId("grim"), NpcId("vex")
NODE, SMITH, INN, MARKET, SWORD, GUILD, TIDE = (
    EntityId(each) for each in ("e-mira", "e-grim", "inn", "market", "sword", "guild", "tide")
)
CAUSE = Cause("dm", 1_000)


def relation(subject: EntityId, predicate: str, other: EntityId, **of_fact: object) -> FactStated:
    return FactStated(Claim.relation(subject, predicate, other), **of_fact)  # type: ignore[arg-type]


def says(subject: EntityId, name: str, value: object, **of_fact: object) -> FactStated:
    return FactStated(Claim.attribute(subject, name, value), **of_fact)  # type: ignore[arg-type]


HAPPENED: tuple[Event, ...] = (
    EntityAdded(NODE, "npc", "Mira"),
    EntityAdded(SMITH, "npc", "Grimjaw", ("the smith",)),
    EntityAdded(INN, "location", "The Salty Dog"),
    EntityAdded(MARKET, "location", "Market"),
    EntityAdded(SWORD, "item", "Moonblade"),
    EntityAdded(GUILD, "faction", "Night Guild", (), secret_of([VEX])),
    EntityAdded(TIDE, "faction", "The Tide"),
    relation(NODE, "LOCATED_AT", INN),
    relation(SMITH, "KNOWS", NODE, visibility=witnessed_by([MIRA, GRIM])),
    relation(SMITH, "LOCATED_AT", MARKET),
    relation(SMITH, "OWNS", SWORD),
    relation(NODE, "MEMBER_OF", GUILD, visibility=secret_of([MIRA, VEX])),
    relation(TIDE, "HOSTILE_TO", INN),
    says(NODE, "occupation", "innkeeper"),
    says(NODE, "rumour", "owes the harbour master", provenance=Provenance(confidence=0.4)),
    says(NODE, "secret", "waters the ale", visibility=secret_of([MIRA])),
    says(SMITH, "secret", "forged the false seal", visibility=secret_of([MIRA, GRIM])),
    says(SMITH, "note", "is a king's son", visibility=HIDDEN),
)


@pytest.fixture
async def town(store: Store) -> Store:
    await a_campaign_row(store, TOWN)
    await store.world.commit(TOWN, HAPPENED, CAUSE)
    return store


def told(facts: tuple[Fact, ...] | list[Fact]) -> list[tuple[str, object]]:
    return [(fact.claim.predicate, fact.claim.object or fact.claim.content) for fact in facts]


async def test_who_may_not_know_of_an_entity_is_told_of_none(town: Store) -> None:
    everything = {e.id for e in await entities_of(town, TOWN, DM)}
    assert everything == {NODE, SMITH, INN, MARKET, SWORD, GUILD, TIDE}
    assert {e.id for e in await entities_of(town, TOWN, MIRA)} == everything - {GUILD}
    assert [e.id for e in await entities_of(town, TOWN, VEX, of_type="faction")] == [GUILD, TIDE]
    assert await known_of(town, TOWN, MIRA, GUILD) is None


async def test_what_is_known_of_an_entity_has_the_facts_with_their_other_ends(town: Store) -> None:
    known = await known_of(town, TOWN, MIRA, NODE)
    assert known is not None
    assert told(known.attributes) == [("occupation", "innkeeper"), ("secret", "waters the ale")]
    assert [(f.claim.subject, f.claim.predicate, other.name) for f, other in known.relations] == [
        (SMITH, "KNOWS", "Grimjaw"),
        (NODE, "LOCATED_AT", "The Salty Dog"),
    ]


async def test_a_fact_is_known_only_where_both_ends_are(town: Store) -> None:
    """Mira knows that she is of a guild of which she may not know: nothing is told of it."""
    for viewer, types in ((MIRA, ["KNOWS", "LOCATED_AT"]), (VEX, ["LOCATED_AT", "MEMBER_OF"])):
        known = await known_of(town, TOWN, viewer, NODE)
        assert known is not None
        assert [fact.claim.predicate for fact, _ in known.relations] == types


async def test_what_waits_for_the_dm_is_told_to_nobody_else(town: Store) -> None:
    for viewer, n in ((MIRA, 0), (DM, 1)):
        known = await known_of(town, TOWN, viewer, NODE)
        assert known is not None
        assert [f.claim.predicate for f in known.attributes].count("rumour") == n


async def test_a_snapshot_holds_the_secrets_of_the_npc_whomever_they_are_about(town: Store) -> None:
    world = await town.world_memory(TOWN).refresh()
    snapshot = world.identity(MIRA, NODE)
    assert snapshot is not None
    assert told(snapshot.secrets) == [("secret", "waters the ale"), ("secret", "forged the false seal")]
    assert snapshot.known == await known_of(town, TOWN, MIRA, NODE)
    assert world.identity(MIRA, EntityId("nobody")) is None


async def test_a_relation_that_holds_both_ways_is_told_once_from_either_end(town: Store) -> None:
    for mine, other in ((TIDE, INN), (INN, TIDE)):
        known = await known_of(town, TOWN, DM, mine)
        assert known is not None
        assert [(f.claim.object, e.id) for f, e in known.relations if f.claim.predicate == "HOSTILE_TO"] == [
            (TIDE, other)
        ]


async def test_the_database_knows_the_relations_that_hold_both_ways(store: Store) -> None:
    async with store.database.use(None) as connection:
        for predicate, both in [("KNOWS", False), *((each, True) for each in BIDIRECTIONAL_RELATIONS)]:
            assert await connection.fetchval("SELECT glyphoxa_holds_both_ways($1)", predicate) is both


async def test_what_is_reached_is_sorted_by_distance_and_name(town: Store) -> None:
    world = await town.world_memory(TOWN).refresh()

    def reach(viewer: Viewer = DM, **how: int) -> list[tuple[EntityId, int]]:
        return [(one.entity.id, one.depth) for one in world.reach(viewer, NODE, **how)]

    assert reach(depth=0) == [(NODE, 0)]
    assert reach(depth=2, limit=2) == [(NODE, 0), (SMITH, 1)]
    everything = [(NODE, 0), (SMITH, 1), (GUILD, 1), (INN, 1), (MARKET, 2), (SWORD, 2), (TIDE, 2)]
    assert reach(depth=2) == everything
    assert reach(depth=50) == everything
    assert reach(MIRA, depth=1) == [(NODE, 0), (SMITH, 1), (INN, 1)]
    assert world.reach(MIRA, GUILD, depth=3) == []


async def test_nothing_is_reached_over_a_relation_that_needs_review(town: Store) -> None:
    await town.world.commit(TOWN, [relation(NODE, "OWES", SWORD, provenance=Provenance(confidence=0.4))], CAUSE)
    reached = (await town.world_memory(TOWN).refresh()).reach(DM, NODE, depth=1)
    assert SWORD not in {one.entity.id for one in reached}


async def test_a_fact_is_read_as_it_was_stated(town: Store) -> None:
    stated = relation(
        SMITH,
        "OWES",
        NODE,
        provenance=Provenance(0.9, "inferred", origin="talk", at_ms=7_123, reason="he said so"),
        visibility=Visibility.of("told", secret_of([GRIM]).knowers),
        attributes={"description": "ten crowns"},
    )
    await town.world.commit(TOWN, [stated], CAUSE)
    known = await known_of(town, TOWN, GRIM, SMITH)
    assert known is not None
    (fact,) = (each for each, _ in known.relations if each.claim.predicate == "OWES")
    assert (fact.id, fact.claim, fact.provenance, fact.visibility) == (
        FactId(stated.claim.fact_id),
        stated.claim,
        stated.provenance,
        stated.visibility,
    )
    assert fact.attributes == stated.attributes


async def test_who_asks_for_an_entity_that_was_merged_is_told_of_what_it_became(town: Store) -> None:
    await town.world.commit(TOWN, [EntitiesMerged(SMITH, NODE)], CAUSE)
    known = await known_of(town, TOWN, DM, NODE)
    assert known is not None
    assert known.entity.id == SMITH
    world = await town.world_memory(TOWN).refresh()
    assert world.reach(DM, NODE, depth=3) == world.reach(DM, SMITH, depth=3)


@pytest.mark.parametrize("view", ["ontology_nodes", "ontology_edges", "ontology_snapshots", "relationship_history"])
async def test_ontology_tools_find_their_own_names(town: Store, view: str) -> None:
    async with town.database.use(TOWN) as connection:
        rows = await connection.fetch(f"SELECT * FROM {view}")
    if view == "ontology_nodes":
        assert {row["title"]: row["semantic_kind"] for row in rows}["Moonblade"] == "item"
    if view == "ontology_edges":
        assert {(row["from_node_id"], row["relation_label"], row["to_node_id"]) for row in rows} >= {
            (SMITH, "OWNS", SWORD)
        }
