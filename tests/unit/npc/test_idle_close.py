"""A session at which nobody sits for long enough ends, and no other."""

from __future__ import annotations

import asyncio

from glyphoxa.npc.session import IdleClose
from tests.support.virtual_time import run_in_virtual_time

MINUTE_S = 60


class Evening:
    """A table that ends after ten empty minutes."""

    def __init__(self) -> None:
        self.is_empty = True
        self.ended_s: list[float] = []

    def begin(self) -> asyncio.Task[None]:
        now_s = asyncio.get_running_loop().time
        idle = IdleClose(
            lambda: self.is_empty, after_ms=10 * MINUTE_S * 1_000, end=lambda: self.ended_s.append(now_s())
        )
        return asyncio.create_task(idle.run())


def test_a_table_that_nobody_comes_to_ends_once() -> None:
    async def evening() -> None:
        table = Evening()
        idle = table.begin()
        await asyncio.sleep(60 * MINUTE_S)
        assert table.ended_s == [10 * MINUTE_S] and idle.done()

    run_in_virtual_time(evening())


def test_as_long_as_somebody_sits_there_it_goes_on_and_the_time_counts_from_when_the_last_one_left() -> None:
    async def evening() -> None:
        table = Evening()
        idle = table.begin()
        await asyncio.sleep(9 * MINUTE_S)
        table.is_empty = False
        await asyncio.sleep(300 * MINUTE_S)
        table.is_empty = True
        await asyncio.sleep(9 * MINUTE_S)
        assert table.ended_s == []
        await asyncio.sleep(2 * MINUTE_S)
        [ended_s] = table.ended_s
        assert abs(ended_s - 319 * MINUTE_S) <= 10 and idle.done()  # it looks every ten seconds

    run_in_virtual_time(evening())
