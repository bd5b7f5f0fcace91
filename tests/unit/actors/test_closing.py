"""What hangs or fails while a table closes keeps nothing else from being closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from loguru import logger

from glyphoxa.actors.closing import ClosingStack
from tests.support.patience import DEADLINE_S


async def fail() -> None:
    raise RuntimeError("it does not close")


async def test_what_hangs_or_fails_is_told_and_the_rest_is_closed_last_first() -> None:
    lines: list[str] = []
    sink = logger.add(lines.append, format="{message}")
    closed: list[str] = []
    over = asyncio.Event()

    async def hang() -> None:
        """Does not even end when it is cancelled."""
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()

    @asynccontextmanager
    async def a_database() -> AsyncIterator[None]:
        yield
        closed.append("database")

    async def close(what: str) -> None:
        closed.append(what)

    async with ClosingStack() as stack:
        await stack.enter_async_context(a_database())
        stack.push_async_callback(close, "memory")
        stack.push_step("the graphs", 0, hang)
        stack.push_step("recall", 1_000, fail)
        stack.push_async_callback(close, "ears")
        adopted = stack.pop_all()
    assert closed == []
    async with asyncio.timeout(DEADLINE_S):
        await adopted.aclose()
    over.set()
    logger.remove(sink)
    assert closed == ["ears", "memory", "database"]
    assert [line.splitlines()[0] for line in lines] == [
        "recall could not be closed",
        "the graphs did not close within 0 ms, and is left as it is",
    ]
