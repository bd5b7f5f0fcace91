"""Hold the transcript of a campaign in memory: speakers, meanings, and how the campaign counts time.

It is read on first use and follows the log from then on. Its vectors are those of one model: after all utterances were
embedded by another one, it keeps what it has, and finds new utterances by words until the table is reopened.

`Cursor` knows how far the log was read. Each change of an utterance has a number, and a campaign's changes become
visible in the order of their numbers. The cursor requests changes from the last known number on: one small query, which
mostly returns that change only. The answer also shows whether the database was restored from a backup:

    the known change has its number         the same log; what follows is new
    it is missing, and so are others        another log: everything is read again
    it is missing, but comes with a later   the same log: an utterance that changes again gets a later number
    number, as do all missing ones
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Final

from loguru import logger

from glyphoxa.actors.limits import SharedRead
from glyphoxa.domain.calendar import CampaignTimes
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId
from glyphoxa.recall.table_calendar import ReadTimes, TableTimes, zone_of_campaign
from glyphoxa.recall.talk_index import TalkIndex
from glyphoxa.recall.terms import Terms
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.ports import FeedUtterance, TalkFeed, TalkHead

Fetch = Callable[[int, int], Awaitable[Sequence[FeedUtterance]]]
"""Returns at most that many changes from a number on, in the order of their numbers."""

_PAGE = 500
_FEW = 20
"""Indexing this many utterances is faster than starting a thread."""
_RECENT: Final = 1_000
"""Changes that a cursor remembers. If all of them have changed again, everything is read again."""
_MOST_VECTOR_BYTES = 1 << 28
"""For one campaign: 170,000 utterances of 384 dimensions. Older ones are found by words only."""
_DEFAULT_TIMES: Final = CampaignTimes(time_zone="UTC")


class Cursor:
    """See the module."""

    def __init__(self) -> None:
        self._recent: deque[FeedUtterance] = deque(maxlen=_RECENT)
        self._missing: set[UtteranceId] = set()

    async def read(self, fetch: Fetch, *, limit: int) -> tuple[Sequence[FeedUtterance], int] | None:
        """Return the next page, and how many changes at its start were read before; None if the log is another one.

        A page has at least `limit` changes unless it is the last.
        """
        last = self._recent[-1] if self._recent else None
        page = await fetch(0 if last is None else last.change_seq, limit)
        n_known = 0
        if last is not None and page and page[0] == last:
            n_known = 1
        elif last is not None:
            limit += len(self._recent)
            page = await fetch(self._recent[0].change_seq, limit)
            n_known = self._known_of(page, until=last.change_seq)
            if not n_known:
                return None
        if self._missing:
            self._missing.difference_update(change.utterance_id for change in page[n_known:])
            if self._missing and len(page) < limit:
                return None
        self._recent.extend(page[max(n_known, len(page) - _RECENT) :])
        return page, n_known

    def _known_of(self, page: Sequence[FeedUtterance], *, until: int) -> int:
        """Return how many changes of a page have numbers up to `until`; 0 if one of these was not read before."""
        known = {change.change_seq: change for change in self._recent}
        same = list(itertools.takewhile(lambda change: change.change_seq <= until, page))
        if any(known.get(change.change_seq) != change for change in same):
            return 0
        self._missing |= {change.utterance_id for change in self._recent} - {change.utterance_id for change in same}
        return len(same)


@dataclass(slots=True, eq=False)
class _Transcript:
    """The part of a campaign's transcript that was read.

    Attributes:
        head: State of the log at the last page.
        asked: State when vectors were last requested: up to which change, and how far they were embedded.
        is_outdated: The vectors are of another model by now, and the user was told.
    """

    index: TalkIndex
    head: TalkHead
    cursor: Cursor = field(default_factory=Cursor)
    asked: tuple[int, str] | None = None
    is_outdated: bool = False


class Transcripts:
    """The transcripts of campaigns in memory.

    Args:
        feed, embedder, read_times: See `TranscriptMemory`.
    """

    def __init__(
        self, feed: TalkFeed, *, embedder: Embedder | None = None, read_times: ReadTimes | None = None
    ) -> None:
        self.embedder = embedder
        self._open = partial(TranscriptMemory, feed, embedder=embedder, read_times=read_times)
        self._by_campaign: dict[CampaignId, TranscriptMemory] = {}

    def of(self, campaign: CampaignId) -> TranscriptMemory:
        """Return a campaign's transcript, the same object to every caller."""
        if campaign not in self._by_campaign:
            self._by_campaign[campaign] = self._open(campaign)
        return self._by_campaign[campaign]

    async def close(self) -> None:
        """Cancel the work in progress."""
        for transcript in self._by_campaign.values():
            await transcript.reading.close()


