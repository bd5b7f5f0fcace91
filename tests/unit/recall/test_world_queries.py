"""Answers of a world in memory to the tools of an NPC, against a slow reader of the same random worlds."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import chain, product

import pytest

from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import DM, Claim, Fact, Validity, secret_of
from glyphoxa.recall.world import World
from glyphoxa.world.state import WorldEntity, WorldState
from tests.support.proof import n_examples
from tests.support.random_graphs import CENTRE, VIEWERS, WORDS, a_world, depths

NOW = 1_000
MIRA, GRIM = NpcId("mira"), NpcId("grim")
INN, MARKET, SWORD, NODE, SMITH = (EntityId(each) for each in ("inn", "market", "sword", "e-mira", "e-grim"))


def world_of(entities: list[WorldEntity], facts: list[Fact]) -> World:
    state = WorldState()
    state.load(entities=entities, facts=facts)
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
def test_visible_subgraph_of_an_npc_is_its_entity_and_what_is_directly_related(seed: int) -> None:
    town = a_world(random.Random(seed), graphs=30)
    world = world_of(list(town.entities.values()), list(town.facts.values()))
    for viewer in VIEWERS:
        known = world.known(viewer, CENTRE)
        assert known is not None
        related_to = {other.id for fact, other in known.relations if fact.status == "accepted"}
        assert {one.entity.id for one in world.reach(viewer, CENTRE, depth=1)} == {CENTRE, *related_to}
        accepted = [fact for fact in town.facts_for(viewer) if fact.status == "accepted"]
        walked = world.reach(viewer, CENTRE, depth=4, most_relations=None)
        assert {one.entity.id: one.depth for one in walked} == depths(accepted, CENTRE, depth=4)
        assert world.reach(viewer, CENTRE, depth=4, limit=30, most_relations=None) == walked[:30]


@pytest.mark.parametrize("seed", range(n_examples(30)))
def test_what_is_known_of_an_entity_is_all_that_the_viewer_may_know_and_no_more(seed: int) -> None:
    town = a_world(random.Random(seed), graphs=30)
    world = world_of(list(town.entities.values()), list(town.facts.values()))
    for entity, viewer in product((CENTRE, *chain(*town.graphs)), VIEWERS):
        known = world.known(viewer, entity)
        assert (known is not None) == (entity in town.entities_for(viewer))
        facts = {fact.id: fact for fact in town.facts_for(viewer) if entity in fact.claim.ends}
        if known is not None:
            relations = {fact.id: other.id for fact, other in known.relations}
            assert {fact.id: fact for fact in (*known.attributes, *(fact for fact, _ in known.relations))} == facts
            assert len(known.attributes) + len(known.relations) == len(facts)
            assert relations == {
                fact.id: fact.claim.ends[fact.claim.subject == entity] for fact in facts.values() if fact.claim.object
            }
        if isinstance(viewer, str):
            snapshot, secrets = world.identity(viewer, entity), town.facts_for(viewer)
            assert (snapshot and snapshot.known) == known
            assert snapshot is None or {fact.id for fact in snapshot.secrets} == {
                fact.id for fact in secrets if fact.visibility.scope == "secret"
            }


@pytest.mark.parametrize("seed", range(n_examples(30)))
def test_path_is_as_short_as_any_the_viewer_may_know(seed: int) -> None:
    dice = random.Random(seed)
    town = a_world(dice, graphs=30)
    world = world_of(list(town.entities.values()), list(town.facts.values()))
    for viewer in VIEWERS:
        facts = [fact for fact in town.facts_for(viewer) if fact.status == "accepted"]
        there = town.entities_for(viewer)
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


@pytest.mark.parametrize("seed", range(n_examples(30)))
def test_facts_and_entities_are_all_that_the_viewer_may_know_and_no_other(seed: int) -> None:
    dice = random.Random(seed)
    town = a_world(dice, graphs=10)
    world = world_of(list(town.entities.values()), list(town.facts.values()))

    def is_late(fact: Fact) -> bool:
        return (fact.provenance.at_ms or 0) >= 5_000_000

    for viewer in VIEWERS:
        facts, there = town.facts_for(viewer), town.entities_for(viewer)
        assert {one.id for one in world.entities(viewer)} == there
        known = world.snapshot().known_to(viewer, NOW)
        assert (known.entities.keys(), {fact.id for fact in known.facts}) == (there, {fact.id for fact in facts})
        for word in WORDS:
            found = world.facts(viewer, f"what of the {word}", limit=1_000)
            assert {fact.id for fact in found} == {fact.id for fact in facts if word in town.words_of(fact)}
            assert world.facts(viewer, f"what of the {word}", limit=3) == found[:3]
            late = world.facts(viewer, word, is_wanted=is_late, limit=1_000)
            assert {fact.id for fact in late} == {fact.id for fact in found if is_late(fact)}
        for entity in town.entities.values():
            called, like = world.called(viewer, entity.name.upper()), world.like(viewer, f"{entity.name}x")
            assert (None if called is None else called.id) == (entity.id if entity.id in there else None)
            assert {one.id for one in like} <= there
            assert entity.id not in there or entity.id in {one.id for one in like}


def test_word_of_very_many_facts_finds_them_only_if_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts that a viewer may not know make no word common for that viewer."""
    monkeypatch.setattr("glyphoxa.recall.world._COMMON", 2)
    occupation = Claim.attribute(NODE, "occupation", "innkeeper")
    known = related((NODE, "KNOWS", MARKET))[0].with_(visibility=secret_of([MIRA]))
    world = world_of(TOWN, [*RELATED, known, Fact(occupation.fact_id, occupation, 7)])

    def predicates(viewer: NpcId, text: str) -> set[str]:
        return {fact.claim.predicate for fact in world.facts(viewer, text)}

    assert predicates(MIRA, "Who knows the Moonblade?") == {"OWNS"}
    assert predicates(MIRA, "Who knows an innkeeper?") == {"occupation"}
    assert predicates(MIRA, "Who knows?") == {"KNOWS"}
    assert predicates(GRIM, "Who knows the Moonblade?") == {"KNOWS", "OWNS"}
    assert predicates(GRIM, "innkeepers") == {"occupation"}
    assert predicates(GRIM, "\0 ' & | ! :* \\") == set()


