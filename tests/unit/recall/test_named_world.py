"""A world in memory, asked by name: what a viewer may not know changes nothing, and events keep it true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import DM, HIDDEN, PUBLIC, Claim, Fact, Validity, Viewer, Visibility, secret_of
from glyphoxa.language.relations import IN_ENGLISH
from glyphoxa.prompt.select import select_facts
from glyphoxa.recall.world import KnownByName, World
from glyphoxa.world.event_kinds import EntitiesMerged, EntityRemoved, EntityScoped
from glyphoxa.world.event_log import Cause, Event, Undone, WorldEvent, replay
from glyphoxa.world.state import WorldEntity, WorldState
from tests.support.proof import n_examples
from tests.support.world_histories import ENTITIES, NPCS, a_history

NPC, OTHER = NpcId("tamsin"), NpcId("bran")
NOW = 1_000
NAMES = ("Marek", "Marek Dorn", "Mareck", "Dorn", "Dorn Hall", "Hall", "Eldrinax", "Eldrinaxx", "Marek's Hall")
QUESTIONS = (
    "Where is Marek Dorn?",
    "Who owns Marek's Hall?",
    "Mareek and Eldrinaxx, and Dorn",
    "What of Dorn Hall, who took part in it?",
    "eldrinax",
    "Was Mareck in the Hall of Marek?",
    "Who guards the bridge at night?",
)
IDS = tuple(EntityId(f"e{n}") for n in range(5))
VISIBILITIES = st.sampled_from((PUBLIC, PUBLIC, secret_of([NPC]), secret_of([OTHER]), HIDDEN))
WORLDS = st.tuples(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), VISIBILITIES), min_size=5, max_size=5),
    st.lists(
        st.tuples(
            st.sampled_from(IDS),
            st.sampled_from(("OWNS", "PARTICIPATED_IN", "MARRIED_TO", "description")),
            st.sampled_from(IDS),
            VISIBILITIES,
        ),
        max_size=6,
    ),
)


def entities_of(drawn: list[tuple[str, str, Visibility]]) -> list[WorldEntity]:
    kinds = ("npc", "location", "event", "npc", "item")
    return [
        WorldEntity(IDS[n], kinds[n], name, (alias,), visibility) for n, (name, alias, visibility) in enumerate(drawn)
    ]


def facts_of(drawn: list[tuple[EntityId, str, EntityId, Visibility]]) -> list[Fact]:
    found: dict[str, Fact] = {}
    for seq, (subject, predicate, other, visibility) in enumerate(drawn):
        if predicate == "description":
            claim = Claim.attribute(subject, predicate, f"{subject} guards the toll bridge at night.")
        elif subject != other:
            claim = Claim.relation(subject, predicate, other)
        else:
            continue
        found.setdefault(claim.fact_id, Fact(claim.fact_id, claim, seq, visibility=visibility))
    return list(found.values())


def a_world(entities: list[WorldEntity], facts: list[Fact], *, now_ms: Callable[[], int] = lambda: NOW) -> World:
    state = WorldState()
    state.load(entities=entities, facts=facts)
    return World(state, now_ms=now_ms)


def told(found: list[KnownByName], question: str) -> list[object]:
    return [*((one.known, one.why) for one in found), *select_facts(found, question, NPC, words=IN_ENGLISH)]


@settings(max_examples=n_examples(200), derandomize=True, deadline=None)
@given(WORLDS)
def test_what_an_npc_may_not_know_changes_nothing_of_what_is_called_for_it(
    drawn: tuple[list[tuple[str, str, Visibility]], list[tuple[EntityId, str, EntityId, Visibility]]],
) -> None:
    """Two worlds that are the same for an NPC: in one of them all that is not for it never was."""
    entities, facts = entities_of(drawn[0]), facts_of(drawn[1])
    there = {one.id for one in entities if one.visibility.is_visible_to(NPC)}
    for_it = [
        fact
        for fact in facts
        if fact.visibility.is_visible_to(NPC) and {fact.claim.subject, fact.claim.object or fact.claim.subject} <= there
    ]
    whole, twin = a_world(entities, facts), a_world([one for one in entities if one.id in there], for_it)
    for question in QUESTIONS:
        answers = [told(world.by_name(NPC, question), question) for world in (whole, twin)]
        assert answers[0] == answers[1]


TYPES = ("npc", "location", "faction", "item", "event", "concept")


def answers(world: World) -> list[object]:
    viewers: tuple[Viewer, ...] = (DM, *NPCS)
    questions = [f"Where is {entity.title()}, and who owns it?" for entity in (*ENTITIES, "Guild", "the lamp")]
    names = " and ".join(entity.title() for entity in ENTITIES)
    questions += [names, "Who has been lit by the warden?"]
    return [
        *(world.by_name(viewer, question) for viewer in viewers for question in questions),
        *(world.known(viewer, entity) for viewer in viewers for entity in ENTITIES),
        *(world.identity(npc, entity) for npc in NPCS for entity in ENTITIES),
        *(world.identity(npc, entity, always=frozenset(TYPES)) for npc in NPCS for entity in ENTITIES),
        *(
            sorted(entity.id for entity in world.entities(viewer, of_type=type_))
            for viewer in viewers
            for type_ in TYPES
        ),
    ]


@settings(max_examples=n_examples(60), derandomize=True, deadline=None)
@given(st.integers(0, 100_000))
def test_a_world_that_follows_events_is_the_one_that_is_read_after_them(seed: int) -> None:
    """However they come in: corrections, approvals, merges, what is hidden and revealed."""
    events = a_history(seed, length=24, with_undo=False)
    world = World(replay(events[:8]), now_ms=lambda: NOW)
    for at in range(8, len(events), 3):
        answers(world)  # what was asked before is not kept
        world.take(events[at : at + 3])
        assert answers(world) == answers(World(replay(events[: at + 3]), now_ms=lambda: NOW))


def happens(*events: Event) -> list[WorldEvent]:
    return [WorldEvent(n, Cause("dm", NOW), event) for n, event in enumerate(events, start=100)]


TOWER = WorldEntity(EntityId("tower"), "location", "Skarnfell")
MAREK = WorldEntity(EntityId("marek"), "npc", "Marek")


def called(world: World, question: str, viewer: Viewer = NPC) -> list[str]:
    return [one.known.entity.id for one in world.by_name(viewer, question)]


def test_two_that_were_one_all_along_are_named_as_one() -> None:
    world = a_world([TOWER, MAREK], [])
    world.take(happens(EntitiesMerged(TOWER.id, MAREK.id)))
    assert called(world, "Marek? Skarnfell!") == ["tower"]
    assert (known := world.known(NPC, MAREK.id)) is not None
    assert known.entity.name == "Skarnfell"


def test_a_secret_identity_is_not_named_by_either_name() -> None:
    world = a_world([TOWER, replace(MAREK, visibility=secret_of([OTHER]))], [])
    world.take(happens(EntitiesMerged(TOWER.id, MAREK.id)))
    assert called(world, "Marek") == called(world, "Marek", OTHER) == []


def test_a_fact_is_told_while_it_holds() -> None:
    claim = Claim.relation(MAREK.id, "LOCATED_AT", TOWER.id)
    fact = Fact(claim.fact_id, claim, seq=1, validity=Validity(from_ms=NOW, to_ms=NOW + 10))
    at_ms = NOW
    world = a_world([TOWER, MAREK], [fact], now_ms=lambda: at_ms)
    for at_ms, n_told in ((NOW - 1, 0), (NOW, 1), (NOW + 9, 1), (NOW + 10, 0)):  # noqa: B007 - the clock reads it
        (one,) = world.by_name(NPC, "Marek")
        assert len(one.known.relations) == n_told


def test_what_a_file_calls_its_npc_is_a_name_for_those_who_know_of_it() -> None:
    state = WorldState()
    state.load(entities=[replace(MAREK, visibility=secret_of([OTHER]))])
    world = World(state, now_ms=lambda: NOW, also_called={MAREK.id: ("the smith",), TOWER.id: ("the spire",)})
    assert called(world, "the smith at the spire", OTHER) == ["marek"]
    assert called(world, "the smith at the spire") == []


def test_of_an_army_only_some_come_along() -> None:
    battle = WorldEntity(EntityId("battle"), "event", "Battle of Skarn")
    army = [WorldEntity(EntityId(f"s{n}"), "npc", f"Soldier {n}") for n in range(40)]
    claims = [Claim.relation(soldier.id, "PARTICIPATED_IN", battle.id) for soldier in army]
    facts = [Fact(claim.fact_id, claim, seq=n) for n, claim in enumerate(claims)]
    found = a_world([battle, *army], facts).by_name(NPC, "the Battle of Skarn")
    assert found[0].known.entity.id == "battle"
    assert [one.is_named for one in found] == [True, *[False] * 8]


@pytest.mark.parametrize("question", ["", "?", "\0", "a" * 50_000, "Marek " * 9_000, "妹はどこですか？", "\ud800"])
def test_whatever_is_asked_there_is_an_answer(question: str) -> None:
    assert called(a_world([TOWER, MAREK], []), question) in ([], ["marek"])


def test_a_world_cannot_take_what_speaks_of_its_past() -> None:
    with pytest.raises(ValueError, match="replay"):
        a_world([TOWER], []).take(happens(Undone(1)))


def test_a_text_is_found_by_its_words_by_whoever_may_know_it_until_it_changes() -> None:
    text = Claim.attribute(TOWER.id, "description", "The drawbridge is raised at sunset.")
    world = a_world([TOWER, MAREK], [Fact(text.fact_id, text, seq=1, visibility=PUBLIC)])
    [found] = world.by_name(NPC, "When is the drawbridge raised?")
    assert (found.known.entity.id, found.is_named, found.why) == ("tower", False, "its words: drawbridg, rais")
    assert [fact.claim for fact in found.known.attributes] == [text]
    assert called(world, "When is the drawbridge of Skarnfell raised?") == ["tower"], "it is told once"
    world.take(happens(EntityScoped(TOWER.id, secret_of([OTHER]))))
    assert called(world, "When is the drawbridge raised?") == []
    assert called(world, "When is the drawbridge raised?", OTHER) == ["tower"]
    world.take(happens(EntityRemoved(TOWER.id)))
    assert called(world, "When is the drawbridge raised?", OTHER) == []


def test_a_list_is_found_by_its_words() -> None:
    wares = Claim.attribute(TOWER.id, "wares", ["iron nails", "salt", "lamp oil"])
    world = a_world([TOWER], [Fact(wares.fact_id, wares, seq=1, visibility=PUBLIC)])
    assert called(world, "Who sells iron nails?") == ["tower"]


@pytest.mark.parametrize("attribute", ["rule", "gate"])
def test_text_found_by_its_words_is_told_whatever_its_attribute_is_called(attribute: str) -> None:
    claim = Claim.attribute(EntityId("lamp"), attribute, "The gate of Ford closes at sunset.")
    world = a_world([WorldEntity(EntityId("lamp"), "location", "The Lamp")], [Fact(claim.fact_id, claim, 1)])
    question = "When does the gate close?"
    facts = select_facts(world.by_name(NPC, question), question, NPC, words=IN_ENGLISH)
    assert [fact.text for fact in facts] == [f"The Lamp, {attribute}: The gate of Ford closes at sunset."]
