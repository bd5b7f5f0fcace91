"""A table's names follow the graph with as little work as the change is large."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.learning import NamesFollowed, with_stored
from glyphoxa.names.naming import Entry

FILE = [Entry("Grimjaw", EntityId("g"), "npc"), Entry("Ironhold", EntityId("i"), "location")]
TOWN = CampaignId("town")
ANYTHING = None


class Stored:
    """The names in the graph; None: the graph is away."""

    def __init__(self, *entries: Entry) -> None:
        self.entries_now: list[Entry] | None = list(entries)

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        if self.entries_now is None:
            raise Unavailable("the database is away")
        assert campaign == TOWN  # what other campaigns call their own is nobody's here
        return [entry for entry in self.entries_now if entities is None or entry.entity_id in entities]


class Followed(NamesFollowed):
    """Names that follow `stored`, and everything that was told of them."""

    def __init__(self, stored: Stored, file: Sequence[Entry] = FILE) -> None:
        super().__init__(TOWN, file)
        self._store: Any = stored
        self.told: list[Gazetteer] = []
        self.changed.subscribe(self.told.append)

    async def follow(self, changed: Collection[str] | None) -> None:
        await self.take(self._store, changed)


def named(n: int) -> list[Entry]:
    return [Entry(f"Zorvath{chr(97 + k // 26)}{chr(97 + k % 26)}", EntityId(f"z{k}"), "item") for k in range(n)]


def only(*entities: str) -> frozenset[str]:
    return frozenset(map(EntityId, entities))


def by_id(names: Gazetteer) -> dict[EntityId, Entry]:
    return {entry.entity_id: entry for entry in names.entries}


async def test_when_nothing_is_new_the_names_stay_the_very_same() -> None:
    stored = Stored(*FILE, Entry("Eldrinax", EntityId("e"), "npc"))
    names = Followed(stored)
    await names.follow(ANYTHING)
    before = names.current
    await names.follow(ANYTHING)
    await names.follow(only("e", "g", "nobody"))
    assert names.current is before and names.told == [before]


@pytest.mark.parametrize("n", [3, 60])
async def test_many_changes_are_told_as_one_and_give_the_names_that_a_new_index_would(n: int) -> None:
    stored = Stored(*FILE, *named(n))
    names = Followed(stored)
    await names.follow(ANYTHING)
    assert names.told == [names.current]
    assert names.current.entries == Gazetteer.build([*FILE, *named(n)]).entries
    stored.entries_now = [*FILE, Entry("Mirelle", EntityId("z0"), "npc")]
    await names.follow(frozenset(entry.entity_id for entry in named(n)))
    assert {entry.name for entry in names.current.entries} == {"Grimjaw", "Ironhold", "Mirelle"}
    assert len(names.told) == 2


@pytest.mark.parametrize("changed", [ANYTHING, only("g")])
async def test_a_form_that_is_no_longer_learned_is_taken_back(changed: frozenset[str] | None) -> None:
    stored = Stored(Entry("Grimjaw", EntityId("g"), "npc", (), ("Quibbleworth",)), FILE[1])
    names = Followed(stored)
    await names.follow(ANYTHING)
    assert [name.text for name in names.current.names if name.kind == "learned"] == ["Quibbleworth"]
    stored.entries_now = FILE
    await names.follow(changed)
    assert [name.text for name in names.current.names if name.kind == "learned"] == []


async def test_while_the_graph_is_away_the_names_are_as_they_were() -> None:
    stored = Stored()
    names = Followed(stored)
    stored.entries_now = None
    with pytest.raises(Unavailable):
        await names.follow(ANYTHING)
    assert names.current.entries == tuple(FILE) and names.told == []


@pytest.mark.parametrize("changed", [ANYTHING, only("g1")])
async def test_who_is_gone_from_the_graph_is_again_as_in_the_file(changed: frozenset[str] | None) -> None:
    stored = Stored(Entry("Grimjaw", EntityId("g1"), "npc", ("the smith",)))
    names = Followed(stored)
    await names.follow(ANYTHING)
    assert names.current.entry(EntityId("g1")) is not None and names.current.entry(EntityId("g")) is None
    stored.entries_now = []
    await names.follow(changed)
    assert by_id(names.current) == {entry.entity_id: entry for entry in FILE}


async def test_of_two_with_one_name_it_stays_the_first_one_s_when_the_graph_knows_him_by_another_id() -> None:
    file = [FILE[0], Entry("Grimjaw", EntityId("axe"), "item")]
    names = Followed(Stored(Entry("Grimjaw", EntityId("g1"), "npc"), file[1]), file)
    await names.follow(ANYTHING)
    assert names.current.by_joined["grimjaw"].entity_id == "g1"


async def test_a_change_of_one_name_prepares_no_other() -> None:
    stored = Stored(*FILE, *named(500))
    names = Followed(stored)
    await names.follow(ANYTHING)
    before = names.current
    stored.entries_now = [*FILE, Entry("Mirelle", EntityId("z0"), "item"), *named(500)[1:]]
    await names.follow(only("z0"))
    changed = set(map(id, names.current.names)) - set(map(id, before.names))
    assert len(changed) == 1


async def test_abandoned_read_is_completed_by_the_next() -> None:
    stored = Stored(*FILE)
    names = Followed(stored)
    await names.follow(ANYTHING)
    stored.entries_now = [*FILE, *named(5)]
    taking = asyncio.create_task(names.follow(frozenset(entry.entity_id for entry in named(5))))
    await asyncio.sleep(0)
    taking.cancel()
    with suppress(asyncio.CancelledError):
        await taking
    assert len(names.current.entries) == 2
    await names.follow(only("z0"))
    assert len(names.current.entries) == 7


async def test_names_are_followed_on_when_somebody_fails_to_take_them() -> None:
    stored = Stored(*FILE)
    names = Followed(stored)
    told: list[int] = []

    def failing(names: Gazetteer) -> None:
        raise RuntimeError("no room")

    names.changed.subscribe(failing)
    names.changed.subscribe(lambda names: told.append(len(names.entries)))
    for n in (1, 2):
        stored.entries_now = [*FILE, *named(n)]
        await names.follow(ANYTHING)
    assert told == [3, 4]


IDS = [EntityId(each) for each in "abcd"]
ENTRIES = st.builds(
    Entry,
    st.sampled_from(["Grimjaw", "grim-jaw", "Ironhold", "Mirelle"]),
    st.sampled_from(IDS),
    st.sampled_from(["npc", "location"]),
    st.lists(st.sampled_from(["the smith", "Grimjaw"]), max_size=1).map(tuple),
    st.lists(st.just("Quibbleworth"), max_size=1).map(tuple),
)
UNIQUE = st.lists(ENTRIES, max_size=4, unique_by=lambda entry: entry.entity_id)
STEPS = st.lists(st.one_of(ENTRIES, st.sampled_from(IDS), st.just("tell")), max_size=20)


@given(UNIQUE, UNIQUE, STEPS)
async def test_whatever_is_told_of_and_in_whatever_pieces_the_entries_are_those_of_the_whole_graph(
    file: list[Entry], graph: list[Entry], steps: list[Any]
) -> None:
    stored = Stored(*graph)
    names = Followed(stored, file)
    await names.follow(ANYTHING)
    changed: set[EntityId] = set()
    now = {entry.entity_id: entry for entry in graph}
    for step in [*steps, "tell"]:
        match step:
            case "tell":
                await names.follow(frozenset(changed))
                changed.clear()
                other = Followed(stored, file)
                await other.follow(ANYTHING)
                assert by_id(names.current) == by_id(other.current)
                assert list(other.current.entries) == with_stored(file, stored.entries_now or [])
            case Entry():
                now[step.entity_id] = step
                changed.add(step.entity_id)
            case _:
                now.pop(step, None)
                changed.add(step)
        stored.entries_now = list(now.values())


def test_names_of_the_file_come_first_and_are_as_the_graph_knows_them() -> None:
    file = [Entry("Eldrinax", EntityId("e"), "npc", ("the old wizard",)), *FILE]
    old = Entry("Eldrinax the Old", EntityId("e"), aliases=("the old wizard",), learned=("mellodracks",))
    first, *others, last = with_stored(file, [Entry("Orla", EntityId("o")), old, *FILE])
    assert first == Entry("Eldrinax the Old", EntityId("e"), "npc", ("the old wizard",), ("mellodracks",))
    assert others == FILE and last.name == "Orla"


def test_what_the_dm_took_away_of_a_stored_file_is_gone_and_who_sits_at_the_table_can_still_be_called() -> None:
    file = [Entry("Grimjaw", EntityId("g"), "npc", ("the smith", "Old Hammer")), *FILE[1:]]
    cast = [Entry("Grimjaw", EntityId("g"), "npc")]
    without_alias = Entry("Grimjaw", EntityId("g"), "npc", ("the smith",))
    assert with_stored(file, [without_alias], cast) == [without_alias]
    assert with_stored(file, [FILE[1]], cast) == [*cast, FILE[1]]
    assert with_stored(file, [], cast) == file


def test_a_player_of_the_file_is_the_player_of_the_graph() -> None:
    [tamsin] = with_stored([Entry("Tamsin", EntityId("p1"), "player")], [Entry("Tamsin", EntityId("tamsin"), "player")])
    assert tamsin.entity_id == "tamsin"
