"""The contract of `WorldHistory`, in PostgreSQL and in memory alike."""

from __future__ import annotations

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import Claim
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from glyphoxa.world.event_log import Cause, Undone
from glyphoxa.world.graph import WorldHistory
from tests.support.world_tables import DM, FORGE, INN, MIRA, TOWN, a_campaign_row
from tests.support.world_twin import WorldTwin

PEOPLE = (
    EntityAdded(MIRA, "npc", "Mira"),
    EntityAdded(INN, "location", "The Inn"),
    EntityAdded(FORGE, "location", "The Forge"),
)
CALLED = FactStated(Claim.attribute(MIRA, "occupation", "innkeeper"))
AT_THE_INN = FactStated(Claim.relation(MIRA, "LOCATED_AT", INN))
AT_THE_FORGE = FactStated(Claim.relation(MIRA, "LOCATED_AT", FORGE))
OF_NOBODY = FactStated(Claim.attribute(EntityId("nobody"), "occupation", "ghost"))


@pytest.fixture(params=["PostgreSQL", "memory"])
def store_or_twin(request: pytest.FixtureRequest) -> Store | WorldTwin:
    if request.param == "memory":
        return WorldTwin()
    store: Store = request.getfixturevalue("store")
    return store


@pytest.fixture
async def world(store_or_twin: Store | WorldTwin) -> WorldHistory:
    """Events 1 to 3 are the entities."""
    empty: WorldHistory
    if isinstance(store_or_twin, WorldTwin):
        empty = store_or_twin
    else:
        await a_campaign_row(store_or_twin, TOWN)
        empty = store_or_twin.world
    await empty.commit(TOWN, PEOPLE, DM)
    return empty


async def known(world: WorldHistory) -> set[Claim]:
    return {fact.claim for fact in (await world.as_of(TOWN)).facts.values()}


async def test_committed_events_are_in_the_log_in_order(world: WorldHistory) -> None:
    events = await world.commit(TOWN, [AT_THE_INN, CALLED], Cause("talk", 2_000))
    assert [event.seq for event in events] == [4, 5]
    assert await world.events(TOWN, after=3) == events
    assert await known(world) == {AT_THE_INN.claim, CALLED.claim}


async def test_events_are_read_from_either_end(world: WorldHistory) -> None:
    assert [event.seq for event in await world.events(TOWN, after=1, limit=1)] == [2]
    assert [event.seq for event in await world.events(TOWN, after=1, limit=2, latest_first=True)] == [3, 2]


async def test_a_commit_is_all_or_nothing(world: WorldHistory) -> None:
    with pytest.raises(InvalidInput, match="nobody"):
        await world.commit(TOWN, [CALLED, OF_NOBODY], DM)
    assert len(await world.events(TOWN)) == 3
    assert await known(world) == set()


async def test_undo_removes_an_event_and_its_undo_restores_it(world: WorldHistory) -> None:
    await world.commit(TOWN, [AT_THE_INN], DM)
    await world.commit(TOWN, [AT_THE_FORGE], DM)
    [undoing] = await world.undo(TOWN, [5], DM)
    assert (undoing.seq, undoing.event) == (6, Undone(5))
    assert await known(world) == {AT_THE_INN.claim}
    await world.undo(TOWN, [undoing.seq], DM)
    assert await known(world) == {AT_THE_FORGE.claim}


@pytest.mark.parametrize("seq", [0, 99])
async def test_unknown_event_cannot_be_undone(world: WorldHistory, seq: int) -> None:
    with pytest.raises(NotFound, match=str(seq)):
        await world.undo(TOWN, [seq], DM)


async def test_event_cannot_be_undone_twice(world: WorldHistory) -> None:
    await world.commit(TOWN, [CALLED], DM)
    await world.undo(TOWN, [4], DM)
    with pytest.raises(NotFound, match="already undone"):
        await world.undo(TOWN, [4], DM)


async def test_several_are_undone_together_or_not_at_all(world: WorldHistory) -> None:
    await world.commit(TOWN, [CALLED, AT_THE_INN], DM)
    with pytest.raises(NotFound):
        await world.undo(TOWN, [4, 99], DM)
    assert await known(world) == {CALLED.claim, AT_THE_INN.claim}
    undone = await world.undo(TOWN, [5, 4], DM)
    assert [event.event for event in undone] == [Undone(5), Undone(4)]
    assert await known(world) == set()
    assert await world.undo(TOWN, [], DM) == []


async def test_the_world_is_seen_as_it_was_after_an_event_and_at_a_time(world: WorldHistory) -> None:
    await world.commit(TOWN, [AT_THE_INN], Cause("dm", 2_000))
    await world.commit(TOWN, [AT_THE_FORGE], Cause("dm", 3_000))
    for when in ({"seq": 4}, {"at_ms": 2_500}):
        facts = (await world.as_of(TOWN, **when)).facts  # type: ignore[arg-type]
        assert {fact.claim for fact in facts.values()} == {AT_THE_INN.claim}
    assert (await world.as_of(TOWN, seq=0)).entities == {}
