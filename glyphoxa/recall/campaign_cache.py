"""How far a stream of changes was read, and whether it is still the same stream.

Each change has a number, and a campaign's changes become visible in the order of their numbers. Who knows the change of
number n asks for what is from n on, which is one small question: nearly always there is that change and nothing else.
What stands at n tells the stream that was read from that of a database which was put back from a backup:

    the change that is known     the same stream; what is behind it is new
    nothing, or an earlier one   another stream: all is read anew
    a later one                  where rows are only added, another stream; where a row that changes again gets a later
                                 number, the known one may have moved: see `_has_moved`
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from loguru import logger

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId

T = TypeVar("T")
Fetch = Callable[[int, int], Awaitable[Sequence[T]]]
"""Gives the changes from a number on, at most so many, in the order of their numbers."""


class Taken(Protocol[T]):
    """What is held of a stream whose rows change again."""

    def changed_before(self, seq: int, nth: int, /) -> T | None:
        """Of what changed before that number the nth latest, as it is now; the first, if there is not so much."""
        ...

    def changed_between(self, after: int, until: int, /) -> Collection[Hashable]:
        """The keys of what changed last behind the one number, and not behind the other."""
        ...

    def has(self, change: T, /) -> bool: ...


class Cursor(Generic[T]):
    """
    Args:
        seq_of: A change's number, from 1.
        key_of: What it is a change of.

    Attributes:
        last: The change that was taken last. It must be in the stream still, or have a later number there.
    """

    def __init__(self, *, seq_of: Callable[[T], int], key_of: Callable[[T], Hashable]) -> None:
        self._seq_of = seq_of
        self._key_of = key_of
        self._missing: set[Hashable] = set()
        self.last: T | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all that was known and is no longer where it was came with a later number. At the end of the stream
        it has to.
        """
        return not self._missing

    async def read(
        self, fetch: Fetch[T], *, limit: int, taken: Taken[T] | None = None
    ) -> tuple[Sequence[T], int] | None:
        """The next page, and how many changes at its beginning are known; None when it is another stream. As many as
        asked for: there may be more.

        Args:
            taken: What is held; None where rows are only added.
        """
        if self.last is None:
            return await fetch(0, limit), 0
        page = await fetch(self._seq_of(self.last), limit)
        if page and page[0] == self.last:
            return page, 1
        if taken is None or not await self._has_moved(self.last, page, fetch, limit=limit, taken=taken):
            return None
        return page, 0

    def take(self, page: Sequence[T], *, again: Collection[Hashable] = ()) -> None:
        """
        Args:
            again: Of what the page has changes of, what was known before.
        """
        self.last = page[-1]
        self._missing.difference_update(again)

    async def _has_moved(self, last: T, page: Sequence[T], fetch: Fetch[T], *, limit: int, taken: Taken[T]) -> bool:
        """Whether `last`, which is not where it was, has a later number by now. In a stream that was put back to an
        earlier day and went on otherwise there may be later numbers too, and earlier ones that nobody here has read:
        the latest that is still as it was tells from where on what is held has to be looked for.

        Args:
            page: What there is from the number of `last` on.
        """
        until = self._seq_of(last)
        if not page or self._seq_of(page[0]) <= until:
            return False
        known, tried, nth = taken.changed_before(until, 1), None, 1
        while known is not None and known != tried:
            page = await fetch(self._seq_of(known), limit)
            if page and page[0] == known:
                break
            nth *= 2
            known, tried = taken.changed_before(until, nth), known
        else:
            return False
        missing = set(taken.changed_between(self._seq_of(known), until))
        while page and self._seq_of(page[0]) <= until:
            for change in page:
                if self._seq_of(change) <= until and change != known and not taken.has(change):
                    return False
                missing.discard(self._key_of(change))
            page = await fetch(self._seq_of(page[-1]) + 1, limit)
        self._missing |= missing
        return True


# -- refreshing
#
# What is held in memory of each campaign: read when it is first asked for, refreshed one reading at a time, bounded.
#
# A reading that is under way is no answer to who asks now: what that one knows of may have come too late for it. Those
# who ask meanwhile share the next one.


H = TypeVar("H")
Read = Callable[[], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class RefreshQueue:
    """The readings of one thing, one behind the other.

    Attributes:
        last: Nobody reads behind it; it may be done.
        coming: It has not begun: who asks now may share it.
    """

    last: asyncio.Task[None] | None = None
    coming: asyncio.Task[None] | None = None


class RefreshCoalescing:
    """Of all that somebody holds, until it is closed."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def wait(self, line: RefreshQueue, read: Read) -> None:
        """Until a reading has ended that began after now.

        Args:
            read: Always the same of one line.

        Raises:
            Unavailable: All was closed. Whatever else the reading raises.
        """
        if self._is_closed:
            raise _closed()
        if line.coming is None:
            line.coming = line.last = self._begin(line, read)
        task = line.coming
        try:
            # Whoever asked may be late and go: the reading goes on for those who come next.
            await asyncio.shield(task)
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if task.cancelled() and asking is not None and not asking.cancelling():
                raise _closed() from None
            raise

    async def close(self) -> None:
        """End what is being read; from now on nothing is."""
        self._is_closed = True
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, line: RefreshQueue, read: Read) -> asyncio.Task[None]:
        before = line.last

        async def in_line() -> None:
            if before is not None and not before.done():
                await asyncio.wait({before})
            line.coming = None
            await read()

        task = asyncio.get_running_loop().create_task(in_line())
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be waiting for it any more; then nobody would ask how it ended


@dataclass(slots=True)
class _Entry(Generic[H]):
    held: H
    line: RefreshQueue = field(default_factory=RefreshQueue)


class CampaignCache(Generic[H]):
    """
    Args:
        new: What is held of a campaign before it was read.
        read: Brings it up to date.
        is_too_much: Whether to let go what was not asked for longest; of one campaign alone it never is.
    """

    def __init__(
        self,
        *,
        new: Callable[[], H],
        read: Callable[[CampaignId, H], Coroutine[Any, Any, None]],
        is_too_much: Callable[[Collection[H]], bool],
    ) -> None:
        self._new = new
        self._read = read
        self._is_too_much = is_too_much
        self._entries: OrderedDict[CampaignId, _Entry[H]] = OrderedDict()
        self._refreshes = RefreshCoalescing()

    def get(self, campaign: CampaignId) -> H | None:
        """As it was read last; None when nobody asked for it."""
        entry = self._entries.get(campaign)
        return None if entry is None else entry.held

    async def refresh(self, campaign: CampaignId) -> H:
        """What is held, after a reading that began after now.

        Raises:
            Unavailable: All was closed. Whatever else the reading raises; what is held stays as that left it.
        """
        entry = self._entries.get(campaign)
        if entry is None:
            entry = self._entries[campaign] = _Entry(self._new())
        self._entries.move_to_end(campaign)
        await self._refreshes.wait(entry.line, lambda: self._read(campaign, entry.held))
        self._let_go(campaign)
        return entry.held

    async def close(self) -> None:
        """End what is being read. Nothing is held any more, and nothing is read."""
        await self._refreshes.close()
        self._entries.clear()

    def _let_go(self, used: CampaignId) -> None:
        while len(self._entries) > 1 and self._is_too_much([entry.held for entry in self._entries.values()]):
            oldest = next(iter(self._entries))
            if oldest == used:
                break
            logger.debug("{} is let go from memory", oldest)
            del self._entries[oldest]


def _closed() -> Unavailable:
    return Unavailable("the session is over")
