"""LISTEN: notifies followers of changes in the database, whoever made them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Final

import asyncpg

from glyphoxa.actors.deadline import done_within, end_tasks
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId

NAMES: Final = "glyphoxa_names"
"""Entities whose names or learned forms changed: the `entity` of a notification."""
TALK: Final = "glyphoxa_talk"
"""Utterances that were retracted, restored or corrected."""

TABLE: Final = "glyphoxa_table"
"""The DM's commands to an open table, and its answers."""

SAID: Final = "glyphoxa_said"
"""New and changed utterances."""

_CHANNELS: Final = (NAMES, TALK, TABLE, SAID)
_ANSWER_TIMEOUT_S = 5.0
_PING_MS: Final = 30_000
"""Interval of pings on a quiet connection: a dead network reports nothing."""
_LOST: Final = (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError)

Notified = frozenset[str] | None
"""The entities that changed; None: possibly any."""


@dataclass(slots=True, eq=False)
class _Follower:
    """Notifications for one follower since it last took them."""

    channel: str
    campaign: CampaignId | None
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    changed: set[str] | None = field(default_factory=set)
    error: GlyphoxaError | None = None

    def came(self, campaign: object = None, entity: object = None) -> None:
        """Take a notification; without a campaign and an entity, anything may have changed."""
        if isinstance(campaign, str) and self.campaign not in (None, campaign):
            return
        if not isinstance(campaign, str) or not isinstance(entity, str):
            self.changed = None
        elif self.changed is not None:
            self.changed.add(entity)
        self.woken.set()

    async def take(self, every_ms: int | None) -> Notified:
        await done_within(every_ms, self.woken.wait())
        if self.error is not None:
            raise self.error
        self.woken.clear()
        changed, self.changed = self.changed, set()
        return None if changed is None else frozenset(changed)


class Listener:
    """One connection per process that listens for all followers, from the first to the last of them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._followers: set[_Follower] = set()
        self._listening: asyncio.Task[None] | None = None
        self._is_connected = False

    async def follow(
        self, channel: str, campaign: CampaignId | None, *, every_ms: int | None = None
    ) -> AsyncGenerator[Notified, None]:
        """Changes to a campaign, or to any (None), from now on. Never ends: close it, or cancel the iterating task.

        At first, anything may have changed. Changes during the processing of one are combined.

        Args:
            every_ms: Yield after this time even if nothing changed; None: do not.

        Raises:
            Unavailable: The connection cannot be made, or was lost. `glyphoxa.actors.supervisor.follow` tries again.
            GlyphoxaError: The server refuses for a permanent reason.
        """
        follower = _Follower(channel, campaign)
        self._followers.add(follower)
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen())
        elif self._is_connected:
            follower.came()
        try:
            while True:
                yield await follower.take(every_ms)
        finally:
            self._followers.discard(follower)
            if not self._followers:
                await self.close()

    async def close(self) -> None:
        """Close the connection. Later followers open a new one."""
        task, self._listening = self._listening, None
        if task is not None:
            await end_tasks(task)

    async def _listen(self) -> None:
        lost = asyncio.Event()
        error: GlyphoxaError = Unavailable("the connection that reports changes was lost")
        try:
            connection = await self._connect(lost)
            try:
                self._is_connected = True
                for follower in self._followers:
                    follower.came()
                await self._wait_until_lost(connection, lost)
            finally:
                self._is_connected = False
                connection.terminate()  # does not block: this also runs when the task is cancelled
        except GlyphoxaError as refused:
            error = refused
        self._listening = None
        for follower in self._followers:
            follower.error = error
            follower.woken.set()

    async def _connect(self, lost: asyncio.Event) -> asyncpg.Connection[asyncpg.Record]:
        connection = await self._database.connect()
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                connection.add_termination_listener(lambda _: lost.set())
                for channel in _CHANNELS:
                    await connection.add_listener(channel, self._came)
        except _LOST as error:
            connection.terminate()
            raise Unavailable(f"the database does not listen: {type(error).__name__}") from None
        except BaseException:  # also when cancelled: nobody owns the connection yet
            connection.terminate()
            raise
        return connection

    def _came(self, _connection: object, _pid: int, channel: str, payload: object) -> None:
        notification: object = None
        with contextlib.suppress(ValueError):
            notification = json.loads(str(payload))
        told = notification if isinstance(notification, dict) else {}
        for follower in self._followers:
            if follower.channel == channel:
                follower.came(told.get("campaign"), told.get("entity"))

    async def _wait_until_lost(self, connection: asyncpg.Connection[asyncpg.Record], lost: asyncio.Event) -> None:
        while not await done_within(_PING_MS, lost.wait()):
            try:
                await connection.execute("SELECT 1", timeout=_ANSWER_TIMEOUT_S)
            except _LOST:
                return
