"""What is held in memory of each campaign: read when it is first asked for, refreshed one reading at a time, bounded.

A reading that is under way is no answer to who asks now: what that one knows of may have come too late for it. Those
who ask meanwhile share the next one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from loguru import logger

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId

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
