"""What the database tells whoever listens to it: that something has changed, whoever changed it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import asyncpg
from loguru import logger

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId

_ANSWER_TIMEOUT_S = 5.0
_FIRST_RETRY_MS = 200

Notified = frozenset[str] | None
"""What has changed; None: anything may have."""


@dataclass(slots=True)
class _PendingNotifications:
    """What came in since it was last taken.

    Attributes:
        what: The part of a notice that says what has changed.
    """

    campaign: CampaignId
    what: str
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    changed: set[str] = field(default_factory=set)
    is_anything: bool = False
    is_lost: bool = False

    def came(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        try:
            told = json.loads(str(payload))
        except ValueError:
            told = {}
        campaign, what = (told.get("campaign"), told.get(self.what)) if isinstance(told, dict) else (None, None)
        if isinstance(campaign, str) and campaign != self.campaign:
            return
        if isinstance(campaign, str) and isinstance(what, str):
            self.changed.add(what)
        else:
            self.is_anything = True
        self.woken.set()

    def lost(self, _connection: object) -> None:
        self.is_lost = True
        self.woken.set()

    def take(self) -> Notified:
        self.woken.clear()
        changed, self.changed = frozenset(self.changed), set()
        is_anything, self.is_anything = self.is_anything, False
        return None if is_anything else changed


class NotificationFeed:
    """Listens on a connection of its own, and makes a new one when it is lost.

    Args:
        channel: Its notices are JSON objects with `campaign`.
        what: Another part of them, which says what has changed.
        ping_ms: A quiet connection is asked for a sign of life so often: a dead network says nothing.
        most_retry_ms: While the server is away it is tried again after a time that doubles up to this.
    """

    def __init__(
        self, database: Database, channel: str, *, what: str, ping_ms: int = 30_000, most_retry_ms: int = 5_000
    ) -> None:
        self._database = database
        self._channel = channel
        self._what = what
        self._ping_ms = ping_ms
        self._most_retry_ms = most_retry_ms

    async def follow(self, campaign: CampaignId) -> AsyncGenerator[Notified, None]:
        """The changes to a campaign from now on. Never ends: cancel who iterates, or close it.

        Whenever it has begun to listen, at first and after each loss, it says that anything may have changed.
        Changes that come while the last one is worked on are told together.
        """
        retry_ms = _FIRST_RETRY_MS
        while True:
            pending = _PendingNotifications(campaign, self._what)
            try:
                connection = await self._listening(pending)
            except Unavailable as error:
                logger.debug("{} is not followed now: {}", self._channel, error)
                await asyncio.sleep(retry_ms / 1000)
                retry_ms = min(2 * retry_ms, self._most_retry_ms)
                continue
            retry_ms = _FIRST_RETRY_MS
            try:
                yield None
                while await self._wait(connection, pending):
                    changed = pending.take()
                    if changed is None or changed:
                        yield changed
            finally:
                connection.terminate()  # waits for nobody: this also runs when the iteration is cancelled

    async def _listening(self, pending: _PendingNotifications) -> asyncpg.Connection[asyncpg.Record]:
        connection = await self._database.connect()
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                connection.add_termination_listener(pending.lost)
                await connection.add_listener(self._channel, pending.came)
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            connection.terminate()
            raise Unavailable(f"the database does not listen: {type(error).__name__}") from None
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _wait(self, connection: asyncpg.Connection[asyncpg.Record], pending: _PendingNotifications) -> bool:
        """Until there is something to take; False when the connection is lost."""
        while not pending.woken.is_set():
            try:
                async with asyncio.timeout(self._ping_ms / 1000):
                    await pending.woken.wait()
            except TimeoutError:
                try:
                    await connection.execute("SELECT 1", timeout=_ANSWER_TIMEOUT_S)
                except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    return False
        return not pending.is_lost
