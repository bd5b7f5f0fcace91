"""Worlds of campaigns held in memory, to be asked by name: read when they are first needed, kept true, bounded.

A world changes only by events, in one order. Whoever has taken event 4711 asks for what is behind it, which is one
small question, and nearly always there is nothing. What speaks of earlier events (something undone, a rollback) has
the world read anew, and until that is done nobody is told anything of it: what was taken back is not told meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from loguru import logger

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from glyphoxa.memory.ports.by_name import KnownByName
from glyphoxa.memory.ports.graph import IdentitySnapshot
from glyphoxa.memory.ports.world_feed import WorldFeed
from glyphoxa.memory.recall.exact.named_world import NamedWorld
from glyphoxa.memory.world.happenings import RolledBack, Undone, WorldEvent

_MOST_WORLDS: Final = 2
_FEW: Final = 50
"""Events that are taken one by one; behind more of them a world is read anew, beside those who ask meanwhile."""


@dataclass(slots=True)
class _Held:
    """
    Attributes:
        last: The event that `world` has taken last; it must be in the log still.
        reading: Brings `world` up to date, with all that was in the log when it began.
        has_begun: Whether `reading` did: until then more may share it.
        following: Does the same when that is done.
    """

    world: NamedWorld | None = None
    last: WorldEvent | None = None
    reading: asyncio.Task[None] | None = None
    has_begun: bool = False
    following: asyncio.Task[None] | None = None
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)


class HeldWorlds:
    """A `FactsByName`.

    Args:
        now_ms: Session time.
        most: Worlds; the one that was not asked for longest is let go. One of 10,000 entities and 30,000 facts takes
            some 60 MB.
    """

    def __init__(self, feed: WorldFeed, *, now_ms: Callable[[], int], most: int = _MOST_WORLDS) -> None:
        self._feed = feed
        self._now_ms = now_ms
        self._most = most
        self._held: OrderedDict[CampaignId, _Held] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def by_name(self, campaign: CampaignId, npc: NpcId, question: str) -> list[KnownByName] | None:
        """See `FactsByName.by_name`."""
        world = self.world(campaign)
        return None if world is None else world.by_name(npc, question, at_ms=self._now_ms())

    def identity(self, campaign: CampaignId, npc: NpcId, entity: EntityId) -> IdentitySnapshot | None:
        """See `FactsByName.identity`."""
        world = self.world(campaign)
        if world is None:
            raise Unavailable(f"the world of {campaign} is not in memory")
        return world.identity(npc, entity, at_ms=self._now_ms())

    def world(self, campaign: CampaignId) -> NamedWorld | None:
        """As it was read last; None when it was not."""
        held = self._held.get(campaign)
        return None if held is None else held.world

    async def refresh(self, campaign: CampaignId) -> None:
        """Take what has happened until now; read all of it, the first time. Those who ask while somebody else's reading
        is under way share the next one: what they know of may have come too late for that.

        Raises:
            Unavailable: The database cannot be reached, and what is held stays as it is; or all was closed.
        """
        if self._is_closed:
            raise _closed()
        held = self._held.setdefault(campaign, _Held())
        self._held.move_to_end(campaign)
        while len(self._held) > self._most:
            self._held.popitem(last=False)
        if held.reading is None or held.reading.done():
            held.has_begun = False
            task = held.reading = self._begin(campaign, held)
        elif not held.has_begun:
            task = held.reading
        elif held.following is None or held.following.done():
            task = held.following = self._begin(campaign, held, after=held.reading)
        else:
            task = held.following
        try:
            # Whoever asked may be late and go: the reading goes on for those who come next.
            await asyncio.shield(task)
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if task.cancelled() and asking is not None and not asking.cancelling():
                raise _closed() from None
            raise

    async def close(self) -> None:
        """End what is being read. Nothing is held any more, and nothing is read."""
        self._is_closed = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._held.clear()

    def _begin(
        self, campaign: CampaignId, held: _Held, *, after: asyncio.Task[None] | None = None
    ) -> asyncio.Task[None]:
        async def read() -> None:
            if after is not None:
                await asyncio.wait({after})
                held.reading, held.following = held.following, None
            held.has_begun = True
            async with held.one_at_a_time:
                await self._read(campaign, held)

        task = asyncio.create_task(read())
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be waiting for it any more; then nobody would ask how it ended

    async def _read(self, campaign: CampaignId, held: _Held) -> None:
        if held.world is not None and await self._take_new(campaign, held, held.world):
            return
        read = await self._feed.read(campaign)
        world = await asyncio.to_thread(NamedWorld, read.state, language=read.language, also_called=read.also_called)
        held.world, held.last = world, read.last

    async def _take_new(self, campaign: CampaignId, held: _Held, world: NamedWorld) -> bool:
        """False if the world is to be read anew."""
        last = held.last
        events = await self._feed.since(campaign, 0 if last is None else last.seq, limit=_FEW + 2)
        if last is None and not events:
            return False  # there may have been no campaign yet, and so no language
        if last is not None and (not events or events[0] != last):
            held.world = None  # its database was restored from an earlier day
            return False
        new = events if last is None else events[1:]
        if any(isinstance(event.happening, Undone | RolledBack) for event in new):
            held.world = None
            return False
        if len(new) > _FEW:
            return False
        try:
            world.take(new)
        except Exception:
            logger.exception("what happened in {} cannot be taken in; its world is read anew", campaign)
            held.world = None
            return False
        held.last = events[-1]
        return True


def _closed() -> Unavailable:
    return Unavailable("the session is over")
