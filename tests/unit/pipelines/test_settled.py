from __future__ import annotations

import asyncio

from glyphoxa_pipelines.ear import CoalescedCall
from tests.support.virtual_time import in_virtual_time


class Counted:
    def __init__(self) -> None:
        self.n = 0
        self.settled = CoalescedCall(self._count, after_ms=1_000)

    def _count(self) -> None:
        self.n += 1


@in_virtual_time
async def test_ten_changes_in_a_burst_are_one_call_a_second_after_the_first() -> None:
    counted = Counted()
    for _ in range(10):
        counted.settled.changed()
        await asyncio.sleep(0.09)
    assert counted.n == 0
    await asyncio.sleep(0.11)
    assert counted.n == 1
    await asyncio.sleep(10)
    assert counted.n == 1


@in_virtual_time
async def test_a_change_after_the_call_is_another_call() -> None:
    counted = Counted()
    for n in (1, 2):
        counted.settled.changed()
        await asyncio.sleep(1.01)
        assert counted.n == n


@in_virtual_time
async def test_what_is_closed_never_calls() -> None:
    counted = Counted()
    counted.settled.changed()
    counted.settled.close()
    counted.settled.close()
    await asyncio.sleep(10)
    assert counted.n == 0
