"""Waiting that ends at its deadline, whatever is waited for does then.

`asyncio.timeout` waits for what it has cancelled, and so without end for what swallows its cancellation. Here that is
left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import ParamSpec, TypeVar

from loguru import logger

T = TypeVar("T")

UNWIND_MS = 1_000
"""What was cancelled gets this long to clean up before it is left behind."""


async def in_time(
    deadline_ms: int, work: Awaitable[T], *, if_late: Callable[[T], object] = lambda _: None, unwind_ms: int = UNWIND_MS
) -> T:
    """What `work` returns. At the deadline, and when the waiter is cancelled, it is cancelled too.

    Args:
        if_late: Takes what it returned all the same after it was given up, so that it can be closed.

    Raises:
        TimeoutError: It did not return in time.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=deadline_ms / 1_000)
        if not task.done():
            raise TimeoutError
    except BaseException:  # cancelled itself, the waiter leaves no work running
        task.add_done_callback(lambda late: _take_late(late, if_late))
        task.cancel()
        await asyncio.wait({task}, timeout=unwind_ms / 1_000)
        raise
    return task.result()


async def within(deadline_ms: int, what: str, closing: Awaitable[object]) -> bool:
    """Wait for a step of a closing; False when it was given up, or failed. At the deadline, and when the waiter is
    cancelled, it is cancelled too. What does not even end then is left behind: it must not keep the steps behind it
    from being taken.
    """
    task = asyncio.ensure_future(closing)
    try:
        done, _ = await asyncio.wait({task}, timeout=deadline_ms / 1_000)
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(_forget)
    if not done:
        logger.error("{} did not close within {} ms, and is left as it is", what, deadline_ms)
        return False
    if task.cancelled():
        return False
    if (error := task.exception()) is not None:
        logger.opt(exception=error).error("{} could not be closed", what)
        return False
    return True


def _take_late(task: asyncio.Future[T], if_late: Callable[[T], object]) -> None:
    if not task.cancelled() and task.exception() is None:
        if_late(task.result())


def _forget(task: asyncio.Future[object]) -> None:
    """Nobody waits for it any more: what it raises is no news."""
    if not task.cancelled():
        task.exception()


# Closing step by step: a step that hangs is given up and logged, and the next one is taken.


P = ParamSpec("P")

STEP_MS = 10_000
"""An orderly step takes a fraction of that, unless a database server is just being created on a busy machine."""


class ClosingStack(AsyncExitStack):
    """An exit stack in which each step has a deadline, and a step that fails does not keep the next from being taken.

    A context manager on it is not told why it is left.
    """

    async def enter_async_context(self, cm: AbstractAsyncContextManager[T, bool | None]) -> T:
        entered = await cm.__aenter__()
        made_by = getattr(cm, "gen", None)  # of a context manager that is a function
        what = getattr(made_by, "__name__", type(cm).__name__)
        self.push_step(what, STEP_MS, lambda: cm.__aexit__(None, None, None))
        return entered

    def push_async_callback(
        self, callback: Callable[P, Awaitable[T]], /, *args: P.args, **kwds: P.kwargs
    ) -> Callable[P, Awaitable[T]]:
        name = getattr(callback, "__qualname__", type(callback).__name__)
        self.push_step(name, STEP_MS, lambda: callback(*args, **kwds))
        return callback

    def push_step(self, what: str, deadline_ms: int, close: Callable[[], Awaitable[object]]) -> None:
        super().push_async_callback(lambda: within(deadline_ms, what, close()))
