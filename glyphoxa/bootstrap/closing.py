"""Closing step by step: one that hangs is given up, said so, and the next one is taken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import ParamSpec, TypeVar

from loguru import logger

P = ParamSpec("P")
T = TypeVar("T")

STEP_MS = 10_000
"""What closes in order takes a fraction of that, but for a database server that is just being created on a machine with
much else to do.
"""


async def within(deadline_ms: int, what: str, closing: Awaitable[object]) -> bool:
    """Wait for a step of a closing; False when it was given up, or failed. What does not even end when it is cancelled
    is left behind: it must not keep the steps behind it from being taken.
    """
    task = asyncio.ensure_future(closing)
    done, _ = await asyncio.wait({task}, timeout=deadline_ms / 1000)
    if not done:
        task.cancel()
        task.add_done_callback(_forget)
        logger.error("{} did not close within {} ms, and is left as it is", what, deadline_ms)
        return False
    if task.cancelled():
        return False
    if (error := task.exception()) is not None:
        logger.opt(exception=error).error("{} could not be closed", what)
        return False
    return True


class ClosingStack(AsyncExitStack):
    """An exit stack whose steps have a deadline each and do not keep each other from being taken. A context manager on
    it is not told why it is left.
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


def _forget(task: asyncio.Future[object]) -> None:
    """Nobody waits for it any more: what it raises is no news."""
    if not task.cancelled():
        task.exception()
