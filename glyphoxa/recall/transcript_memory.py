"""Talk of campaigns held in memory: read when it is first needed, kept up to date, bounded."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final
from weakref import WeakMethod

import numpy as np
from loguru import logger
from numpy import int64
from numpy.typing import NDArray

from glyphoxa.domain.calendar import CampaignTimes
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.campaign_cache import CampaignCache, Cursor
from glyphoxa.recall.days import TableTimes, TimesOfCampaigns
from glyphoxa.recall.talk_index import TalkIndex
from glyphoxa.recall.terms import Terms
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.ports import FeedUtterance, IndexGeneration, TalkFeed, TalkHead

_PAGE = 500
_FEW = 20
"""Utterances that are taken in faster than a thread is."""


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
class _Copy:
    """What was read of a campaign, and how far.

    Attributes:
        head: As of the last page.
        is_seen: It was read to its end: somebody may look into it.
        asked: What there was when vectors were last asked for: up to which change_seq, and how far they were embedded.
    """

    index: TalkIndex
    head: TalkHead
    cursor: Cursor[FeedUtterance] = field(
        default_factory=lambda: Cursor(seq_of=attrgetter("change_seq"), key_of=attrgetter("utterance_id"))
    )
    is_seen: bool = False
    asked: tuple[int, str, IndexGeneration] | None = None


@dataclass(slots=True)
class _Held:
    """
    Attributes:
        copy: Read to its end at least once.
        anew: Being read from the beginning; what takes several attempts is gone on with.
    """

    copy: _Copy | None = None
    anew: _Copy | None = None

    @property
    def size_bytes(self) -> int:
        return sum(copy.index.size_bytes for copy in (self.copy, self.anew) if copy is not None)


class TranscriptMemory:
    """
    Args:
        feed: Where talk is read.
        dimensions: Of the vectors that the feed has.
        embedder: Whose they are; None for whoever's they are.
        another: See `Another`.
    """

    def __init__(
        self,
        feed: TalkFeed,
        *,
        dimensions: int,
        embedder: Embedder | None = None,
        another: Another | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self._feed = feed
        bounds = bounds or Bounds()
        self._embeddings = TalkEmbeddings(
            feed,
            dimensions=dimensions,
            embedder=embedder,
            another=another,
            most_bytes=bounds.most_vector_bytes,
        )
        self._held = CampaignCache(
            new=_Held,
            read=self._read,
            is_too_much=lambda held: sum(each.size_bytes for each in held) > bounds.most_bytes,
        )

    @property
    def embedder(self) -> Embedder | None:
        """The latest whose vectors the feed had."""
        return self._embeddings.embedder

    def index(self, campaign: CampaignId) -> TalkIndex | None:
        """What is held of a campaign as it is now; None when it has not been read to its end yet."""
        held = self._held.get(campaign)
        return None if held is None or held.copy is None else held.copy.index

    def head(self, campaign: CampaignId) -> TalkHead | None:
        """As of when what is held was read last."""
        held = self._held.get(campaign)
        return None if held is None or held.copy is None else held.copy.head

    async def refresh(self, campaign: CampaignId) -> TalkIndex:
        """Read what has changed until now; all of it, the first time. Those who ask while somebody else's reading is
        under way share the next one: what they know of may have come too late for that.

        Raises:
            Unavailable: The database cannot be reached, and what is held stays as it is; or all was closed.
        """
        held = await self._held.refresh(campaign)
        if held.copy is None:
            raise Unavailable(f"the log of {campaign} was exchanged for another while it was read")
        return held.copy.index

    async def close(self) -> None:
        """End what is being read. Nothing is held any more, and nothing is read."""
        await self._held.close()

    async def _read(self, campaign: CampaignId, held: _Held) -> None:
        if held.copy is not None:
            # Also when it is to be read anew, which takes a while: what was rolled back is not told meanwhile.
            if not await self._read_on(campaign, held.copy):
                held.copy = None
            elif held.copy.head.language == held.copy.index.terms.language and not held.copy.index.wastes:
                return
        while True:
            if held.anew is None:
                head = (await self._feed.changes(campaign, since=0, limit=0)).head
                # A language's lists of words are long.
                terms = await asyncio.to_thread(Terms, head.language)
                held.anew = _Copy(TalkIndex(terms, dimensions=self._embeddings.dimensions), head)
            if await self._read_on(campaign, held.anew):
                break
            held.anew = None
        held.copy, held.anew = held.anew, None

    async def _read_on(self, campaign: CampaignId, copy: _Copy) -> bool:
        """False if the log is not the one that was read: its database was put back from a backup."""
        index = copy.index

        async def fetch(since: int, limit: int) -> Sequence[FeedUtterance]:
            page = await self._feed.changes(campaign, since=since, limit=limit)
            copy.head = page.head
            return page.said

        while True:
            read = await copy.cursor.read(fetch, limit=_PAGE, taken=index)
            if read is None:
                return False
            page, n_known = read
            n_new = len(page) - n_known
            if n_new:
                new = itertools.islice(page, n_known, None)
                again = index.put(new) if n_new <= _FEW else await asyncio.to_thread(index.put, new)
                copy.cursor.take(page, again=again)
            if len(page) < _PAGE:
                break
        if not copy.cursor.is_whole:
            return False
        await self._read_embeddings(campaign, copy)
        copy.is_seen = True
        return True

    async def _read_embeddings(self, campaign: CampaignId, copy: _Copy) -> None:
        """If there may be some that were not there before."""
        generation = copy.head.generation
        if generation is None:
            return
        there = (copy.index.change_seq, copy.head.embedded, generation)
        if there == copy.asked or not await self._embeddings.is_ours(generation):
            return
        is_first = copy.index.edition != generation
        if is_first:
            copy.index = await self._embeddings.index_for(generation, copy.index, is_seen=copy.is_seen)
        await self._embeddings.read(campaign, copy.index, generation, is_first=is_first)
        copy.asked = there


# -- talk embeddings
#
# The vectors of talk that is held in memory: whose they are, and that they are read.
#
# All talk may be embedded anew, by the same model or by another one. Those vectors are another `IndexGeneration`: they
# are never in one index with others, and questions are embedded by whoever embedded them.


Another = Callable[[str, int], Awaitable[Embedder | None]]
"""The embedder of a name and of so many dimensions, when talk was embedded by that one; None if it is not to be had."""

_ANOTHER_AGAIN_S = 30.0
"""An embedder that was not to be had is asked for again after this."""


class TalkEmbeddings:
    """
    Args:
        feed: Where they are read.
        dimensions: Of the first generation.
        embedder: Whose that is; None for whoever's it is.
        another: Gives that of a later one; None: there is none.
        most_bytes: Of one campaign. Older turns are found by words alone.

    Attributes:
        embedder: The latest whose vectors the feed had.
        dimensions: Of its vectors.
    """

    def __init__(
        self, feed: TalkFeed, *, dimensions: int, embedder: Embedder | None, another: Another | None, most_bytes: int
    ) -> None:
        self._feed = feed
        self.dimensions = dimensions
        self.embedder = embedder
        self._another = another
        self._most_bytes = most_bytes
        self._not_to_be_had: tuple[IndexGeneration | None, float] = (None, 0.0)

    async def is_ours(self, generation: IndexGeneration) -> bool:
        """Whether questions can be embedded by whoever embedded that talk."""
        if self.embedder is None or generation.is_of(self.embedder.name, self.embedder.dimensions):
            return True
        now = asyncio.get_running_loop().time()
        missed, asked_at = self._not_to_be_had
        if self._another is None or (missed == generation and now - asked_at < _ANOTHER_AGAIN_S):
            return False
        another = await self._another(generation.model, generation.dimensions)
        if another is None:
            self._not_to_be_had = (generation, now)
            return False
        logger.info("talk is embedded by {} from now on", another.name)
        self.embedder, self.dimensions = another, another.dimensions
        return True

    async def index_for(self, generation: IndexGeneration, index: TalkIndex, *, is_seen: bool) -> TalkIndex:
        """The same talk without the vectors of another generation, for those of this one.

        Args:
            is_seen: Somebody may look into `index`, with a question's vector of the other model: it keeps its vectors.
        """
        if not is_seen and index.dimensions == self.dimensions and not index.n_vectors:
            index.edition = generation
            return index
        return await asyncio.to_thread(index.for_edition, generation, dimensions=self.dimensions)

    async def read(
        self, campaign: CampaignId, index: TalkIndex, generation: IndexGeneration, *, is_first: bool
    ) -> None:
        """The latest first: of more talk than memory may hold the oldest is found by words alone, for good. Talk is
        embedded the oldest first, so that later readings look at both ends of what is missing.

        Args:
            is_first: Nothing of this generation was read yet.

        Raises:
            Unavailable: The feed cannot be read; what has come stays.
        """
        most = self._most_bytes // (4 * index.dimensions)
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


# -- times cache
#
# How campaigns tell the time, held in memory beside their talk.


_BY_DEFAULT: Final = CampaignTimes(time_zone="UTC")


class TimesCache:
    """
    Args:
        times: Where they are read; None: days begin at midnight UTC, and no story counts its own.
    """

    def __init__(self, times: TimesOfCampaigns | None) -> None:
        self._times = times
        self._held: dict[CampaignId, tuple[str, CampaignTimes]] = {}
        self._of_talk: dict[CampaignId, tuple[int, CampaignTimes, TableTimes]] = {}

    async def refresh(self, campaign: CampaignId, version: str) -> None:
        """Read them if they are others than those that are known. While the database is away these stand.

        Args:
            version: See `TalkHead.times`.
        """
        known = self._held.get(campaign)
        if self._times is None or (known is not None and known[0] == version):
            return
        try:
            found = await self._times.times(campaign)
        except GlyphoxaError as error:
            logger.debug("how {} tells the time is not read: {}", campaign, error)
        else:
            self._held[campaign] = (version, found)

    def story_day(self, campaign: CampaignId) -> str:
        """Where the story stands, as its calendar writes it; empty if it counts no days or nobody has said."""
        _, times = self._held.get(campaign, ("", _BY_DEFAULT))
        return "" if times.calendar is None or times.today is None else times.calendar.in_words(times.today)

    def of(self, campaign: CampaignId, index: TalkIndex) -> TableTimes:
        """As of the campaign's talk as it is now; the same object as long as nothing changes."""
        _, times = self._held.get(campaign, ("", _BY_DEFAULT))
        known = self._of_talk.get(campaign)
        if known is None or known[0] != index.changes or known[1] is not times:
            known = self._of_talk[campaign] = (index.changes, times, TableTimes.of(times, _told_at_ms(index)))
        return known[2]


def _told_at_ms(index: TalkIndex) -> Callable[[], NDArray[int64]]:
    """It keeps no talk in memory that was let go."""
    found = WeakMethod(index.told_at_ms)

    def told_at_ms() -> NDArray[int64]:
        told = found()
        return np.zeros(0, int64) if told is None else told()

    return told_at_ms
