"""Worlds of campaigns held in memory, to be asked by name: read when they are first needed, kept true, bounded.

A world changes only by events, in one order. Whoever has taken event 4711 asks for what is behind it, which is one
small question, and nearly always there is nothing. What speaks of earlier events (something undone, a rollback), and
more than can be taken one by one, has the world read anew, and until that is done nobody is told anything of it: what
was taken back or hidden is not told meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from loguru import logger

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from glyphoxa.recall.cursor import Cursor
from glyphoxa.recall.entities.named_world import KnownByName, NamedWorld
from glyphoxa.recall.refreshing import CampaignCache
from glyphoxa.world.events import TakenBack, Undone, WorldEvent
from glyphoxa.world.graph import IdentitySnapshot, WorldFeed

_MOST_WORLDS: Final = 2
_FEW: Final = 50
"""Events that are taken one by one."""


@dataclass(slots=True)
class _Held:
    world: NamedWorld | None = None
    cursor: Cursor[WorldEvent] = field(
        default_factory=lambda: Cursor(seq_of=attrgetter("seq"), key_of=attrgetter("seq"))
    )


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
        self._held = CampaignCache(new=_Held, read=self._read, is_too_much=lambda held: len(held) > most)

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
        await self._held.refresh(campaign)

    async def close(self) -> None:
        """End what is being read. Nothing is held any more, and nothing is read."""
        await self._held.close()

    async def _read(self, campaign: CampaignId, held: _Held) -> None:
        if held.world is not None and await self._take_new(campaign, held, held.world):
            return
        read = await self._feed.read(campaign)
        world = await asyncio.to_thread(NamedWorld, read.state, language=read.language, also_called=read.also_called)
        held.world, held.cursor.last = world, read.last

    async def _take_new(self, campaign: CampaignId, held: _Held, world: NamedWorld) -> bool:
        """False if the world is to be read anew."""
        is_empty = held.cursor.last is None
        read = await held.cursor.read(
            lambda seq, limit: self._feed.changes(campaign, since=seq, limit=limit), limit=_FEW + 2
        )
        if read is None:
            held.world = None  # its database was put back from a backup
            return False
        events, n_known = read
        if is_empty and not events:
            return False  # there may have been no campaign yet, and so no language
        new = events[n_known:]
        if len(new) > _FEW or any(isinstance(recorded.event, Undone | TakenBack) for recorded in new):
            held.world = None  # of many, nobody has looked yet at what the last of them hide
            return False
        try:
            world.take(new)
        except Exception:
            # Whatever it was, half of it may be taken in by now: nothing is told from such a world.
            logger.exception("what happened in {} cannot be taken in; its world is read anew", campaign)
            held.world = None
            return False
        if new:
            held.cursor.take(events)
        return True
