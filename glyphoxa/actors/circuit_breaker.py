"""When to let a provider be that failed again and again: a dead one must not cost its deadline in every turn.

    well ── n failures, one after another ──▶ resting ── rest_ms ──▶ one try at a time ── k succeed ──▶ well
                                                 ▲                     │
                                                 └────── failed ───────┘

The circuit breaker of M. Nygard, Release It! (2007), chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable

MOST_FAILURES = 3
REST_MS = 10_000


class CircuitBreaker:
    """Protocol of use: ask `may_try` before each call, and say `succeeded` or `failed` after each that was made.

    Args:
        now_ms: Any clock that does not go back.
        most_failures: One after another, until it is let be.
        rest_ms: How long it is let be, after that and after each try that fails.
        successes_to_close: Tries in a row that succeed until it is well again.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        most_failures: int = MOST_FAILURES,
        rest_ms: int = REST_MS,
        successes_to_close: int = 1,
    ) -> None:
        self._now_ms = now_ms
        self._most_failures = most_failures
        self._rest_ms = rest_ms
        self._successes_to_close = successes_to_close
        self._failures = 0
        self._successes = 0
        self._until_ms: int | None = None
        self._is_trying = False

    @property
    def is_resting(self) -> bool:
        """Also while tries are made."""
        return self._until_ms is not None

    @property
    def left_ms(self) -> int:
        """Until it is tried again; 0 when it may be."""
        return 0 if self._until_ms is None else max(0, self._until_ms - self._now_ms())

    def may_try(self) -> bool:
        """Whether a call may be made now. After a rest one at a time: not until it is known how the last one went."""
        if self._until_ms is None:
            return True
        if self._is_trying or self.left_ms > 0:
            return False
        self._is_trying = True
        return True

    def succeeded(self) -> None:
        self._successes += self._is_trying
        self._is_trying = False
        if self._until_ms is None or self._successes >= self._successes_to_close:
            self._failures, self._successes, self._until_ms = 0, 0, None

    def failed(self) -> None:
        self._failures += 1
        self._successes, self._is_trying = 0, False
        if self._failures >= self._most_failures:
            self._until_ms = self._now_ms() + self._rest_ms

    def called_off(self) -> None:
        """The call was ended by us, before it was known how it would go."""
        self._is_trying = False

    def open(self) -> None:
        """Let it be from now on, however few calls failed: one that hangs costs more than one that refuses."""
        self._failures = max(self._failures, self._most_failures - 1)
        self.failed()
