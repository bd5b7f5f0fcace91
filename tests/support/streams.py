"""Streams of changes in which things happen: each over PostgreSQL and over its twin in memory."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Protocol

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.feed import PostgresTalkFeed
from glyphoxa.adapters.postgres.world.event_log import PostgresWorldFeed
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.recall.campaign_cache import Cursor
from glyphoxa.world.entity_events import EntityAdded
from glyphoxa.world.events import Cause, Event
from tests.support.builders import an_utterance
from tests.support.talk_feed import FeedTwin, said
from tests.support.world_feed import TOWN, WorldFeedTwin
from tests.support.world_tables import a_campaign_row


class Stream(Protocol):
    """A stream of the campaign `TOWN`, and how it comes about."""

    def cursor(self) -> Cursor[Any]: ...

    def seq(self, change: Any) -> int: ...

    async def changes(self, since: int, limit: int, campaign: CampaignId = TOWN) -> Sequence[Any]: ...

    async def happens(self, *names: str) -> None:
        """Something of each of these names, which nothing else has."""
        ...

    async def put_back(self, seq: int) -> None:
        """To a backup that ends with that change."""
        ...


class _Talk:
    def cursor(self) -> Cursor[Any]:
        return Cursor(seq_of=self.seq, key_of=attrgetter("utterance_id"))

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
    def cursor(self) -> Cursor[Any]:
        return Cursor(seq_of=self.seq, key_of=self.seq)

    def seq(self, change: Any) -> int:
        return int(change.seq)


class WorldInMemory(_World):
    def __init__(self) -> None:
        self._feed = WorldFeedTwin()

    async def changes(self, since: int, limit: int, campaign: CampaignId = TOWN) -> Sequence[Any]:
        return await self._feed.changes(campaign, since=since, limit=limit)

    async def happens(self, *names: str) -> None:
        self._feed.happens(*map(_added, names))

    async def put_back(self, seq: int) -> None:
        self._feed.put_back(seq)


class WorldInPostgres(_World):
    def __init__(self, store: Store) -> None:
        self._store = store
        self._feed = PostgresWorldFeed(store.database)

    async def changes(self, since: int, limit: int, campaign: CampaignId = TOWN) -> Sequence[Any]:
        return await self._feed.changes(campaign, since=since, limit=limit)

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
