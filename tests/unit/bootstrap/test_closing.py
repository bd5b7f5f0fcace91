"""What hangs or fails while a table closes keeps nothing else from being closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from loguru import logger

from glyphoxa.bootstrap.closing import ClosingStack
from glyphoxa.bootstrap.seats import LiveSeat
from tests.support.builders import TAMSIN, a_campaign
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


async def test_a_seat_whose_ear_does_not_even_end_when_it_is_cancelled_is_left_all_the_same() -> None:
    over = asyncio.Event()
    left: list[LiveSeat] = []

    class StubbornEar:
        async def start(self) -> None: ...

        def hear(self, pcm: bytes) -> None: ...

        async def close(self) -> None:
            while not over.is_set():
                with suppress(asyncio.CancelledError):
                    await over.wait()

    async def on_left(seat: LiveSeat) -> None:
        left.append(seat)

    seat = LiveSeat(a_campaign().player(TAMSIN), StubbornEar(), on_left=on_left, close_within_ms=10)
    try:
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.shield(asyncio.ensure_future(seat.leave()))
    finally:
        over.set()
    assert left == [seat]
