"""Every change feed behaves the same in PostgreSQL and in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.reading import PostgresTalkFeed
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.recall.transcript_memory import Cursor
from glyphoxa.world.event_kinds import EntityAdded
from glyphoxa.world.event_log import Cause, Event, WorldEvent
from glyphoxa.world.graph import new_events
from tests.support.builders import an_utterance
from tests.support.talk_feed import FeedTwin, said
from tests.support.world_feed import TOWN, WorldFeedTwin
from tests.support.world_tables import a_campaign_row

Reader = Callable[[], Awaitable[Sequence[Any] | None]]
"""Returns what is new since the last call; None if the stream is another one."""


class Stream(Protocol):
    """A stream of the campaign `TOWN`, and how it comes about."""

    def reader(self) -> Reader:
        """A reader of this stream, at its beginning."""
        ...

    def seq(self, change: Any) -> int: ...

    async def changes(self, since: int, limit: int, campaign: CampaignId = TOWN) -> Sequence[Any]: ...

    async def happens(self, *names: str) -> None:
        """Something of each of these names, which nothing else has."""
        ...

    async def put_back(self, seq: int) -> None:
        """To a backup that ends with that change."""
        ...


class _Talk:
    def reader(self: Any) -> Reader:
        cursor = Cursor()

        async def read() -> Sequence[Any] | None:
            new: list[Any] = []
            while True:
                if (found := await cursor.read(self.changes, limit=PAGE)) is None:
                    return None
                page, n_known = found
                new += page[n_known:]
                if len(page) < PAGE:
                    return new

        return read

    def seq(self, change: Any) -> int:
        return int(change.change_seq)


class TalkInMemory(_Talk):
    def __init__(self) -> None:
        self._feed = FeedTwin()

    async def changes(self, since: int, limit: int, campaign: CampaignId = TOWN) -> Sequence[Any]:
        return (await self._feed.changes(campaign, since=since, limit=limit)).said

    async def happens(self, *names: str) -> None:
        self._feed.tell(*(said(name, f"Somebody said {name}.") for name in names), campaign=TOWN)

    async def put_back(self, seq: int) -> None:
        self._feed.put_back(seq)


class TalkInPostgres(_Talk):
    def __init__(self, store: Store) -> None:
        self._store = store
        self._feed = PostgresTalkFeed(store.database)

    async def changes(self, since: int, limit: int, campaign: CampaignId = TOWN) -> Sequence[Any]:
        return (await self._feed.changes(campaign, since=since, limit=limit)).said

    async def happens(self, *names: str) -> None:
        await self._store.log.append([an_utterance(f"Somebody said {name}.", id=name) for name in names])

    async def put_back(self, seq: int) -> None:
        async with self._store.database.administer() as connection:
            await connection.execute("DELETE FROM session_entries WHERE change_seq > $1", seq)
            await connection.execute("SELECT setval('talk_changes', $1)", seq)


class _World:
    def reader(self: Any) -> Reader:
        last: WorldEvent | None = None

        async def read() -> Sequence[Any] | None:
            nonlocal last
            new = await new_events(self.changes, last)
            last = new[-1] if new else last
            return new

        return read

    def seq(self, change: Any) -> int:
        return int(change.seq)


class WorldInMemory(_World):
    def __init__(self) -> None:
        self._feed = WorldFeedTwin()

    async def changes(self, since: int, limit: int, campaign: CampaignId = TOWN) -> Sequence[Any]:
        return await self._feed.events(campaign, after=since - 1, limit=limit)

    async def happens(self, *names: str) -> None:
        self._feed.happens(*map(_added, names))

    async def put_back(self, seq: int) -> None:
        self._feed.put_back(seq)


class WorldInPostgres(_World):
    def __init__(self, store: Store) -> None:
        self._store = store

    async def changes(self, since: int, limit: int, campaign: CampaignId = TOWN) -> Sequence[Any]:
        return await self._store.world.events(campaign, after=since - 1, limit=limit)

    async def happens(self, *names: str) -> None:
        await a_campaign_row(self._store, TOWN)
        for name in names:
            await self._store.world.commit(TOWN, [_added(name)], Cause("dm", 1_000))

    async def put_back(self, seq: int) -> None:
        gone = await self.changes(seq + 1, 1_000)
        async with self._store.database.administer() as connection:
            await connection.execute("DELETE FROM world_events WHERE campaign_id = $1 AND seq > $2", TOWN, seq)
            ids = [recorded.event.entity for recorded in gone]
            await connection.execute("DELETE FROM entities WHERE campaign_id = $1 AND id = ANY ($2)", TOWN, ids)


def _added(name: str) -> Event:
    return EntityAdded(EntityId(name), "npc", name)


STREAMS: dict[str, Callable[[Any], Stream]] = {
    "talk in PostgreSQL": TalkInPostgres,
    "talk in memory": lambda _: TalkInMemory(),
    "world in PostgreSQL": WorldInPostgres,
    "world in memory": lambda _: WorldInMemory(),
}
MANY = 1_000
PAGE = 2


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


async def test_reader_gets_known_change_again_and_later_ones(stream: Stream) -> None:
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


async def test_a_reader_takes_each_change_once(stream: Stream) -> None:
    read = stream.reader()
    taken: list[Any] = []
    for names in (["a", "b", "c"], [], ["d"], ["e", "f", "g", "h"]):
        await stream.happens(*names)
        new = await read()
        assert new is not None
        taken += new
    assert taken == list(await stream.changes(0, MANY))


async def a_reader_at_the_end(stream: Stream) -> Reader:
    read = stream.reader()
    assert await read() is not None
    return read


@pytest.mark.parametrize("meanwhile", [[], ["x"], ["x", "y"], ["x", "y", "z", "w"]])
async def test_stream_restored_from_a_backup_is_a_new_stream(stream: Stream, meanwhile: list[str]) -> None:
    """Whether or not what happened since has the numbers that other changes had."""
    await stream.happens("a", "b", "c")
    read = await a_reader_at_the_end(stream)
    first, *_ = await stream.changes(0, MANY)
    await stream.put_back(stream.seq(first))
    await stream.happens(*meanwhile)
    assert await read() is None


async def test_stream_restored_to_the_read_position_is_the_same(stream: Stream) -> None:
    await stream.happens("a", "b")
    read = await a_reader_at_the_end(stream)
    *_, last = await stream.changes(0, MANY)
    await stream.put_back(stream.seq(last))
    await stream.happens("c")
    *_, c = await stream.changes(0, MANY)
    assert await read() == [c]
