"""A dead provider is paused, and background work gives way to a table and takes its steps by the clock."""

from __future__ import annotations

import asyncio
import gc
import threading

from glyphoxa.actors.limits import LONGEST_WAIT_MS, STEP_EVERY_MS, CircuitBreaker, QuietGate, gc_paused, offload
from tests.support.virtual_time import in_virtual_time


class Clock:
    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def opened(*, successes_to_close: int = 1) -> tuple[CircuitBreaker, Clock]:
    clock = Clock()
    breaker = CircuitBreaker(clock, max_failures=2, cooldown_ms=1_000, successes_to_close=successes_to_close)
    for _ in range(2):
        assert breaker.allows_call()
        breaker.failed()
    assert breaker.is_open
    assert not breaker.allows_call()
    return breaker, clock


def test_after_a_rest_it_is_tried_once_at_a_time_until_enough_succeed() -> None:
    breaker, clock = opened(successes_to_close=3)
    clock.now_ms = 1_000
    for n in range(3):
        assert breaker.is_open, n
        assert breaker.allows_call()
        assert not breaker.allows_call(), "one at a time"
        breaker.succeeded()
    assert not breaker.is_open
    assert breaker.allows_call()
    assert breaker.allows_call()


def test_failed_trial_restarts_the_pause_and_resets_successes() -> None:
    breaker, clock = opened(successes_to_close=2)
    clock.now_ms = 1_000
    assert breaker.allows_call()
    breaker.succeeded()
    assert breaker.allows_call()
    breaker.failed()
    assert (breaker.retry_in_ms, breaker.allows_call()) == (1_000, False)
    clock.now_ms = 2_000
    assert breaker.allows_call()
    breaker.succeeded()
    assert breaker.is_open


def test_a_try_that_was_called_off_says_nothing_and_may_be_made_again() -> None:
    breaker, clock = opened()
    clock.now_ms = 1_000
    assert breaker.allows_call()
    breaker.cancelled()
    assert breaker.is_open
    assert breaker.allows_call()
    breaker.succeeded()
    assert not breaker.is_open


def test_breaker_opens_immediately_after_a_timeout() -> None:
    breaker = CircuitBreaker(Clock(), max_failures=5, cooldown_ms=1_000)
    breaker.trip()
    assert breaker.is_open
    assert not breaker.allows_call()


def test_a_success_while_it_is_trusted_ends_the_row_of_failures() -> None:
    breaker = CircuitBreaker(Clock(), max_failures=2)
    for _ in range(5):
        breaker.failed()
        breaker.succeeded()
    assert not breaker.is_open


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


async def test_much_is_done_in_a_thread_and_little_at_once() -> None:
    assert await offload(threading.get_ident, amount=10) == threading.get_ident()
    assert await offload(threading.get_ident, amount=10_000) != threading.get_ident()


def test_garbage_is_looked_for_again_when_the_work_is_done() -> None:
    with gc_paused(amount=10):
        assert gc.isenabled()
    with gc_paused(amount=10_000):
        assert not gc.isenabled()
        with gc_paused(amount=10_000):
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
