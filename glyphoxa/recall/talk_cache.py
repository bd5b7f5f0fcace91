"""Talk of campaigns held in memory: read when it is first needed, kept up to date, bounded."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.cursor import Cursor
from glyphoxa.recall.index.talk_index import TalkIndex
from glyphoxa.recall.refreshing import CampaignCache
from glyphoxa.recall.semantic.embedder import Embedder
from glyphoxa.recall.talk_embeddings import Another, TalkEmbeddings
from glyphoxa.recall.terms import Terms
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


class TalkCache:
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