@dataclass(eq=False, repr=False)
class TranscriptMemory:
    """The transcript of one campaign.

    Args:
        feed: Source of the utterances.
        embedder: The model of their vectors; None compares words only.
        read_times: Reads how a campaign counts time; None means days from midnight UTC and no story days.

    Attributes:
        reading: Reads it; to be closed.
        times: How the campaign counts time, as it was read last.
    """

    feed: TalkFeed
    campaign: CampaignId
    _: KW_ONLY
    embedder: Embedder | None = None
    read_times: ReadTimes | None = None
    times: CampaignTimes = field(default=_DEFAULT_TIMES, init=False)
    _times_version: str | None = field(default=None, init=False)
    _table_times: tuple[int, CampaignTimes, TableTimes] | None = field(default=None, init=False)
    _held: _Transcript | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.reading = SharedRead(self._read)

    @property
    def index(self) -> TalkIndex | None:
        """The utterances in memory; None until they were read to the end."""
        return None if self._held is None else self._held.index

    def speaker_of(self, npc: NpcId, utterance: UtteranceId) -> str:
        """Return the speaker's name of an utterance; empty if this NPC did not hear it, or nothing is in memory."""
        rows = [] if self.index is None else self.index.rows_of([utterance])
        said = [self.index.said(row) for row in rows if self.index is not None]
        return next((one.speaker_name for one in said if npc in one.witnesses), "")

    @property
    def table_times(self) -> TableTimes:
        """The way the table counts time, for the current utterances; the same object until something changes."""
        index, known = self.index, self._table_times
        if index is None:
            return TableTimes()
        if known is None or known[0] != index.changes or known[1] is not self.times:
            table_times = TableTimes(zone_of_campaign(self.times.time_zone), self.times, index.told_at_ms)
            known = self._table_times = (index.changes, self.times, table_times)
        return known[2]

    @property
    def story_day(self) -> str:
        """The present story day, as its calendar writes it; empty without story days or if none was set."""
        return self.times.in_words(self.times.today)

    def session_numbers(self) -> Mapping[SessionId, int]:
        """Return the sessions in memory with their numbers."""
        return {} if self.index is None else self.index.session_numbers()

    async def refresh(self) -> TalkIndex:
        """Read all changes so far; on first use, everything. See `SharedRead.wait`.

        Raises:
            Unavailable: The database is unreachable, and the memory is unchanged; or this object was closed.
        """
        await self.reading.wait()
        if self.index is None:
            raise Unavailable(f"{self.campaign} is not in memory")
        return self.index

    async def _read(self) -> None:
        held = self._held
        if held is not None:
            # Also before everything is read again, which takes a while: rolled-back utterances must not be recalled
            # meanwhile.
            if not await self._read_on(held):
                self._held = None
            elif held.index.terms.language == held.head.language:
                return
        head = (await self.feed.changes(self.campaign, since=0, limit=0)).head
        # A language's word lists are long.
        terms = await asyncio.to_thread(Terms, head.language)
        dimensions = 1 if self.embedder is None else self.embedder.dimensions
        rebuilt = _Transcript(TalkIndex(terms, dimensions=dimensions), head)
        if not await self._read_on(rebuilt):
            raise Unavailable(f"the log of {self.campaign} was replaced while it was read")
        self._held = rebuilt

    async def _read_on(self, held: _Transcript) -> bool:
        """Return False if the log is not the one that was read, because its database was restored from a backup."""

        async def fetch(since: int, limit: int) -> Sequence[FeedUtterance]:
            page = await self.feed.changes(self.campaign, since=since, limit=limit)
            held.head = page.head
            return page.said

        while True:
            read = await held.cursor.read(fetch, limit=_PAGE)
            if read is None:
                return False
            page, n_known = read
            new = page[n_known:]
            if len(page) - n_known > _FEW:
                await asyncio.to_thread(held.index.put, new)
            else:
                held.index.put(new)
            if len(page) < _PAGE:
                break
        await self._read_embeddings(held)
        await self._read_new_times(held.head.times)
        return True

    async def _read_new_times(self, version: str) -> None:
        """Read them if they differ from the known ones. While the database is unavailable, the known ones stay."""
        if self.read_times is None or self._times_version == version:
            return
        try:
            self.times, self._times_version = await self.read_times(self.campaign), version
        except GlyphoxaError as error:
            logger.debug("how {} counts time could not be read: {}", self.campaign, error)

    async def _read_embeddings(self, held: _Transcript) -> None:
        """Read vectors if there may be new ones.

        The latest come first: if there are more utterances than memory may hold, the oldest are found by words only,
        for good. Utterances are embedded oldest first, so later reads look at both ends of the missing range.
        """
        index, ours = held.index, self.embedder
        there = (index.change_seq, held.head.embedded)
        if ours is None or held.is_outdated or there == held.asked:
            return
        if held.head.model not in (None, (ours.name, ours.dimensions)):
            held.is_outdated = True
            logger.warning(
                "{} was embedded again: new lines are found by words until the table is reopened", self.campaign
            )
            return
        is_first = held.asked is None
        most = _MOST_VECTOR_BYTES // (4 * index.dimensions)
        wanted = index.unembedded(limit=max(most - index.n_vectors, _PAGE))
        pages = [wanted[at : at + _PAGE] for at in range(0, len(wanted), _PAGE)]
        from_the_oldest = False
        while pages:
            page = pages.pop(0)
            found = await self.feed.embeddings(self.campaign, page, ours.name)
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
