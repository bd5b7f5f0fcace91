"""Hold the transcript of a campaign in memory: speakers, meanings, and how the campaign counts time.

It is read on first use and follows the log from then on. Its vectors are those of one `IndexGeneration`: after all
utterances were embedded again, it keeps what it has, and finds new utterances by words until the table is reopened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Final, TypeVar

from loguru import logger

from glyphoxa.domain.calendar import CampaignTimes
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.recall.campaign_cache import CampaignCache, CampaignEntry, Cursor
from glyphoxa.recall.table_calendar import ReadTimes, TableTimes
from glyphoxa.recall.talk_index import TalkIndex
from glyphoxa.recall.terms import Terms
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.ports import FeedUtterance, TalkFeed, TalkHead

T = TypeVar("T")

_PAGE = 500
_FEW = 20
"""Indexing this many utterances is faster than starting a thread."""
_MOST_CAMPAIGNS = 16
_MOST_VECTOR_BYTES = 1 << 28
"""For one campaign: 170,000 utterances of 384 dimensions. Older ones are found by words only."""
_DEFAULT_TIMES: Final = CampaignTimes(time_zone="UTC")


@dataclass(slots=True, eq=False)
class _Transcript:
    """The part of a campaign's transcript that was read.

    Attributes:
        head: State of the log at the last page.
        asked: State when vectors were last requested: up to which change, and how far they were embedded.
        generation: Number of the generation of its vectors; None until they were requested.
        is_outdated: There is another generation, and the user was told.
        times: How the campaign counts time, with its version.
    """

    index: TalkIndex
    head: TalkHead
    cursor: Cursor[FeedUtterance] = field(
        default_factory=lambda: Cursor(seq_of=attrgetter("change_seq"), key_of=attrgetter("utterance_id"))
    )
    asked: tuple[int, str] | None = None
    generation: int | None = None
    is_outdated: bool = False
    times: tuple[str, CampaignTimes] | None = None
    _table_times: tuple[int, CampaignTimes, TableTimes] | None = None

    @property
    def is_current(self) -> bool:
        """Whether the index can be updated; otherwise it is rebuilt."""
        return self.index.terms.language == self.head.language and not self.index.wastes

    @property
    def campaign_times(self) -> CampaignTimes:
        return _DEFAULT_TIMES if self.times is None else self.times[1]

    @property
    def table_times(self) -> TableTimes:
        """The way the table counts time, for the current utterances; the same object until something changes."""
        known, times = self._table_times, self.campaign_times
        if known is None or known[0] != self.index.changes or known[1] is not times:
            table_times = TableTimes.of(times, self.index.told_at_ms)
            known = self._table_times = (self.index.changes, times, table_times)
        return known[2]


class TranscriptMemory:
    """
    Args:
        feed: Source of the utterances.
        embedder: The model of their vectors; None compares words only.
        times: Reads how a campaign counts time; None means days from midnight UTC and no story days.
    """

    def __init__(
        self,
        feed: TalkFeed,
        *,
        embedder: Embedder | None = None,
        times: ReadTimes | None = None,
    ) -> None:
        self._feed = feed
        self._embedder = embedder
        self._dimensions = 1 if embedder is None else embedder.dimensions
        self._times = times
        self._held = CampaignCache(self._read, most=_MOST_CAMPAIGNS)

    def index(self, campaign: CampaignId) -> TalkIndex | None:
        """Return the utterances of a campaign in memory; None until they were read to the end."""
        held = self._held.get(campaign)
        return None if held is None else held.index

    def table_times(self, campaign: CampaignId) -> TableTimes:
        """Return how the campaign counts time, from memory."""
        held = self._held.get(campaign)
        return TableTimes() if held is None else held.table_times

    def session_times(self, campaign: CampaignId) -> tuple[CampaignTimes, Callable[[], Mapping[SessionId, int]]]:
        """Return how the campaign counts time, and a function that returns its sessions with their numbers."""
        held = self._held.get(campaign)
        return (_DEFAULT_TIMES, dict) if held is None else (held.campaign_times, held.index.session_numbers)

    def story_day(self, campaign: CampaignId) -> str:
        """Return the present story day, as its calendar writes it; empty without story days or if none was set."""
        times, _ = self.session_times(campaign)
        return "" if times.calendar is None or times.today is None else times.calendar.in_words(times.today)

    async def refresh(self, campaign: CampaignId) -> TalkIndex:
        """Read all changes so far; on first use, everything. See `CampaignCache.refresh`.

        Raises:
            Unavailable: The database is unreachable, and the memory is unchanged; or this object was closed.
        """
        return (await self._held.refresh(campaign)).index

    async def close(self) -> None:
        """Stop reading and release everything."""
        await self._held.close()

    async def _read(self, campaign: CampaignId, entry: CampaignEntry[_Transcript]) -> None:
        held = entry.held
        if held is not None:
            # Also before everything is read again, which takes a while: rolled-back utterances must not be recalled
            # meanwhile.
            if not await self._read_on(campaign, held):
                entry.held = None
            elif held.is_current:
                return
        head = (await self._feed.changes(campaign, since=0, limit=0)).head
        # A language's word lists are long.
        terms = await asyncio.to_thread(Terms, head.language)
        rebuilt = _Transcript(TalkIndex(terms, dimensions=self._dimensions), head)
        if held is not None:
            rebuilt.times = held.times
        if not await self._read_on(campaign, rebuilt):
            raise Unavailable(f"the log of {campaign} was replaced while it was read")
        entry.held = rebuilt

    async def _read_on(self, campaign: CampaignId, held: _Transcript) -> bool:
        """Return False if the log is not the one that was read, because its database was restored from a backup."""

        async def fetch(since: int, limit: int) -> Sequence[FeedUtterance]:
            page = await self._feed.changes(campaign, since=since, limit=limit)
            held.head = page.head
            return page.said

        while True:
            changes = await held.cursor.read(fetch, limit=_PAGE)
            if changes is None:
                return False
            if changes.n_new:
                await _in_thread_if(changes.n_new > _FEW, partial(held.index.put, changes.new()))
            if changes.is_last:
                break
        await self._read_embeddings(campaign, held)
        await self._read_times(campaign, held)
        return True

    async def _read_times(self, campaign: CampaignId, held: _Transcript) -> None:
        """Read them if they differ from the known ones. While the database is unavailable, the known ones stay."""
        version = held.head.times
        if self._times is None or (held.times is not None and held.times[0] == version):
            return
        try:
            held.times = (version, await self._times(campaign))
        except GlyphoxaError as error:
            logger.debug("how {} counts time could not be read: {}", campaign, error)

    async def _read_embeddings(self, campaign: CampaignId, held: _Transcript) -> None:
        """Read vectors if there may be new ones.

        The latest come first: if there are more utterances than memory may hold, the oldest are found by words only,
        for good. Utterances are embedded oldest first, so later reads look at both ends of the missing range.
        """
        index, generation, ours = held.index, held.head.generation, self._embedder
        there = (index.change_seq, held.head.embedded)
        if generation is None or ours is None or held.is_outdated or there == held.asked:
            return
        if held.generation not in (None, generation.number) or not generation.is_of(ours.name, ours.dimensions):
            held.is_outdated = True
            logger.warning("{} was embedded again: new lines are found by words until the table is reopened", campaign)
            return
        held.generation = generation.number
        is_first = held.asked is None
        most = _MOST_VECTOR_BYTES // (4 * index.dimensions)
        wanted = index.unembedded(limit=max(most - index.n_vectors, _PAGE))
        pages = [wanted[at : at + _PAGE] for at in range(0, len(wanted), _PAGE)]
        from_the_oldest = False
        while pages:
            page = pages.pop(0)
            found = await self._feed.embeddings(campaign, page, generation)
            if found:
                await asyncio.to_thread(index.put_meanings, found)
            elif from_the_oldest:
                break
            elif not is_first:
                pages.reverse()
                from_the_oldest = True
            if index.n_vectors >= most:
                index.want_no_meanings(before=page[-1])
                break
        held.asked = there


async def _in_thread_if(is_long: bool, work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work) if is_long else work()
