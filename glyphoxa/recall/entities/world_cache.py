"""Worlds of campaigns held in memory, to be asked by name: read when they are first needed, kept true, bounded.

A world changes only by events, in one order. Whoever has taken event 4711 asks for what is behind it, which is one
small question, and nearly always there is nothing. What speaks of earlier events (something undone, a rollback), and
more than can be taken one by one, has the world read anew, and until that is done nobody is told anything of it: what
was taken back or hidden is not told meanwhile.
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
from glyphoxa.recall.by_name import KnownByName
from glyphoxa.recall.entities.named_world import NamedWorld
from glyphoxa.recall.refreshing import Line, RefreshCoalescing
from glyphoxa.world.events import TakenBack, Undone, WorldEvent
from glyphoxa.world.feed import WorldFeed
from glyphoxa.world.graph import IdentitySnapshot

_MOST_WORLDS: Final = 2
_FEW: Final = 50
"""Events that are taken one by one."""


@dataclass(slots=True)
class _Held:
    """
    Attributes:
        last: The event that `world` has taken last; it must be in the log still.
    """

    world: NamedWorld | None = None
    last: WorldEvent | None = None
    readings: Line = field(default_factory=Line)


class WorldCache:
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
        self._readings = RefreshCoalescing()

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
        held = self._held.setdefault(campaign, _Held())
        self._held.move_to_end(campaign)
        while len(self._held) > self._most:
            self._held.popitem(last=False)
        await self._readings.wait(held.readings, lambda: self._read(campaign, held))

    async def close(self) -> None:
        """End what is being read. Nothing is held any more, and nothing is read."""
        await self._readings.close()
        self._held.clear()

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
        if len(new) > _FEW or any(isinstance(event.happening, Undone | TakenBack) for event in new):
            held.world = None  # of many, nobody has looked yet at what the last of them hide
            return False
        try:
            world.take(new)
        except Exception:
            # Whatever it was, half of it may be taken in by now: nothing is told from such a world.
            logger.exception("what happened in {} cannot be taken in; its world is read anew", campaign)
            held.world = None
            return False
        held.last = events[-1]
        return True
