"""Waits that end at their deadline even if the awaited work ignores cancellation.

`asyncio.timeout` waits until the cancelled work ends, possibly for ever. The functions here abandon such work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, ParamSpec, TypeVar

from loguru import logger

from glyphoxa.domain.errors import Unavailable

T = TypeVar("T")

UNWIND_MS = 1_000
"""Time that cancelled work gets to clean up before it is abandoned."""


async def in_time(
    deadline_ms: int, work: Awaitable[T], *, if_late: Callable[[T], object] = lambda _: None, unwind_ms: int = UNWIND_MS
) -> T:
    """Return the result of `work`. Cancel it at the deadline or when the waiter is cancelled.

    Args:
        if_late: Receives a result that arrives after the deadline, so that it can be closed.

    Raises:
        TimeoutError: The work did not finish in time.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=deadline_ms / 1_000)
        if not task.done():
            raise TimeoutError
    except BaseException:  # if the waiter is cancelled, the work must not keep running
        task.add_done_callback(lambda late: _take_late(late, if_late))
        task.cancel()
        await asyncio.wait({task}, timeout=unwind_ms / 1_000)
        raise
    return task.result()


async def done_within(deadline_ms: float | None, work: Awaitable[object]) -> bool:
    """Wait for the work, and cancel it at the deadline; None: there is none. Return whether it was done by then."""
    try:
        async with asyncio.timeout(None if deadline_ms is None else deadline_ms / 1_000):
            await work
    except TimeoutError:
        return False
    return True


@asynccontextmanager
async def answered_within(deadline_ms: float, what: str) -> AsyncIterator[None]:
    """Cancel the block at the deadline.

    Args:
        what: Who does what, for the error: "the database did not answer".

    Raises:
        Unavailable: The deadline has passed.
    """
    try:
        async with asyncio.timeout(deadline_ms / 1_000):
            yield
    except TimeoutError:
        raise Unavailable(f"{what} within {deadline_ms} ms") from None


async def within(deadline_ms: int, what: str, closing: Awaitable[object]) -> bool:
    """Wait for a closing step. False if it failed or exceeded the deadline.

    At the deadline, or when the waiter is cancelled, the step is cancelled and no longer awaited, so that later steps
    still run.
    """
    task = asyncio.ensure_future(closing)
    try:
        done, _ = await asyncio.wait({task}, timeout=deadline_ms / 1_000)
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(forget)
    if not done:
        logger.error("{} did not close within {} ms; abandoned", what, deadline_ms)
        return False
    if task.cancelled():
        return False
    if (error := task.exception()) is not None:
        logger.opt(exception=error).error("closing {} failed", what)
        return False
    return True


async def end_tasks(*tasks: asyncio.Future[Any]) -> list[Any]:
    """Cancel tasks, and wait until they have ended. Returns the result of each, or the exception that ended it."""
    for task in tasks:
        task.cancel()
    return await asyncio.gather(*tasks, return_exceptions=True)


def _take_late(task: asyncio.Future[T], if_late: Callable[[T], object]) -> None:
    if not task.cancelled() and task.exception() is None:
        if_late(task.result())


def forget(task: asyncio.Future[Any]) -> None:
    """Retrieve the exception of an abandoned task, so that asyncio does not warn about it."""
    if not task.cancelled():
        task.exception()


# Closing in steps: a step that hangs is abandoned and logged, and the next one runs.


P = ParamSpec("P")

STEP_MS = 10_000
"""An orderly step is much faster, unless a database server is being created on a busy machine."""


class ClosingStack(AsyncExitStack):
    """An exit stack in which each step has a deadline and a failed step does not stop the next.

    Context managers on it always exit without exception information.
    """

    async def enter_async_context(self, cm: AbstractAsyncContextManager[T, bool | None]) -> T:
        entered = await cm.__aenter__()
        made_by = getattr(cm, "gen", None)  # set for a context manager made from a generator function
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
