"""Background work gives way to a table, and takes its steps by the clock."""

from __future__ import annotations

import asyncio

from glyphoxa.actors.pacing import LONGEST_WAIT_MS, STEP_EVERY_MS, QuietGate
from tests.support.virtual_time import in_virtual_time


def now_ms() -> int:
    return round(asyncio.get_running_loop().time() * 1_000)


@in_virtual_time
async def test_steps_of_a_backlog_begin_at_a_fixed_pace() -> None:
    gate, begun = QuietGate(), []
    for _ in range(100):
        await gate.give_way()
        begun.append(now_ms())
    assert begun == [n * STEP_EVERY_MS for n in range(100)]


@in_virtual_time
async def test_two_workers_share_one_pace() -> None:
    gate, begun = QuietGate(), list[int]()

    async def work() -> None:
        for _ in range(5):
            await gate.give_way()
            begun.append(now_ms())

    await asyncio.gather(work(), work())
    assert begun == [n * STEP_EVERY_MS for n in range(10)]


@in_virtual_time
async def test_step_waits_while_somebody_speaks() -> None:
    gate = QuietGate()
    gate.busy()
    asyncio.get_running_loop().call_later(3, gate.quiet)
    await gate.give_way()
    assert now_ms() == 3_000


@in_virtual_time
async def test_table_that_is_never_quiet_is_read_step_by_step() -> None:
    gate = QuietGate()
    gate.busy()
    for n in range(1, 4):
        await gate.give_way()
        assert now_ms() == n * LONGEST_WAIT_MS + (n - 1) * STEP_EVERY_MS


@in_virtual_time
async def test_closed_tables_are_read_to_the_end_without_waiting() -> None:
    gate = QuietGate()
    gate.busy()
    waiting = asyncio.gather(*(gate.give_way() for _ in range(10)))
    await asyncio.sleep(0)
    gate.hurry()
    await waiting
    assert now_ms() <= STEP_EVERY_MS
