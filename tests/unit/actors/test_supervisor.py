"""Actors crash alone, restart, and leave nothing behind."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest

from glyphoxa.actors.supervisor import END_MS, Mailbox, MailboxFull, Supervisor, follow
from glyphoxa.domain.errors import Unavailable
from tests.support.patience import DEADLINE_S
from tests.support.supervised import closing
from tests.support.virtual_time import run_in_virtual_time


class Counter:
    """An actor that keeps its sum through falls and falls on a negative number."""

    def __init__(self, name: str) -> None:
        self.mailbox: Mailbox[int] = Mailbox(name)
        self.sum = 0
        self.starts = 0
        self.changed = asyncio.Condition()

    async def run(self) -> None:
        self.starts += 1
        while True:
            number = await self.mailbox.receive()
            if number < 0:
                raise ValueError(number)
            async with self.changed:
                self.sum += number
                self.changed.notify_all()

    async def wait_for_sum(self, expected: int) -> None:
        async with asyncio.timeout(DEADLINE_S), self.changed:
            await self.changed.wait_for(lambda: self.sum == expected)


async def test_crashed_actor_restarts_with_state_and_unread_messages() -> None:
    async with closing(Supervisor()) as supervisor:
        counter = Counter("a")
        supervisor.start("a", counter.run)
        for number in (1, -1, 2):
            counter.mailbox.post(number)
        await counter.wait_for_sum(3)
        assert counter.starts == 2


async def test_crashed_actor_is_reported_and_the_others_go_on() -> None:
    fallen: list[str] = []
    async with closing(Supervisor(on_crash=lambda name, _: fallen.append(name))) as supervisor:
        a, other = Counter("a"), Counter("other")
        supervisor.start("a", a.run)
        supervisor.start("other", other.run)
        a.mailbox.post(-1)
        for counter in (a, other):
            counter.mailbox.post(5)
            await counter.wait_for_sum(5)
        assert fallen == ["a"]
        assert (a.starts, other.starts) == (2, 1)


async def test_actor_that_crashes_again_and_again_is_given_up() -> None:
    given_up = asyncio.Event()
    async with closing(Supervisor(max_restarts=2, on_given_up=lambda _: given_up.set())) as supervisor:
        counter = Counter("a")
        supervisor.start("a", counter.run)
        for _ in range(3):
            counter.mailbox.post(-1)
        await asyncio.wait_for(given_up.wait(), DEADLINE_S)
        assert counter.starts == 3


async def test_closing_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    async with closing(Supervisor()) as supervisor:
        counters = [Counter(str(n)) for n in range(5)]
        for counter in counters:
            supervisor.start(counter.mailbox.name, counter.run)
            counter.mailbox.post(1)
            await counter.wait_for_sum(1)
    assert asyncio.all_tasks() == before


class Stubborn:
    """An actor that ignores a stop request, and raises when it is released."""

    def __init__(self) -> None:
        self.starts = 0
        self.let_go = asyncio.Event()

    async def run(self) -> None:
        self.starts += 1
        while not self.let_go.is_set():
            with suppress(asyncio.CancelledError):
                await self.let_go.wait()
        raise RuntimeError("at last")


def test_stopped_actor_that_does_not_end_is_left_behind_and_not_restarted() -> None:
    async def stop() -> None:
        clock = asyncio.get_running_loop()
        fallen: list[str] = []
        supervisor = Supervisor(on_crash=lambda name, _: fallen.append(name))
        stubborn = Stubborn()
        supervisor.start("stubborn", stubborn.run)
        await asyncio.sleep(0)
        await supervisor.stop("stubborn")
        assert clock.time() == END_MS / 1_000
        stubborn.let_go.set()  # it raises now
        await asyncio.sleep(5)
        assert (stubborn.starts, fallen) == (1, [])
        await supervisor.close()

    run_in_virtual_time(stop())


def test_closing_comes_to_an_end_though_an_actor_does_not() -> None:
    async def close() -> None:
        clock = asyncio.get_running_loop()
        stubborn = Stubborn()
        supervisor = Supervisor()
        supervisor.start("stubborn", stubborn.run)
        await asyncio.sleep(0)
        await supervisor.close()
        assert clock.time() == END_MS / 1_000
        stubborn.let_go.set()

    run_in_virtual_time(close())


def test_a_mailbox_nobody_reads_says_so_instead_of_growing() -> None:
    mailbox: Mailbox[int] = Mailbox("stuck", capacity=2)
    mailbox.post(1)
    mailbox.post(2)
    with pytest.raises(MailboxFull, match="'stuck' holds 2"):
        mailbox.post(3)


async def test_a_mailbox_without_room_gives_up_the_oldest_that_may_go_unread_and_nothing_else() -> None:
    mailbox: Mailbox[int] = Mailbox("flooded", capacity=6, is_expendable=lambda number: number % 2 == 1)
    for number in range(100):
        mailbox.post(number) if number < 6 or number % 2 else None
        assert len(mailbox) <= 6
    read = [await mailbox.receive() for _ in range(len(mailbox))]
    assert read == sorted(read) and read[-1] == 99
    assert {0, 2, 4} <= set(read)


def test_what_is_posted_while_another_thread_takes_all_is_read_in_the_end() -> None:
    """A process that ends takes what is unread in a thread of its own."""
    mailbox: Mailbox[int] = Mailbox("busy", capacity=200_000)
    numbers = range(200_000)
    posting = threading.Thread(target=lambda: [mailbox.post(number) for number in numbers])
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        posting.start()
        taken: list[int] = []
        while posting.is_alive():
            taken += mailbox.take_all()
        posting.join()
    finally:
        sys.setswitchinterval(interval)
    assert [*taken, *mailbox.take_all()] == list(numbers)


def test_change_that_cannot_be_read_now_is_read_again_after_a_second() -> None:
    away = [True, True, False, False]
    taken: list[str] = []

    async def changes() -> AsyncGenerator[str, None]:
        yield "anything"
        yield "Grimjaw"
        await asyncio.Event().wait()

    async def take(change: str) -> None:
        if away.pop(0):
            raise Unavailable("the database is away")
        taken.append(change)

    async def evening() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(2.5):
                await follow(changes, take, what="names")

    run_in_virtual_time(evening())
    assert taken == ["anything", "Grimjaw"]
