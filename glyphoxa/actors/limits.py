"""Limits of work, so that a table is never held up.

A rate, a circuit breaker, a gate for background work while a table is busy, a read shared by all, and long computations
outside the event loop, which may block a running table only for milliseconds.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from glyphoxa.actors.deadline import done_within, end_tasks, forget
from glyphoxa.domain.errors import Unavailable


@dataclass(slots=True)
class RateLimit:
    """A token bucket: `burst` at once, then one per `every_ms`; with 0, as many as are wanted.

    Keeps one number: the time at which everything taken so far would have been taken at an even rate.
    """

    burst: int
    every_ms: int
    _even_until_ms: int = 0

    def take(self, n: int = 1, *, at_ms: int) -> int:
        """Take `n`. Return 0; or the milliseconds to wait, and take nothing.

        More than `burst` at once are never granted.
        """
        before_ms = self._even_until_ms
        if wait_ms := self.reserve(n, at_ms=at_ms):
            self._even_until_ms = before_ms
        return wait_ms

    def reserve(self, n: int = 1, *, at_ms: int) -> int:
        """Take `n`, if not now then later. Return the milliseconds to wait: callers are granted in order."""
        if not self.every_ms:
            return 0
        after_ms = max(self._even_until_ms - at_ms, 0) + n * self.every_ms
        self._even_until_ms = at_ms + after_ms
        return max(0, after_ms - self.burst * self.every_ms)


MAX_FAILURES = 3
COOLDOWN_MS = 10_000


@dataclass(slots=True, eq=False)
class CircuitBreaker:
    """Pauses calls to a provider after repeated failures, so that a dead one does not cost its deadline in every turn.

        closed ── n failures in a row ──▶ open ── cooldown_ms ──▶ half-open: one try at a time ── k succeed ──▶ closed
                                           ▲                            │
                                           └───────── a try fails ──────┘

    See M. Nygard, Release It! (2007), chapter 5. Ask `allows_call` before each call and report its result after it.

    Args:
        now_ms: A monotonic clock.
        max_failures: Failures in a row that open the breaker.
        cooldown_ms: Pause after the breaker opens and after each failed try.
        successes_to_close: Successful tries in a row that close it again.
    """

    now_ms: Callable[[], int]
    max_failures: int = MAX_FAILURES
    cooldown_ms: int = COOLDOWN_MS
    successes_to_close: int = 1
    n_failures: int = 0
    """Failures in a row."""
    _successes: int = 0
    _until_ms: int | None = None
    _is_trying: bool = False

    @property
    def is_open(self) -> bool:
        """Return whether calls are paused or being tried again."""
        return self._until_ms is not None

    @property
    def retry_in_ms(self) -> int:
        """Time until the next try; 0 if a try is due."""
        return 0 if self._until_ms is None else max(0, self._until_ms - self.now_ms())

    def allows_call(self) -> bool:
        """Return whether a call may be made now. While open, only one try runs at a time."""
        if self._until_ms is None:
            return True
        if self._is_trying or self.retry_in_ms > 0:
            return False
        self._is_trying = True
        return True

    @contextmanager
    def calling(self, *, answers: type[Exception] | tuple[()] = ()) -> Iterator[None]:
        """Make a call in the block and note its result. A call that its caller cancels says nothing.

        Args:
            answers: An error that shows that the provider works.

        Raises:
            Unavailable: Calls are paused.
        """
        if not self.allows_call():
            raise Unavailable("the model is paused after repeated failures")
        try:
            yield
        except answers:
            self.succeeded()
            raise
        except asyncio.CancelledError:
            self.cancelled()
            raise
        except BaseException:  # otherwise the breaker would stay half-open
            self.failed()
            raise
        self.succeeded()

    def succeeded(self) -> None:
        self._successes += self._is_trying
        self._is_trying = False
        if self._until_ms is None or self._successes >= self.successes_to_close:
            self.n_failures, self._successes, self._until_ms = 0, 0, None

    def failed(self) -> None:
        self.n_failures += 1
        self._successes, self._is_trying = 0, False
        if self.n_failures >= self.max_failures:
            self._until_ms = self.now_ms() + self.cooldown_ms

    def cancelled(self) -> None:
        """Report that the caller ended the call before its result was known."""
        self._is_trying = False

    def trip(self) -> None:
        """Open the breaker at once, for example because a call hangs."""
        self.n_failures = max(self.n_failures, self.max_failures - 1)
        self.failed()


STEP_EVERY_MS: Final = 500
"""Time from the begin of one step to that of the next."""
LONGEST_WAIT_MS: Final = 10_000
"""Time after which a step begins although a table is busy, so that a table that is never quiet is read, too."""


class QuietGate:
    """Lets background work begin a step when nobody is disturbed. It belongs to a running event loop.

    Steps wait while a table is busy, at most `LONGEST_WAIT_MS`, and begin one after the other at a fixed pace.
    """

    def __init__(self) -> None:
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()
        self._one_at_a_time = asyncio.Lock()
        self._next_s = 0.0
        self._hurries = False

    def busy(self) -> None:
        """Let steps wait: somebody speaks, or an NPC answers."""
        self._is_quiet.clear()

    def quiet(self) -> None:
        self._is_quiet.set()

    def hurry(self) -> None:
        """Let all further steps begin at once: the tables are closed."""
        self._hurries = True
        self._is_quiet.set()

    async def give_way(self) -> None:
        """Wait until the next step may begin."""
        async with self._one_at_a_time:
            if self._hurries:
                return
            loop = asyncio.get_running_loop()
            await asyncio.sleep(max(0.0, self._next_s - loop.time()))
            await done_within(LONGEST_WAIT_MS, self._is_quiet.wait())
            self._next_s = loop.time() + STEP_EVERY_MS / 1_000


_Read = Callable[[], Coroutine[Any, Any, None]]


class SharedRead:
    """
    Args:
        read: Brings something up to date. It never runs twice at a time.

    Attributes:
        guarded: Returns a read that fails at once while the database is away. By default each call tries.
    """

    def __init__(self, read: _Read) -> None:
        self.guarded: Callable[[_Read], _Read] = lambda read: read
        self._read = read
        self._current: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None
        self._is_closed = False

    async def wait(self) -> None:
        """Wait for a read that starts after this call.

        A caller that arrives during a read shares the next one, because the current one may miss what that caller
        already knows. A caller that gives up does not stop the read.

        Raises:
            Unavailable: It was closed, or the database is away. Other errors of the read.
        """
        await self.guarded(self._wait)()

    async def _wait(self) -> None:
        if self._is_closed:
            raise _closed()
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._read_after(self._current))
            self._next.add_done_callback(forget)
        reading = self._next
        await asyncio.wait({reading})
        if reading.cancelled():
            raise _closed()
        reading.result()

    async def close(self) -> None:
        """Stop reading for good."""
        self._is_closed = True
        await end_tasks(*(task for task in (self._current, self._next) if task is not None))

    async def _read_after(self, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait({before})
        self._current, self._next = self._next, None
        await self._read()


def _closed() -> Unavailable:
    return Unavailable("the session is over")


_T = TypeVar("_T")
_FEW: Final = 250


async def offload(work: Callable[[], _T], *, amount: int) -> _T:
    """Run it in a thread if the amount is large.

    Args:
        amount: Rows or events; each takes some ten microseconds.
    """
    return work() if amount <= _FEW else await asyncio.to_thread(work)


@contextmanager
def gc_paused(*, amount: int) -> Iterator[None]:
    """Pause the cyclic garbage collector if the amount is large.

    A collection among 100,000 live objects stops the process for a tenth of a second. Reference counting continues.

    Args:
        amount: Rows or events.
    """
    pause = amount > _FEW and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()
