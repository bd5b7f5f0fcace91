"""How a process is woken when something changed in the database: the same for all that it follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from glyphoxa.actors.supervisor import follow
from glyphoxa.adapters.postgres.server.listen import NAMES, TALK
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId
from tests.support.builders import CAMPAIGN, an_utterance
from tests.support.patience import DEADLINE_S
from tests.support.world_tables import a_campaign_row

OTHER = CampaignId("other")
LISTENING = """SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND query LIKE 'LISTEN%'"""
END_ALL = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE datname = current_database() AND query LIKE 'LISTEN%'"""


class Names:
    """New entities are names that changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._n = 0

    def follow(self, campaign: CampaignId) -> AsyncGenerator[Any, None]:
        return self._store.listener.follow(NAMES, campaign)

    async def change(self, campaign: CampaignId) -> None:
        await a_campaign_row(self._store, campaign)
        self._n += 1
        async with self._store.database.use(campaign) as connection:
            await connection.execute(
                "INSERT INTO entities (campaign_id, id, type, name, origin) VALUES ($1, $2, 'npc', $2, 'dm')",
                *(campaign, f"e{self._n}"),
            )


class Talk:
    """So is talk that has other words."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._n = 0

    def follow(self, campaign: CampaignId) -> AsyncGenerator[Any, None]:
        return self._store.listener.follow(TALK, campaign)

    async def change(self, campaign: CampaignId) -> None:
        self._n += 1
        said = replace(an_utterance("It rains.", id=f"u{self._n}"), campaign_id=campaign)
        await self._store.log.append([said])
        await self._store.log.revise(replace(said, text="It pours."), was=said)


@pytest.fixture(params=[Names, Talk])
def what(request: pytest.FixtureRequest, store: Store) -> Any:
    return request.param(store)


@pytest.fixture(autouse=True)
async def in_time() -> AsyncIterator[None]:
    async with asyncio.timeout(DEADLINE_S):
        yield


async def listening(store: Store) -> int:
    async with store.database.administer() as connection:
        return int(await connection.fetchval(LISTENING))


async def until_nobody_listens(store: Store) -> None:
    """The server notices a moment later."""
    while True:
        if not await listening(store):
            return
        await asyncio.sleep(0.01)


async def test_listener_first_reports_possible_changes_then_each_change(what: Any) -> None:
    async with aclosing(what.follow(CAMPAIGN)) as changes:
        await anext(changes)
        for _ in range(2):
            await what.change(CAMPAIGN)
            await anext(changes)


async def test_changes_of_another_campaign_wake_nobody(what: Any) -> None:
    async with aclosing(what.follow(CAMPAIGN)) as ours, aclosing(what.follow(OTHER)) as theirs:
        await anext(ours)
        await anext(theirs)
        waiting = asyncio.ensure_future(anext(ours))
        await what.change(OTHER)
        await anext(theirs)  # by then ours would have been told, too
        assert not waiting.done()
        await what.change(CAMPAIGN)
        await waiting


async def test_listener_reconnects_and_reports_possible_changes(what: Any, store: Store) -> None:
    changes = asyncio.Queue[Any]()
    following = asyncio.create_task(follow(lambda: what.follow(CAMPAIGN), changes.put, what="changes"))
    await changes.get()
    async with store.database.administer() as connection:
        await connection.execute(END_ALL)
    await changes.get()
    await what.change(CAMPAIGN)
    await changes.get()
    following.cancel()
    await asyncio.wait({following})


async def test_listeners_share_one_connection_until_the_last_leaves(store: Store) -> None:
    names, talk = Names(store), Talk(store)
    async with aclosing(names.follow(CAMPAIGN)) as first:
        await anext(first)
        async with aclosing(talk.follow(CAMPAIGN)) as second:
            await anext(second)
            assert await listening(store) == 1
        await names.change(CAMPAIGN)
        await anext(first)
        assert await listening(store) == 1
    await until_nobody_listens(store)
    async with aclosing(talk.follow(CAMPAIGN)) as again:
        await anext(again)


async def test_follower_of_a_lost_connection_is_told(what: Any, store: Store) -> None:
    async with aclosing(what.follow(CAMPAIGN)) as changes:
        await anext(changes)
        async with store.database.administer() as connection:
            await connection.execute(END_ALL)
        with pytest.raises(Unavailable, match="lost"):
            await anext(changes)


async def test_follower_is_woken_now_and_then_without_a_change(store: Store) -> None:
    async with aclosing(store.listener.follow(NAMES, CAMPAIGN, every_ms=10)) as changes:
        assert frozenset() in [await anext(changes), await anext(changes)]
