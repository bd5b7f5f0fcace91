"""What is held in memory is read one reading at a time, and those who ask meanwhile share the next one.

A reading that is under way is no answer to who asks now: what that one knows of may have come too late for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from glyphoxa.domain.errors import Unavailable

Read = Callable[[], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class Line:
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

    async def wait(self, line: Line, read: Read) -> None:
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

    def _begin(self, line: Line, read: Read) -> asyncio.Task[None]:
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


def _closed() -> Unavailable:
    return Unavailable("the session is over")
