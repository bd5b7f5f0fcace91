"""Pauses calls to a provider after repeated failures, so that a dead one does not cost its deadline in every turn.

    closed ── n failures in a row ──▶ open ── cooldown_ms ──▶ half-open: one try at a time ── k succeed ──▶ closed
                                       ▲                            │
                                       └───────── a try fails ──────┘

See M. Nygard, Release It! (2007), chapter 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from glyphoxa.domain.errors import Unavailable

MAX_FAILURES = 3
COOLDOWN_MS = 10_000


class CircuitBreaker:
    """Counts failures of one provider. Ask `allows_call` before each call and report its result after it.

    Args:
        now_ms: A monotonic clock.
        max_failures: Failures in a row that open the breaker.
        cooldown_ms: Pause after the breaker opens and after each failed try.
        successes_to_close: Successful tries in a row that close it again.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        max_failures: int = MAX_FAILURES,
        cooldown_ms: int = COOLDOWN_MS,
        successes_to_close: int = 1,
    ) -> None:
        self._now_ms = now_ms
        self._max_failures = max_failures
        self._cooldown_ms = cooldown_ms
        self._successes_to_close = successes_to_close
        self.n_failures = 0
        """Failures in a row."""
        self._successes = 0
        self._until_ms: int | None = None
        self._is_trying = False

    @property
    def is_open(self) -> bool:
        """Return whether calls are paused or being tried again."""
        return self._until_ms is not None

    @property
    def retry_in_ms(self) -> int:
        """Time until the next try; 0 if a try is due."""
        return 0 if self._until_ms is None else max(0, self._until_ms - self._now_ms())

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
        if self._until_ms is None or self._successes >= self._successes_to_close:
            self.n_failures, self._successes, self._until_ms = 0, 0, None

    def failed(self) -> None:
        self.n_failures += 1
        self._successes, self._is_trying = 0, False
        if self.n_failures >= self._max_failures:
            self._until_ms = self._now_ms() + self._cooldown_ms

    def cancelled(self) -> None:
        """Report that the caller ended the call before its result was known."""
        self._is_trying = False

    def trip(self) -> None:
        """Open the breaker at once, for example because a call hangs."""
        self.n_failures = max(self.n_failures, self._max_failures - 1)
        self.failed()
