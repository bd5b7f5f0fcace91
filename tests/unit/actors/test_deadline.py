"""A wait with a deadline holds up nobody beyond it, whatever it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from loguru import logger

from glyphoxa.actors.deadline import ClosingStack, in_time, within
from tests.support.patience import DEADLINE_MS, DEADLINE_S


async def fail() -> None:
    raise RuntimeError("it does not close")


class Stubborn:
    """Work that goes on when it is cancelled, until it is released."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.released = asyncio.Event()

    async def work(self) -> str:
        self.began.set()
        while not self.released.is_set():
            with suppress(asyncio.CancelledError):
                await self.released.wait()
        return "done"


async def test_what_fails_to_close_is_logged_and_raises_nothing() -> None:
    lines: list[str] = []
    sink = logger.add(lines.append, format="{message}")
    assert not await within(DEADLINE_MS, "a seat", fail())
    logger.remove(sink)
    assert lines[0].splitlines()[0] == "closing a seat failed"


async def test_a_closing_ends_with_its_waiter() -> None:
    closed, began = asyncio.Event(), asyncio.Event()

    async def close() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()

    waiting = asyncio.create_task(within(DEADLINE_MS, "a seat", close()))
    async with asyncio.timeout(DEADLINE_S):
        await began.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await closed.wait()


async def test_what_is_late_has_been_cancelled_and_has_cleaned_up_when_the_waiter_goes_on() -> None:
    cleaned_up = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned_up.append("work")

    with pytest.raises(TimeoutError):
        await in_time(1, work(), unwind_ms=DEADLINE_MS)
    assert cleaned_up == ["work"]


async def test_work_that_swallows_its_cancellation_is_left_behind_and_its_late_result_handed_over() -> None:
    stubborn, late = Stubborn(), asyncio.Queue[str]()
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(TimeoutError):
            await in_time(1, stubborn.work(), if_late=late.put_nowait, unwind_ms=1)
        assert late.empty()
        stubborn.released.set()
        assert await late.get() == "done"


async def test_a_waiter_that_is_cancelled_goes_though_the_work_does_not_end() -> None:
    stubborn, late = Stubborn(), asyncio.Queue[str]()
    waiting = asyncio.create_task(in_time(DEADLINE_MS, stubborn.work(), if_late=late.put_nowait, unwind_ms=1))
    async with asyncio.timeout(DEADLINE_S):
        await stubborn.began.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        stubborn.released.set()
        assert await late.get() == "done"


async def test_work_that_fails_after_it_was_given_up_is_no_news() -> None:
    released = asyncio.Event()

    async def work() -> None:
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()
        raise RuntimeError("too late")

    late: list[object] = []
    working = asyncio.ensure_future(work())
    with pytest.raises(TimeoutError):
        await in_time(1, working, if_late=late.append, unwind_ms=1)
    released.set()
    await asyncio.wait({working})
    assert late == []


# What hangs or fails while a table closes keeps nothing else from being closed.


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
        "closing recall failed",
        "the graphs did not close within 0 ms; abandoned",
    ]
