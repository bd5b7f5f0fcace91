"""Talk of campaigns held in memory: read when it is first needed, kept up to date, bounded."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from loguru import logger

from glyphoxa.domain.ids import CampaignId
from glyphoxa.memory.ports.talk_feed import TalkFeed
from glyphoxa.memory.recall.talk_index import TalkIndex
from glyphoxa.memory.recall.terms import Terms

_PAGE = 2_000
_MEANINGS_PAGE = 1_000
_MEANINGS_AGAIN_S = 2.0
"""Talk that is not embedded yet is asked for again after this; what is new, at once."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """
    Attributes:
        most_bytes: Of all campaigns together. Above it the one that was not asked for longest is let go.
        most_vector_bytes: Of one campaign: 170,000 turns of 384 dimensions. Older turns are found by words alone.
    """

    most_bytes: int = 1 << 30
    most_vector_bytes: int = 1 << 28


@dataclass(slots=True)
class _Held:
    index: TalkIndex
    is_complete: bool = False
    asked_at: float = 0.0
    asked_mark: int = -1
    refreshing: asyncio.Task[None] | None = None


class HeldTalk:
    """
    Args:
        feed: Where talk is read.
        dimensions: Of the vectors that the feed has.
    """

    def __init__(self, feed: TalkFeed, *, dimensions: int, bounds: Bounds | None = None) -> None:
        self._feed = feed
        self._dimensions = dimensions
        self._bounds = bounds or Bounds()
        self._held: OrderedDict[CampaignId, _Held] = OrderedDict()

    def index(self, campaign: CampaignId) -> TalkIndex | None:
        """What is held of a campaign as it is now; None when it has not been read to its end yet."""
        held = self._held.get(campaign)
        return held.index if held is not None and held.is_complete else None

    async def refresh(self, campaign: CampaignId) -> TalkIndex:
        """Read what has changed; all of it, the first time. Calls at the same time share one reading.

        Raises:
            Unavailable: The database cannot be reached; what is held stays as it is.
        """
        held = self._held.get(campaign)
        if held is None:
            language = await self._feed.language(campaign)
            held = self._held.setdefault(campaign, self._new(language))
        self._held.move_to_end(campaign)
        if held.refreshing is None or held.refreshing.done():
            held.refreshing = asyncio.create_task(self._read(campaign, held))
            held.refreshing.add_done_callback(_heard)
        # Whoever asked may be late and go: the reading goes on for those who come next.
        await asyncio.shield(held.refreshing)
        self._let_go(campaign)
        return held.index

    async def close(self) -> None:
        """End what is being read."""
        tasks = [held.refreshing for held in self._held.values() if held.refreshing is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._held.clear()

    def _new(self, language: str) -> _Held:
        return _Held(TalkIndex(Terms(language), dimensions=self._dimensions))

    async def _read(self, campaign: CampaignId, held: _Held) -> None:
        if held.is_complete and held.index.wastes:
            language = await self._feed.language(campaign)
            anew = TalkIndex(Terms(language), dimensions=self._dimensions)
            await self._read_into(campaign, anew, held)
            held.index = anew
        else:
            await self._read_into(campaign, held.index, held)
        held.is_complete = True

    async def _read_into(self, campaign: CampaignId, index: TalkIndex, held: _Held) -> None:
        page_size = _PAGE
        while True:
            page = await self._feed.changed(campaign, after=index.mark, limit=page_size)
            if len(page) < 20:
                index.put(page)
            else:
                await asyncio.to_thread(index.put, page)
            if len(page) < page_size:
                break
        now = asyncio.get_running_loop().time()
        is_new = index.mark != held.asked_mark
        if is_new or now - held.asked_at >= _MEANINGS_AGAIN_S:
            await self._read_meanings(campaign, index)
            held.asked_mark, held.asked_at = index.mark, now

    async def _read_meanings(self, campaign: CampaignId, index: TalkIndex) -> None:
        """The latest first: of more talk than memory may hold the oldest is found by words alone."""
        most = self._bounds.most_vector_bytes // (4 * self._dimensions)
        wanted = index.unembedded(limit=most)
        for at in range(0, len(wanted), _MEANINGS_PAGE):
            page = wanted[at : at + _MEANINGS_PAGE]
            found = await self._feed.meanings(campaign, page)
            await asyncio.to_thread(index.put_meanings, found)
            if not found or index.n_vectors >= most:
                break

    def _let_go(self, used: CampaignId) -> None:
        while len(self._held) > 1 and sum(h.index.size_bytes for h in self._held.values()) > self._bounds.most_bytes:
            oldest = next(iter(self._held))
            if oldest == used:
                break
            logger.debug("talk of {} is let go from memory", oldest)
            del self._held[oldest]


def _heard(reading: asyncio.Task[None]) -> None:
    """Nobody may be waiting for it any more; then nobody would ask how it ended."""
    if not reading.cancelled():
        reading.exception()
