"""Entities as nodes of the memory graph."""

from __future__ import annotations

from glyphoxa.dm.wording import MemoryNode, nodes_of
from glyphoxa.domain.campaign import Entity, NodeType, Schema
from glyphoxa.domain.ids import EntityId, SessionId
from glyphoxa.domain.knowledge import CERTAIN, Claim, Fact, Provenance, Status
from glyphoxa.transcript.sessions import node_name, node_of

RELIC, VALE, SESSION = EntityId("relic"), EntityId("vale"), SessionId("one")
SCHEMA = Schema({"relic": NodeType(("age", "magical"))})


def a_fact(
    entity: EntityId, name: str, value: object, *, status: Status = "accepted", by: Provenance = CERTAIN
) -> Fact:
    claim = Claim.attribute(entity, name, value)  # type: ignore[arg-type] # any JSON
    return Fact(claim.fact_id, claim, 1, status, by)


def the_node(entity: Entity, *facts: Fact) -> MemoryNode:
    [node] = nodes_of([entity], facts, SCHEMA)
    return node


def test_a_node_has_all_fields_of_its_type_and_then_the_others() -> None:
    node = the_node(Entity(RELIC, "relic", "Orb"), a_fact(RELIC, "colour", "red"), a_fact(RELIC, "magical", True))
    assert [*node.values.items()] == [("age", ""), ("magical", "yes"), ("colour", "red")]
    assert [*the_node(Entity(VALE, "location", "The Vale")).values] == ["controller", "danger", "resources"]
    person = the_node(Entity(EntityId("ann"), "npc", "Ann", ("the cook", "Annie")))
    assert person.type == "character_sheet" and person.values["aliases"] == "the cook; Annie"
    own = Schema({"npc": NodeType(("rank",))})
    [declared] = nodes_of([Entity(EntityId("ann"), "npc", "Ann")], [], own)
    assert (declared.type, [*declared.values]) == ("npc", ["rank"])


def test_lists_and_keys_are_shown_as_text() -> None:
    node = the_node(Entity(RELIC, "relic", "Orb"), a_fact(RELIC, "age", ["old", "very old"]), a_fact(RELIC, "n", 3))
    assert node.values == {"age": "old, very old", "magical": "", "n": "3"}


def test_a_node_counts_only_facts_that_the_dm_accepted() -> None:
    node = the_node(Entity(RELIC, "relic", "Orb"), a_fact(RELIC, "age", "new", status="pending"))
    assert node.values["age"] == ""


def test_the_floor_is_the_last_utterance_that_changed_a_node() -> None:
    def at(ordinal: int, at_ms: int) -> Provenance:
        return Provenance(0.9, session_id=SESSION, ordinal=ordinal, at_ms=at_ms)

    orb = Entity(RELIC, "relic", "Orb")
    node = the_node(orb, a_fact(RELIC, "age", "old", by=at(7, 2_000)), a_fact(RELIC, "colour", "red", by=at(9, 1_000)))
    assert (node.session, node.floor) == (SESSION, 7)
    assert the_node(orb, a_fact(RELIC, "age", "old")).floor is None


def test_kind_and_floor_are_fields_but_not_of_a_summary() -> None:
    building = the_node(Entity(VALE, "location", "Mill"), a_fact(VALE, "floor", 2), a_fact(VALE, "kind", "mill"))
    assert building.values["floor"] == "2" and building.values["kind"] == "mill"
    event = node_of(SESSION, 1)
    summary = the_node(
        Entity(event, "event", node_name(1)), a_fact(event, "floor", 12), a_fact(event, "summary", "They met.")
    )
    assert summary.as_json() == {
        "id": event,
        "type": "event",
        "level": "semantic",
        "title": "Summary 1",
        "fields": {"summary": "They met."},
        "floor": None,
    }
