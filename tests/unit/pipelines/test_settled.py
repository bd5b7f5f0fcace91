from __future__ import annotations

from collections.abc import Callable

from glyphoxa_pipelines.ear import CoalescedCall


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.waits_s: list[float] = []
        self._pending: list[Callable[[], None]] = []

    def call_later(self, seconds: float, what: Callable[[], None]) -> Clock:
        self.waits_s.append(seconds)
        self._pending.append(what)
        return self

    def cancel(self) -> None:
        self._pending.clear()

    def ring(self) -> None:
        pending, self._pending = self._pending, []
        for what in pending:
            what()


class Counted:
    def __init__(self) -> None:
        self.clock = Clock()
        self.n = 0
        self.settled = CoalescedCall(self._count, after_ms=1_000, call_later=self.clock.call_later)

    def _count(self) -> None:
        self.n += 1


def test_ten_changes_in_a_burst_are_one_call() -> None:
    counted = Counted()
    for _ in range(10):
        counted.settled.changed()
    assert counted.n == 0
    counted.clock.ring()
    assert counted.n == 1
    assert counted.clock.waits_s == [1.0]


def test_a_change_after_the_call_is_another_call() -> None:
    counted = Counted()
    counted.settled.changed()
    counted.clock.ring()
    counted.settled.changed()
    counted.clock.ring()
    assert counted.n == 2


def test_what_is_closed_never_calls() -> None:
    counted = Counted()
    counted.settled.changed()
    counted.settled.close()
    counted.settled.close()
    counted.clock.ring()
    assert counted.n == 0
