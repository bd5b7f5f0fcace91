"""When to let a provider be that failed again and again: a dead one must not cost its deadline in every turn.

    well ── n failures, one after another ──▶ resting ── rest_ms ──▶ one try ── in time ──▶ well
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
    """

    def __init__(
        self, now_ms: Callable[[], int], *, most_failures: int = MOST_FAILURES, rest_ms: int = REST_MS
    ) -> None:
        self._now_ms = now_ms
        self._most_failures = most_failures
        self._rest_ms = rest_ms
        self._failures = 0
        self._until_ms: int | None = None
        self._is_trying = False

    @property
    def is_resting(self) -> bool:
        """Also while the one try is made."""
        return self._until_ms is not None

    @property
    def left_ms(self) -> int:
        """Until it is tried again; 0 when it may be."""
        return 0 if self._until_ms is None else max(0, self._until_ms - self._now_ms())

    def may_try(self) -> bool:
        """Whether a call may be made now. True once only after a rest, until it is known how that went."""
        if self._until_ms is None:
            return True
        if self._is_trying or self.left_ms > 0:
            return False
        self._is_trying = True
        return True

    def succeeded(self) -> None:
        self._failures, self._until_ms, self._is_trying = 0, None, False

    def failed(self) -> None:
        self._failures += 1
        self._is_trying = False
        if self._failures >= self._most_failures:
            self._until_ms = self._now_ms() + self._rest_ms
