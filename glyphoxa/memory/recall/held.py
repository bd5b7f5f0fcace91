"""Talk of campaigns held in memory: read when it is first needed, kept up to date, bounded."""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field

from loguru import logger

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, UtteranceId
from glyphoxa.memory.embedding import Embedder
from glyphoxa.memory.ports.talk_feed import Edition, Said, TalkFeed
from glyphoxa.memory.recall.talk_index import TalkIndex
from glyphoxa.memory.recall.terms import Terms

Another = Callable[[str, int], Awaitable[Embedder | None]]

_PAGE = 500
_MEANINGS_PAGE = 500
_MEANINGS_AGAIN_S = 2.0
"""Talk that is not embedded yet is asked for again after this; what is new, at once."""
_ANOTHER_AGAIN_S = 30.0
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
        edition: Of the vectors that are asked for.
        missing: Talk that is no longer where it was in the log: it must come with a later mark.
        asked_at: When vectors were last asked for, and after which mark.
    """

    index: TalkIndex
    last: Said | None = None
    is_whole: bool = False
    may_have_other_words: bool = False
    edition: Edition | None = None
    missing: set[UtteranceId] = field(default_factory=set)
    asked_at: float = 0.0
    asked_mark: int = -1


@dataclass(slots=True)
class _Held:
    """
    Attributes:
        copy: Read to its end at least once.
        anew: Being read from the beginning; what takes several attempts is gone on with.
        reading: Brings `copy` up to date, with all that was in the log when it began.
        following: Does the same when that is done.
    """

    copy: _Copy | None = None
    anew: _Copy | None = None
    reading: asyncio.Task[None] | None = None
    following: asyncio.Task[None] | None = None

    @property
    def size_bytes(self) -> int:
        return sum(copy.index.size_bytes for copy in (self.copy, self.anew) if copy is not None)


@dataclass(slots=True)
class _Tasks:
    under_way: set[asyncio.Task[None]] = field(default_factory=set)

    def begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.under_way.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self.under_way.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be waiting for it any more; then nobody would ask how it ended


class HeldTalk:
    """
    Args:
        feed: Where talk is read.
        dimensions: Of the vectors that the feed has.
        embedder: Whose they are; None for whoever's they are.
        another: Gives the embedder of a name and of so many dimensions, when the feed has vectors of that one; None if
            it is not to be had.

    Attributes:
        embedder: The latest whose vectors the feed had.
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
        self._dimensions = dimensions
        self.embedder = embedder
        self._another = another
        self._not_to_be_had: tuple[Edition | None, float] = (None, 0.0)
        self._bounds = bounds or Bounds()
        self._held: OrderedDict[CampaignId, _Held] = OrderedDict()
        self._tasks = _Tasks()
        self._is_closed = False

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
        if self._is_closed:
            raise _closed()
        held = self._held.setdefault(campaign, _Held())
        self._held.move_to_end(campaign)
        if held.following is not None and not held.following.done():
            # Also when what it follows has just ended: there are never two at once.
            task = held.following
        elif held.reading is None or held.reading.done():
            task = held.reading = self._tasks.begin(self._read(campaign, held))
        else:
            task = held.following = self._tasks.begin(self._read_after(held.reading, campaign, held))
        try:
            # Whoever asked may be late and go: the reading goes on for those who come next.
            await asyncio.shield(task)
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if task.cancelled() and asking is not None and not asking.cancelling():
                raise _closed() from None
            raise
        self._let_go(campaign)
        if held.copy is None:
            raise Unavailable(f"the log of {campaign} was exchanged for another while it was read")
        return held.copy.index

    async def close(self) -> None:
        """End what is being read. Nothing is held any more, and nothing is read."""
        self._is_closed = True
        tasks = list(self._tasks.under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._held.clear()

    async def _read_after(self, before: asyncio.Task[None], campaign: CampaignId, held: _Held) -> None:
        await asyncio.wait({before})
        held.reading, held.following = held.following, None
        await self._read(campaign, held)

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
                held.anew = _Copy(TalkIndex(terms, dimensions=self._dimensions))
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
            mark, edition = index.mark, await self._feed.edition(campaign)
            if edition is not None and await self._is_ours(edition):
                is_first = await self._is_new_edition(copy, edition)
                await self._read_meanings(campaign, copy.index, edition, is_first=is_first)
            copy.asked_mark, copy.asked_at = mark, now
        return True

    async def _is_ours(self, edition: Edition) -> bool:
        """Whether questions can be embedded by whoever embedded that talk."""
        if self.embedder is None or edition.is_of(self.embedder.name, self.embedder.dimensions):
            return True
        now = asyncio.get_running_loop().time()
        missed, asked_at = self._not_to_be_had
        if self._another is None or (missed == edition and now - asked_at < _ANOTHER_AGAIN_S):
            return False
        another = await self._another(edition.model, edition.dimensions)
        if another is None:
            self._not_to_be_had = (edition, now)
            return False
        logger.info("talk is embedded by {} from now on", another.name)
        self.embedder, self._dimensions = another, another.dimensions
        return True

    async def _is_new_edition(self, copy: _Copy, edition: Edition) -> bool:
        """If so, the vectors of the other are dropped before the first of this one comes."""
        if copy.edition == edition:
            return False
        copy.edition = edition
        if copy.asked_mark < 0 and copy.index.dimensions == self._dimensions and not copy.index.n_vectors:
            copy.index.edition = edition  # nobody has seen it yet
        else:
            # Another index: whoever still looks into the old one may hold a question's vector of the old model.
            copy.index = await asyncio.to_thread(copy.index.for_edition, edition, dimensions=self._dimensions)
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

    async def _read_meanings(self, campaign: CampaignId, index: TalkIndex, edition: Edition, *, is_first: bool) -> None:
        """The latest first: of more talk than memory may hold the oldest is found by words alone, for good. Talk is
        embedded the oldest first, so that later readings look at both ends of what is missing.
        """
        most = self._bounds.most_vector_bytes // (4 * index.dimensions)
        wanted = index.unembedded(limit=max(most - index.n_vectors, _MEANINGS_PAGE))
        pages = [wanted[at : at + _MEANINGS_PAGE] for at in range(0, len(wanted), _MEANINGS_PAGE)]
        from_the_oldest = False
        while pages:
            page = pages.pop(0)
            found = await self._feed.meanings(campaign, page, edition)
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

    def _let_go(self, used: CampaignId) -> None:
        while len(self._held) > 1 and sum(held.size_bytes for held in self._held.values()) > self._bounds.most_bytes:
            oldest = next(iter(self._held))
            if oldest == used:
                break
            logger.debug("talk of {} is let go from memory", oldest)
            del self._held[oldest]


def _closed() -> Unavailable:
    return Unavailable("the session is over")
