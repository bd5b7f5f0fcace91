"""Read something for all who ask for it, one read at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from glyphoxa.actors.deadline import end_tasks, forget
from glyphoxa.domain.errors import Unavailable

if TYPE_CHECKING:
    from glyphoxa.transcript.delivery import MemoryWatch


class SharedRead:
    """
    Args:
        read: Brings something up to date. It never runs twice at a time.

    Attributes:
        watch: While it says that the database is away, nothing is read. None: each call tries.
    """

    def __init__(self, read: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.watch: MemoryWatch | None = None
        self._read = read
        self._current: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None
        self._is_closed = False

    async def wait(self) -> None:
        """Wait for a read that starts after this call.

        A caller that arrives during a read shares the next one, because the current one may miss what that caller
        already knows. A caller that gives up does not stop the read.

        Raises:
            Unavailable: It was closed, or the database is away. Other errors of the read.
        """
        await (self._wait() if self.watch is None else self.watch.guarded(self._wait)())

    async def _wait(self) -> None:
        if self._is_closed:
            raise _closed()
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._read_after(self._current))
            self._next.add_done_callback(forget)
        reading = self._next
        await asyncio.wait({reading})
        if reading.cancelled():
            raise _closed()
        reading.result()

    async def close(self) -> None:
        """Stop reading for good."""
        self._is_closed = True
        await end_tasks(*(task for task in (self._current, self._next) if task is not None))

    async def _read_after(self, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait({before})
        self._current, self._next = self._next, None
        await self._read()


def _closed() -> Unavailable:
    return Unavailable("the session is over")
