"""Answers of a world in memory to the tools of an NPC, against a slow reader of the same random worlds."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import DM, Claim, Fact, Validity, secret_of
from glyphoxa.recall.world import World
from glyphoxa.world.state import StateRows, WorldEntity, WorldState
from tests.support.proof import n_examples
from tests.support.random_graphs import CENTRE, VIEWERS, a_world, depths

NOW = 1_000
MIRA, GRIM = NpcId("mira"), NpcId("grim")
INN, MARKET, SWORD, NODE, SMITH = (EntityId(each) for each in ("inn", "market", "sword", "e-mira", "e-grim"))


def world_of(entities: list[WorldEntity], facts: list[Fact]) -> World:
    state = WorldState()
    state.load((), StateRows(entities=entities, facts=facts))
    return World(state, now_ms=lambda: NOW)


def related(*relations: tuple[EntityId, str, EntityId]) -> list[Fact]:
    claims = [Claim.relation(*each) for each in relations]
    return [Fact(claim.fact_id, claim, seq) for seq, claim in enumerate(claims, start=1)]


TOWN = [
    WorldEntity(NODE, "npc", "Mira"),
    WorldEntity(SMITH, "npc", "Grimjaw", ("the smith",)),
    WorldEntity(INN, "location", "The Salty Dog"),
    WorldEntity(MARKET, "location", "Market"),
    WorldEntity(SWORD, "item", "Moonblade"),
]
RELATED = related(
    (NODE, "LOCATED_AT", INN), (SMITH, "KNOWS", NODE), (SMITH, "LOCATED_AT", MARKET), (SMITH, "OWNS", SWORD)
)


@pytest.mark.parametrize("seed", range(n_examples(30)))
def test_path_is_as_short_as_any_the_viewer_may_know(seed: int) -> None:
    dice = random.Random(seed)
    town = a_world(dice, graphs=30)
    world = world_of(list(town.entities.values()), list(town.facts.values()))
    for viewer in VIEWERS:
        facts, there = town.facts_for(viewer), town.entities_for(viewer)
        known = {fact.id: fact for fact in facts}
        for _ in range(20):
            graph = dice.choice(town.graphs)
            source, target = dice.choice([*graph, CENTRE]), dice.choice([*graph, *dice.choice(town.graphs), CENTRE])
            depth = dice.choice((1, 3, 6))
            way = world.path(viewer, source, target, max_depth=depth)
            nearest = depths(facts, source, depth=depth).get(target) if {source, target} <= there else None
            assert (None if way is None else len(way)) == nearest
            at = source
            for fact, entity in way or ():
                assert known[fact.id] == fact
                assert {fact.claim.subject, fact.claim.object} == {at, entity.id}
                at = entity.id
            assert way is None or at == target


def test_path_names_each_relation_and_where_it_leads() -> None:
    way = world_of(TOWN, RELATED).path(MIRA, INN, SWORD)
    assert way is not None
    assert [(fact.claim.predicate, entity.id) for fact, entity in way] == [
        ("LOCATED_AT", NODE),
        ("KNOWS", SMITH),
        ("OWNS", SWORD),
    ]


def test_path_leads_past_nothing_that_is_secret_or_over() -> None:
    for hidden in (
        RELATED[1].with_(visibility=secret_of([GRIM])),
        RELATED[1].with_(status="pending"),
        replace(RELATED[1], validity=Validity(to_ms=NOW)),
    ):
        assert world_of(TOWN, [RELATED[0], hidden, *RELATED[2:]]).path(MIRA, INN, SWORD) is None
    unknown = [replace(one, visibility=secret_of([GRIM])) if one.id == SMITH else one for one in TOWN]
    world = world_of(unknown, RELATED)
    assert world.path(MIRA, INN, SWORD) is None
    assert world.path(MIRA, SMITH, SMITH) is None
    assert world.path(MIRA, INN, EntityId("nowhere")) is None
    assert world.path(MIRA, INN, INN) == []
    assert world.path(DM, INN, SWORD, max_depth=2) is None
    assert len(world.path(DM, INN, SWORD, max_depth=3) or ()) == 3


def test_two_citizens_are_related_by_their_capital_however_large_it_is() -> None:
    capital, citizens = EntityId("capital"), [EntityId(f"c{n}") for n in range(20_000)]
    entities = [WorldEntity(each, "npc", f"Citizen {each}") for each in citizens]
    facts = related(*((each, "LOCATED_AT", capital) for each in citizens))
    world = world_of([WorldEntity(capital, "location", "Highhold"), *entities], facts)
    way = world.path(MIRA, citizens[0], citizens[-1])
    assert [entity.id for _, entity in way or ()] == [capital, citizens[-1]]
    assert len(world.path(MIRA, capital, citizens[-1]) or ()) == 1
