"""A `WorldFeed` in memory: a log of events that can be away, late, or put back from a backup."""

from __future__ import annotations

import asyncio
from typing import Final

from glyphoxa.domain.ids import CampaignId
from glyphoxa.world.event_log import Cause, Event, WorldEvent, replay
from glyphoxa.world.graph import WorldRead
from tests.support.memory import Weather

TOWN: Final = CampaignId("town")


class WorldFeedTwin:
    """The world of one campaign; that of another is empty.

    Attributes:
        n_read: How often all was read.
        n_looks: How often what is new was asked for.
    """

    def __init__(self, *events: Event, campaign: CampaignId = TOWN) -> None:
        self._campaign = campaign
        self.log: list[WorldEvent] = []
        self.weather = Weather()
        self.n_read = self.n_looks = 0
        self.was_read = asyncio.Event()
        self.happens(*events)

    def happens(self, *events: Event) -> None:
        for event in events:
            self.log.append(WorldEvent(len(self.log) + 1, Cause("dm", len(self.log)), event))

    def put_back(self, seq: int) -> None:
        """Drop later events, like a database restored from a backup."""
        del self.log[seq:]

    async def read(self, campaign: CampaignId) -> WorldRead:
        await self.weather.pass_through()
        self.n_read += 1
        self.was_read.set()
        log = self.log if campaign == self._campaign else []
        return WorldRead(replay(log), log[-1] if log else None)

    async def events(self, campaign: CampaignId, *, after: int, limit: int) -> list[WorldEvent]:
        await self.weather.pass_through()
        self.n_looks += 1
        return [event for event in self.log if campaign == self._campaign and event.seq > after][:limit]
