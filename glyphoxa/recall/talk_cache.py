"""Talk of campaigns held in memory: read when it is first needed, kept up to date, bounded."""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from loguru import logger

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, UtteranceId
from glyphoxa.recall.lexical.talk_index import TalkIndex
from glyphoxa.recall.lexical.terms import Terms
from glyphoxa.recall.refreshing import Line, RefreshCoalescing
from glyphoxa.recall.semantic.embedder import Embedder
from glyphoxa.recall.semantic.talk_embeddings import Another, TalkEmbeddings
from glyphoxa.transcript.feed import Said, TalkFeed

_PAGE = 500
_MEANINGS_AGAIN_S = 2.0
"""Talk that is not embedded yet is asked for again after this; what is new, at once."""
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
        last: Of the latest mark. It must be in the log still, or have a later mark there.
        is_whole: It was read to its end.
        may_have_other_words: The campaign's language may be another one by now.
        missing: Talk that is no longer where it was in the log: it must come with a later mark.
        asked_at: When vectors were last asked for, and after which mark.
    """

    index: TalkIndex
    last: Said | None = None
    is_whole: bool = False
    may_have_other_words: bool = False
    missing: set[UtteranceId] = field(default_factory=set)
    asked_at: float = 0.0
    asked_mark: int = -1


@dataclass(slots=True)
class _Held:
    """
    Attributes:
        copy: Read to its end at least once.
        anew: Being read from the beginning; what takes several attempts is gone on with.
    """

    copy: _Copy | None = None
    anew: _Copy | None = None
    readings: Line = field(default_factory=Line)

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
        self._bounds = bounds or Bounds()
        self._meanings = TalkEmbeddings(
            feed,
            dimensions=dimensions,
            embedder=embedder,
            another=another,
            most_bytes=self._bounds.most_vector_bytes,
        )
        self._held: OrderedDict[CampaignId, _Held] = OrderedDict()
        self._readings = RefreshCoalescing()

    @property
    def embedder(self) -> Embedder | None:
        """The latest whose vectors the feed had."""
        return self._meanings.embedder

    def index(self, campaign: CampaignId) -> TalkIndex | None:
        """What is held of a campaign as it is now; None when it has not been read to its end yet."""
        held = self._held.get(campaign)
        return None if held is None or held.copy is None else held.copy.index

    async def refresh(self, campaign: CampaignId) -> TalkIndex:
        """Read what has changed until now; all of it, the first time. Those who ask while somebody else's reading is
        under way share the next one: what they know of may have come too late for that.

        Raises:
            Unavailable: The database cannot be reached, and what is held stays as it is; or all was closed.
        """
        held = self._held.setdefault(campaign, _Held())
        self._held.move_to_end(campaign)
        await self._readings.wait(held.readings, lambda: self._read(campaign, held))
        self._let_go(campaign)
        if held.copy is None:
            raise Unavailable(f"the log of {campaign} was exchanged for another while it was read")
        return held.copy.index

    async def close(self) -> None:
        """End what is being read. Nothing is held any more, and nothing is read."""
        await self._readings.close()
        self._held.clear()

    async def _read(self, campaign: CampaignId, held: _Held) -> None:
        if held.copy is not None:
            # Also when it is to be read anew, which takes a while: what was rolled back is not told meanwhile.
            if not await self._read_on(campaign, held.copy):
                held.copy = None
            elif await self._has_its_language(campaign, held.copy) and not held.copy.index.wastes:
                return
        while True:
            if held.anew is None:
                language = await self._feed.language(campaign)
                # A language's lists of words are long.
                terms = await asyncio.to_thread(Terms, language)
                held.anew = _Copy(TalkIndex(terms, dimensions=self._meanings.dimensions))
            if await self._read_on(campaign, held.anew):
                break
            held.anew = None
        held.copy, held.anew = held.anew, None

    async def _read_on(self, campaign: CampaignId, copy: _Copy) -> bool:
        """False if the log is not the one that was read: its database was restored from an earlier day."""
        index = copy.index
        while True:
            # With the last one that is known, which tells whether it is the same log still.
            after = -1 if copy.last is None else copy.last.mark - 1
            page = await self._feed.changed(campaign, after=after, limit=_PAGE)
            n_known = 0
            if copy.last is not None:
                n_known = 1 if page and page[0] == copy.last else 0
                if not n_known and not await self._is_same_log(campaign, copy, copy.last, page):
                    return False
            n_new = len(page) - n_known
            if n_new:
                if copy.is_whole and not len(index):
                    copy.may_have_other_words = True
                new = itertools.islice(page, n_known, None)
                if n_new <= _FEW:
                    again = index.put(new)
                else:
                    again = await asyncio.to_thread(index.put, new)
                if again:
                    copy.may_have_other_words = True
                    copy.missing -= again
                copy.last = page[-1]
            if len(page) < _PAGE:
                break
        if copy.missing:
            return False
        copy.is_whole = True
        now = asyncio.get_running_loop().time()
        if index.mark != copy.asked_mark or now - copy.asked_at >= _MEANINGS_AGAIN_S:
            edition = await self._meanings.edition(campaign)
            if edition is not None:
                is_first = index.edition != edition
                if is_first:
                    copy.index = await self._meanings.index_for(edition, index, is_seen=copy.asked_mark >= 0)
                await self._meanings.read(campaign, copy.index, edition, is_first=is_first)
            copy.asked_mark, copy.asked_at = index.mark, now
        return True

    async def _is_same_log(self, campaign: CampaignId, copy: _Copy, last: Said, page: Sequence[Said]) -> bool:
        """Whether `last`, which is not where it was, has a later mark by now. In a log that was restored from an
        earlier day and went on otherwise there may be later marks too, and earlier ones that nobody here has read: the
        latest that is still as it was tells from where on what is held has to be looked for.

        Args:
            page: What there is from the mark of `last` on.
        """
        if not page or page[0].mark <= last.mark:
            return False
        known, tried, nth = copy.index.changed_before(last.mark, 1), None, 1
        while known is not None and known != tried:
            page = await self._feed.changed(campaign, after=known.mark - 1, limit=_PAGE)
            if page and page[0] == known:
                break
            nth *= 2
            known, tried = copy.index.changed_before(last.mark, nth), known
        else:
            return False
        missing = copy.index.changed_between(known.mark, last.mark)
        while page and page[0].mark <= last.mark:
            for said in page:
                if said.mark <= last.mark and said != known and not copy.index.has(said):
                    return False
                missing.discard(said.utterance_id)
            page = await self._feed.changed(campaign, after=page[-1].mark, limit=_PAGE)
        copy.missing |= missing
        return True

    async def _has_its_language(self, campaign: CampaignId, copy: _Copy) -> bool:
        """Asked for where all talk may have changed, or the campaign was not there before."""
        if not copy.may_have_other_words:
            return True
        is_same = await self._feed.language(campaign) == copy.index.terms.language
        copy.may_have_other_words = not is_same
        return is_same

    def _let_go(self, used: CampaignId) -> None:
        while len(self._held) > 1 and sum(held.size_bytes for held in self._held.values()) > self._bounds.most_bytes:
            oldest = next(iter(self._held))
            if oldest == used:
                break
            logger.debug("talk of {} is let go from memory", oldest)
            del self._held[oldest]
