"""LISTEN: notifies followers of changes in the database, whoever made them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Final

import asyncpg
from loguru import logger

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
_FIRST_RETRY_S: Final = 0.2
_MAX_RETRY_S: Final = 5.0
"""Maximum delay before reconnecting; the delay doubles up to this."""
_PING_S: Final = 30.0
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
    changed: set[str] = field(default_factory=set)
    is_anything: bool = False
    error: GlyphoxaError | None = None

    def came(self, notification: object) -> None:
        told = notification if isinstance(notification, dict) else {}
        campaign, entity = told.get("campaign"), told.get("entity")
        if isinstance(campaign, str) and self.campaign not in (None, campaign):
            return
        if isinstance(campaign, str) and isinstance(entity, str):
            self.changed.add(entity)
        else:
            self.is_anything = True
        self.woken.set()

    def came_anything(self) -> None:
        self.is_anything = True
        self.woken.set()

    async def take(self) -> Notified:
        await self.woken.wait()
        self.woken.clear()
        if self.error is not None:
            raise self.error
        changed, self.changed = frozenset(self.changed), set()
        is_anything, self.is_anything = self.is_anything, False
        return None if is_anything else changed


class Listener:
    """One connection per process that listens for all followers.

    It exists from the first to the last of them, and is replaced when lost.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._followers: set[_Follower] = set()
        self._listening: asyncio.Task[None] | None = None
        self._is_connected = False

    async def follow(self, channel: str, campaign: CampaignId | None) -> AsyncGenerator[Notified, None]:
        """Changes to a campaign, or to any (None), from now on. Never ends: close it, or cancel the iterating task.

        After each (re)connection, anything may have changed. Changes during the processing of one are combined.

        Raises:
            GlyphoxaError: The server refuses for a permanent reason.
        """
        follower = _Follower(channel, campaign)
        self._followers.add(follower)
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen())
        elif self._is_connected:
            follower.came_anything()
        try:
            while True:
                yield await follower.take()
        finally:
            self._followers.discard(follower)
            if not self._followers:
                await self.close()

    async def close(self) -> None:
        """Close the connection. Later followers open a new one."""
        task, self._listening = self._listening, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _listen(self) -> None:
        retry_s = _FIRST_RETRY_S
        while True:
            lost = asyncio.Event()
            try:
                connection = await self._connect(lost)
            except Unavailable as error:
                logger.debug("cannot listen for changes now: {}", error)
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, _MAX_RETRY_S)
                continue
            except GlyphoxaError as error:
                self._listening = None
                for follower in self._followers:
                    follower.error = error
                    follower.woken.set()
                return
            retry_s = _FIRST_RETRY_S
            self._is_connected = True
            try:
                for follower in self._followers:
                    follower.came_anything()
                await self._wait_until_lost(connection, lost)
            finally:
                self._is_connected = False
                connection.terminate()  # does not block: this also runs when the task is cancelled

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
        for follower in self._followers:
            if follower.channel == channel:
                follower.came(notification)

    async def _wait_until_lost(self, connection: asyncpg.Connection[asyncpg.Record], lost: asyncio.Event) -> None:
        while True:
            try:
                async with asyncio.timeout(_PING_S):
                    await lost.wait()
                return
            except TimeoutError:
                try:
                    await connection.execute("SELECT 1", timeout=_ANSWER_TIMEOUT_S)
                except _LOST:
                    return
