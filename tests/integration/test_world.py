"""The world is changed by what happens, all or nothing, in one order, whoever writes."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS
from glyphoxa.domain.errors import Corrupt, InvalidInput
from glyphoxa.domain.ids import EntityId, FactId, NpcId
from glyphoxa.domain.knowledge import Claim, Provenance, secret_of
from glyphoxa.world.event_kinds import EntityAdded, EntityRemoved, FactConfirmed, FactRejected, FactStated
from glyphoxa.world.event_log import Event, Undone
from tests.support.world_tables import (
    DM,
    FORGE,
    INN,
    MIRA,
    TOWN,
    a_town,
    stands_as_replayed,
    told_of,
)

CALLED = FactStated(Claim.attribute(MIRA, "occupation", "innkeeper"))


@pytest.fixture
async def town(store: Store) -> Store:
    await a_town(store, TOWN)
    return store


def at(place: EntityId) -> FactStated:
    return FactStated(Claim.relation(MIRA, "LOCATED_AT", place))


async def test_a_relation_that_holds_both_ways_is_stored_both_ways(town: Store) -> None:
    await town.world.commit(TOWN, [FactStated(Claim.relation(MIRA, "ALLIED_WITH", FORGE))], DM)
    async with town.database.use(TOWN) as connection:
        rows = await connection.fetch("SELECT source_id, target_id FROM relationships WHERE campaign_id = $1", TOWN)
    assert sorted(map(tuple, rows)) == [(FORGE, MIRA), (MIRA, FORGE)]


async def test_the_database_knows_the_relations_that_hold_both_ways(store: Store) -> None:
    async with store.database.use(None) as connection:
        for predicate, both in [("KNOWS", False), *((each, True) for each in BIDIRECTIONAL_RELATIONS)]:
            assert await connection.fetchval("SELECT glyphoxa_holds_both_ways($1)", predicate) is both


@pytest.mark.parametrize("view", ["ontology_nodes", "ontology_edges", "ontology_snapshots", "relationship_history"])
async def test_ontology_tools_find_their_own_names(town: Store, view: str) -> None:
    await town.world.commit(TOWN, [at(INN)], DM)
    async with town.database.use(TOWN) as connection:
        rows = await connection.fetch(f"SELECT * FROM {view}")
    if view == "ontology_nodes":
        assert {row["stable_key"]: row["semantic_kind"] for row in rows}[MIRA] == "npc"
    if view == "ontology_edges":
        assert {(row["from_node_id"], row["relation_label"], row["to_node_id"]) for row in rows} >= {
            (MIRA, "LOCATED_AT", INN)
        }


async def test_an_entity_shows_what_everybody_may_know_of_it(town: Store) -> None:
    note = [FactStated(Claim.attribute(MIRA, "note", text)) for text in ("one-eyed", "left-handed")]
    hidden = FactStated(Claim.attribute(MIRA, "secret", "a spy"), visibility=secret_of([NpcId("mira")]))
    unsure = FactStated(Claim.attribute(MIRA, "age", 40), Provenance(confidence=0.5))
    await town.world.commit(TOWN, [*note, hidden, unsure], DM)
    assert await told_of(town, TOWN, MIRA) == {"note": ["one-eyed", "left-handed"]}
    await town.world.commit(TOWN, [FactConfirmed(unsure.claim.fact_id), FactRejected(note[0].claim.fact_id)], DM)
    assert await told_of(town, TOWN, MIRA) == {"note": "left-handed", "age": 40}
    await stands_as_replayed(town, TOWN)


async def test_values_come_back_as_they_were_stated(town: Store) -> None:
    values = (None, 1e22, -0.0, 1e-7, 1.5e300, 10**40, {"b": [1, {"a": None}], "a": "ß\\u0000"}, "")
    stated = [FactStated(Claim.attribute(MIRA, "note", value), attributes={"as": [value]}) for value in values]
    for times in (1, 2):
        for each in stated:
            await town.world.commit(TOWN, [each], DM)
        facts = (await stands_as_replayed(town, TOWN)).facts
        assert [fact.claim for fact in facts.values()] == [each.claim for each in stated]
        assert {fact.mentions for fact in facts.values()} == {times}


async def test_what_cannot_be_said_of_this_world_is_refused_with_all_that_comes_with_it(town: Store) -> None:
    refused: tuple[tuple[Event, str], ...] = (
        (FactStated(Claim.relation(MIRA, "KNOWS", EntityId("nobody"))), "event 2 of 2, fact_stated: .*'nobody'"),
        (FactConfirmed(FactId("0123")), "event 2 of 2, fact_confirmed: .*'0123'"),
        (Undone(1), "event 2 of 2, undone: "),
        (EntityAdded(EntityId("x"), "npc", "no\0name"), "entity_added: .*NUL"),
        (FactStated(Claim(MIRA, "note", None, '{"b":1, "a":2}')), "Claim.attribute"),
        (FactStated(CALLED.claim, Provenance(at_ms=10**18)), "at_ms"),
    )
    for event, problem in refused:
        with pytest.raises(InvalidInput, match=problem):
            await town.world.commit(TOWN, [at(INN), event], DM)
    assert len(await town.world.events(TOWN)) == 4
    assert not (await stands_as_replayed(town, TOWN)).facts


async def test_a_batch_may_speak_of_what_it_brings(town: Store) -> None:
    king = EntityId("king")
    knows = FactStated(Claim.relation(king, "KNOWS", MIRA))
    born = EntityAdded(king, "npc", "The King")
    await town.world.commit(TOWN, [born, knows, FactConfirmed(knows.claim.fact_id), EntityRemoved(king), born], DM)
    state = await stands_as_replayed(town, TOWN)
    assert king in state.entities
    assert [e.ended_as for e in state.ended.values()] == ["entity_removed"]


async def test_writers_take_turns(town: Store, dsn: str) -> None:
    def mentions(writer: int) -> list[Event]:
        return [FactStated(Claim.attribute(MIRA, "note", f"{writer}-{n}")) for n in range(3)] + [CALLED]

    async with open_store(dsn) as other:
        writers = [store.world.commit(TOWN, mentions(n), DM) for n in range(12) for store in (town, other)]
        committed = await asyncio.gather(*writers)
    events = await town.world.events(TOWN)
    assert [event.seq for event in events] == list(range(1, 5 + 4 * 24))
    assert sorted(e.seq for each in committed for e in each) == list(range(5, 5 + 4 * 24))
    state = await stands_as_replayed(town, TOWN)
    assert state.facts[CALLED.claim.fact_id].mentions == 24


async def test_a_batch_of_many_is_what_single_events_would_have_been(town: Store) -> None:
    people = [EntityAdded(EntityId(f"p{n}"), "npc", f"Person {n}") for n in range(300)]
    knows = [FactStated(Claim.relation(EntityId(f"p{n}"), "KNOWS", EntityId(f"p{n * 7 % 300}"))) for n in range(1, 299)]
    moves = [
        FactStated(Claim.relation(EntityId(f"p{n % 40}"), "LOCATED_AT", (INN, FORGE)[n % 3 // 2])) for n in range(200)
    ]
    knows = [stated for stated in knows if stated.claim.subject != stated.claim.object]
    await town.world.commit(TOWN, [*people, *knows, *moves], DM)
    state = await stands_as_replayed(town, TOWN)
    assert len(state.ended) > 20
    await town.world.undo(TOWN, [5], DM)
    await stands_as_replayed(town, TOWN)


async def test_the_log_is_only_added_to(town: Store) -> None:
    async with town.database.use(TOWN) as connection:
        with pytest.raises(asyncpg.RaiseError, match="world_events is only added to"):
            await connection.execute("UPDATE world_events SET payload = '{}' WHERE campaign_id = $1", TOWN)


async def test_an_event_of_a_newer_program_is_named(town: Store) -> None:
    async with town.database.use(TOWN) as connection:
        await connection.execute(
            """INSERT INTO world_events (campaign_id, seq, event_type, payload, at, by)
               VALUES ($1, 5, 'moon_rose', '{}', now(), 'dm')""",
            TOWN,
        )
    with pytest.raises(Corrupt, match="event 5 of campaign 'town' is of type 'moon_rose'"):
        await town.world.events(TOWN)


async def test_undo_rebuilds_tampered_tables(town: Store) -> None:
    await town.world.commit(TOWN, [at(INN), CALLED], DM)
    async with town.database.use(TOWN) as connection:
        await connection.execute("DELETE FROM relationships WHERE campaign_id = $1", TOWN)
        await connection.execute("UPDATE attribute_facts SET value = '1' WHERE campaign_id = $1", TOWN)
        await connection.execute("UPDATE entities SET name = 'X' WHERE campaign_id = $1 AND id = $2", TOWN, MIRA)
    with pytest.raises(AssertionError):
        await stands_as_replayed(town, TOWN)
    await town.world.undo(TOWN, [6], DM)
    await town.world.undo(TOWN, [7], DM)
    await stands_as_replayed(town, TOWN)
    assert await told_of(town, TOWN, MIRA) == {"occupation": "innkeeper"}


async def test_what_is_certain_enough_is_a_setting_and_a_replay_remembers_which_it_was(
    town: Store,
    dsn: str,
) -> None:
    claim, later = (Claim.relation(MIRA, predicate, FORGE) for predicate in ("TRUSTS", "VISITS"))
    async with open_store(dsn, auto_accept=0.9) as strict:
        await strict.world.commit(TOWN, [FactStated(claim, Provenance(0.8))], DM)
    await stands_as_replayed(town, TOWN)
    await town.world.commit(TOWN, [FactStated(later, Provenance(0.8))], DM)
    facts = (await stands_as_replayed(town, TOWN)).facts
    assert (facts[claim.fact_id].status, facts[later.fact_id].status) == ("pending", "accepted")
