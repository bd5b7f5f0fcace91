"""Keep a campaign's data in memory up to date with the database.

`CampaignCache` reads a campaign on first use, refreshes it with one read at a time, and holds only a few campaigns. A
caller that arrives during a read shares the next read, because the current one may miss what that caller already knows.

`Cursor` knows how far a stream of changes was read. Each change has a number, and a campaign's changes become visible
in the order of their numbers. The cursor requests changes from the last known number on: one small query, which mostly
returns that change only. The answer also shows whether the database was restored from a backup:

    the known change has its number         the same stream; what follows is new
    it is missing, and so are others        another stream: everything is read again
    it is missing, but comes with a later   the same stream: a row that changes again gets a later number
    number, as do all missing ones
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from loguru import logger

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId

T = TypeVar("T")
H = TypeVar("H")
Fetch = Callable[[int, int], Awaitable[Sequence[T]]]
"""Returns at most that many changes from a number on, in the order of their numbers."""

_RECENT: Final = 1_000
"""Changes that a cursor remembers. If all of them have changed again, everything is read again."""


class ChangePage(NamedTuple, Generic[T]):
    """A page of changes.

    Attributes:
        n_known: How many at its start were read before.
        is_last: No page follows.
    """

    page: Sequence[T]
    n_known: int
    is_last: bool

    @property
    def n_new(self) -> int:
        return len(self.page) - self.n_known

    def new(self) -> Iterator[T]:
        return itertools.islice(self.page, self.n_known, None)


class Cursor(Generic[T]):
    """
    Args:
        seq_of: Returns the number of a change, from 1.
        key_of: Returns the key of the changed row.
        last: The change that was read last; None reads from the beginning.
    """

    def __init__(self, *, seq_of: Callable[[T], int], key_of: Callable[[T], Hashable], last: T | None = None) -> None:
        self._seq_of = seq_of
        self._key_of = key_of
        self._recent: deque[T] = deque([] if last is None else [last], maxlen=_RECENT)
        self._missing: set[Hashable] = set()

    @property
    def last(self) -> T | None:
        """The change that was read last."""
        return self._recent[-1] if self._recent else None

    async def read(self, fetch: Fetch[T], *, limit: int) -> ChangePage[T] | None:
        """Return the next page, or None if the stream is another one.

        A page has at least `limit` changes unless it is the last.
        """
        last = self.last
        page = await fetch(0 if last is None else self._seq_of(last), limit)
        is_last, n_known = len(page) < limit, 0
        if last is not None and page and page[0] == last:
            n_known = 1
        elif last is not None:
            limit += len(self._recent)
            page = await fetch(self._seq_of(self._recent[0]), limit)
            is_last, n_known = len(page) < limit, self._known_of(page, until=self._seq_of(last))
            if not n_known:
                return None
        changes = ChangePage(page, n_known, is_last)
        if self._missing:
            self._missing.difference_update(map(self._key_of, changes.new()))
            if self._missing and is_last:
                return None
        self._recent.extend(page[max(n_known, len(page) - _RECENT) :])
        return changes

    def _known_of(self, page: Sequence[T], *, until: int) -> int:
        """Return how many changes of a page have numbers up to `until`; 0 if one of these was not read before."""
        known = {self._seq_of(change): change for change in self._recent}
        same = list(itertools.takewhile(lambda change: self._seq_of(change) <= until, page))
        if any(known.get(self._seq_of(change)) != change for change in same):
            return 0
        self._missing |= {self._key_of(change) for change in self._recent} - {self._key_of(change) for change in same}
        return len(same)


@dataclass(slots=True, eq=False)
class CampaignEntry(Generic[H]):
    """
    Attributes:
        held: None until it was read, and while it must not be used.
    """

    held: H | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _next: asyncio.Task[None] | None = None


class CampaignCache(Generic[H]):
    """
    Args:
        read: Brings the entry of a campaign up to date.
        most: Campaigns that are held. Above it, the least recently used one is dropped.
    """

    def __init__(self, read: Callable[[CampaignId, CampaignEntry[H]], Coroutine[Any, Any, None]], *, most: int) -> None:
        self._read = read
        self._most = most
        self._entries: OrderedDict[CampaignId, CampaignEntry[H]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def get(self, campaign: CampaignId) -> H | None:
        """Return the state of the last read; None if there was none."""
        entry = self._entries.get(campaign)
        return None if entry is None else entry.held

    async def refresh(self, campaign: CampaignId) -> H:
        """Return the state of a read that started after this call. A caller that gives up does not stop the read.

        Raises:
            Unavailable: The cache was closed. Other errors of the read; `held` stays as the read left it.
        """
        if self._is_closed:
            raise _closed()
        entry = self._entries.setdefault(campaign, CampaignEntry())
        self._entries.move_to_end(campaign)
        while len(self._entries) > self._most:
            dropped, _ = self._entries.popitem(last=False)
            logger.debug("{} is dropped from memory", dropped)
        if entry._next is None:
            entry._next = asyncio.get_running_loop().create_task(self._read_next(campaign, entry))
            self._tasks.add(entry._next)
            entry._next.add_done_callback(self._done)
        reading = entry._next
        await asyncio.wait({reading})
        if reading.cancelled():
            raise _closed()
        reading.result()
        if entry.held is None:
            raise Unavailable(f"{campaign} is not in memory")
        return entry.held

    async def close(self) -> None:
        """Stop reading and release everything."""
        self._is_closed = True
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._entries.clear()

    async def _read_next(self, campaign: CampaignId, entry: CampaignEntry[H]) -> None:
        async with entry._lock:
            entry._next = None
            await self._read(campaign, entry)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # without a waiter, asyncio would complain


def _closed() -> Unavailable:
    return Unavailable("the session is over")