def test_entity_is_called_by_its_name_before_an_alias_and_either_without_an_article() -> None:
    other = WorldEntity(EntityId("other"), "npc", "Smith", ("the Market",))
    world = world_of([*TOWN, other], [])

    def called(name: str, of_type: str = "") -> str | None:
        found = world.called(MIRA, name, of_type=of_type)
        return None if found is None else found.id

    assert [called(name) for name in ("market", "The Market", "Smith", "the smith", "salty dog", "A Salty Dog")] == [
        MARKET,
        other.id,
        other.id,
        SMITH,
        INN,
        INN,
    ]
    assert called("the smith", "item") is called("") is called("Grim") is None
    assert {one.id for one in world.like(MIRA, "Saltee Dogg")} == {INN}
    assert {one.id for one in world.like(MIRA, "of")} == set()


def test_reached_entities_are_sorted_by_distance_and_name() -> None:
    world = world_of(TOWN, RELATED)

    def reach(depth: int, limit: int | None = None) -> list[tuple[EntityId, int]]:
        return [(one.entity.id, one.depth) for one in world.reach(DM, NODE, depth=depth, limit=limit)]

    assert reach(0) == [(NODE, 0)]
    assert reach(2, limit=2) == [(NODE, 0), (SMITH, 1)]
    assert reach(2) == reach(50) == [(NODE, 0), (SMITH, 1), (INN, 1), (MARKET, 2), (SWORD, 2)]


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
    capital, citizens = EntityId("capital"), [EntityId(f"c{n}") for n in range(4_000)]
    entities = [WorldEntity(each, "npc", f"Citizen {each}") for each in citizens]
    facts = related(*((each, "LOCATED_AT", capital) for each in citizens))
    world = world_of([WorldEntity(capital, "location", "Highhold"), *entities], facts)
    way = world.path(MIRA, citizens[0], citizens[-1])
    assert [entity.id for _, entity in way or ()] == [capital, citizens[-1]]
    assert len(world.path(MIRA, capital, citizens[-1]) or ()) == 1
