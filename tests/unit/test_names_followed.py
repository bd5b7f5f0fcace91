"""A table's names follow the graph with as little work as the change is large."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.memory.names_followed import NamesChanged, NamesFollowed
from glyphoxa.speech.names.book import NameBook
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer

FILE = [Entry("Grimjaw", EntityId("g"), "npc"), Entry("Ironhold", EntityId("i"), "location")]


class Stored:
    """What the graph holds; None is away."""

    def __init__(self, *entries: Entry) -> None:
        self.entries_now: list[Entry] | None = list(entries)

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        if self.entries_now is None:
            raise Unavailable("the database is away")
        return [entry for entry in self.entries_now if entities is None or entry.entity_id in entities]


def followed(stored: Stored) -> tuple[NamesFollowed, NameBook, list[Gazetteer]]:
    book = NameBook(Gazetteer.build(FILE))
    told: list[Gazetteer] = []
    book.subscribe(told.append)
    store: Any = stored
    return NamesFollowed(CampaignId("town"), store, book, FILE), book, told


def named(n: int) -> list[Entry]:
    return [Entry(f"Zorvath{chr(97 + k // 26)}{chr(97 + k % 26)}", EntityId(f"z{k}"), "item") for k in range(n)]


async def test_when_nothing_is_new_the_names_stay_the_very_same() -> None:
    stored = Stored(*FILE, Entry("Eldrinax", EntityId("e"), "npc"))
    follower, book, told = followed(stored)
    await follower.take(NamesChanged(None))
    names = book.current
    await follower.take(NamesChanged(None))
    assert book.current is names and told == [names]


@pytest.mark.parametrize("n", [3, 60])
async def test_many_changes_are_told_as_one_and_give_the_names_that_a_new_index_would(n: int) -> None:
    stored = Stored(*FILE, *named(n))
    follower, book, told = followed(stored)
    await follower.take(NamesChanged(None))
    assert told == [book.current]
    assert book.current.entries == Gazetteer.build([*FILE, *named(n)]).entries
    stored.entries_now = [*FILE, Entry("Mirelle", EntityId("z0"), "npc")]
    await follower.take(NamesChanged(frozenset(entry.entity_id for entry in named(n))))
    assert {entry.name for entry in book.current.entries} == {"Grimjaw", "Ironhold", "Mirelle"}
    assert len(told) == 2


async def test_a_form_that_is_no_longer_learned_is_taken_back_when_anything_may_have_changed() -> None:
    stored = Stored(Entry("Grimjaw", EntityId("g"), "npc", (), ("Quibbleworth",)), FILE[1])
    follower, book, _ = followed(stored)
    await follower.take(NamesChanged(None))
    assert [name.text for name in book.current.names if name.kind == "learned"] == ["Quibbleworth"]
    stored.entries_now = FILE
    await follower.take(NamesChanged(None))
    assert [name.text for name in book.current.names if name.kind == "learned"] == []


async def test_while_the_graph_is_away_the_names_are_as_they_were() -> None:
    stored = Stored()
    follower, book, told = followed(stored)
    stored.entries_now = None
    with pytest.raises(Unavailable):
        await follower.take(NamesChanged(None))
    assert book.current.entries == tuple(FILE) and told == []
