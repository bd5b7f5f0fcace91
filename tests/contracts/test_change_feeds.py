"""What every stream of changes gives to who follows it, in PostgreSQL and in memory alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from glyphoxa.domain.ids import CampaignId
from tests.support.streams import Stream, TalkInMemory, TalkInPostgres, WorldInMemory, WorldInPostgres

STREAMS: dict[str, Callable[[Any], Stream]] = {
    "talk in PostgreSQL": TalkInPostgres,
    "talk in memory": lambda _: TalkInMemory(),
    "world in PostgreSQL": WorldInPostgres,
    "world in memory": lambda _: WorldInMemory(),
}
MANY = 1_000


@pytest.fixture(params=STREAMS)
def stream(request: pytest.FixtureRequest) -> Stream:
    store = request.getfixturevalue("store") if "PostgreSQL" in request.param else None
    return STREAMS[request.param](store)


async def test_changes_come_in_the_order_of_their_numbers_page_by_page(stream: Stream) -> None:
    await stream.happens("a", "b", "c", "d", "e")
    everything = list(await stream.changes(0, MANY))
    numbers = [stream.seq(change) for change in everything]
    assert len(numbers) == 5
    assert numbers == sorted(set(numbers))
    assert list(await stream.changes(0, 2)) == everything[:2]
    assert list(await stream.changes(numbers[2], 2)) == everything[2:4]
    assert list(await stream.changes(numbers[-1] + 1, MANY)) == []
    assert list(await stream.changes(0, 0)) == []


async def test_who_knows_a_change_gets_it_again_and_what_is_behind_it(stream: Stream) -> None:
    await stream.happens("a", "b")
    *_, last = await stream.changes(0, MANY)
    assert list(await stream.changes(stream.seq(last), MANY)) == [last]
    await stream.happens("c")
    again, new = await stream.changes(stream.seq(last), MANY)
    assert again == last
    assert stream.seq(new) > stream.seq(last)


async def test_a_campaign_has_no_changes_of_another(stream: Stream) -> None:
    await stream.happens("a")
    assert list(await stream.changes(0, MANY, CampaignId("other"))) == []


async def test_a_cursor_takes_each_change_once(stream: Stream) -> None:
    cursor = stream.cursor()
    taken: list[Any] = []
    for names in (["a", "b", "c"], [], ["d"], ["e", "f", "g", "h"]):
        await stream.happens(*names)
        while True:
            read = await cursor.read(stream.changes, limit=2)
            assert read is not None
            taken += read.new()
            if read.is_last:
                break
    assert taken == list(await stream.changes(0, MANY))


async def a_cursor_at_the_end(stream: Stream) -> Any:
    cursor = stream.cursor()
    assert await cursor.read(stream.changes, limit=MANY) is not None
    return cursor


@pytest.mark.parametrize("meanwhile", [[], ["x"], ["x", "y"], ["x", "y", "z", "w"]])
async def test_a_stream_that_was_put_back_from_a_backup_is_another_one(stream: Stream, meanwhile: list[str]) -> None:
    """Whether or not what happened since has the numbers that other changes had."""
    await stream.happens("a", "b", "c")
    cursor = await a_cursor_at_the_end(stream)
    first, *_ = await stream.changes(0, MANY)
    await stream.put_back(stream.seq(first))
    await stream.happens(*meanwhile)
    assert await cursor.read(stream.changes, limit=MANY) is None


async def test_a_stream_that_was_put_back_to_where_it_is_read_is_the_same_one(stream: Stream) -> None:
    await stream.happens("a", "b")
    cursor = await a_cursor_at_the_end(stream)
    await stream.put_back(stream.seq(cursor.last))
    await stream.happens("c")
    read = await cursor.read(stream.changes, limit=MANY)
    assert read is not None
    assert (read.n_known, read.n_new) == (1, 1)
