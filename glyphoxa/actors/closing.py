"""Closing step by step: one that hangs is given up, said so, and the next one is taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import ParamSpec, TypeVar

from glyphoxa.actors.deadline import within

P = ParamSpec("P")
T = TypeVar("T")

STEP_MS = 10_000
"""What closes in order takes a fraction of that, but for a database server that is just being created on a machine with
much else to do.
"""


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
