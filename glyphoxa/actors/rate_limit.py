"""Limit how often somebody may do something."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RateLimit:
    """A token bucket: `burst` at once, then one per `every_ms`.

    Keeps one number: the time at which everything taken so far would have been taken at an even rate.
    """

    burst: int
    every_ms: int
    _even_until_ms: int = 0

    def take(self, n: int = 1, *, at_ms: int) -> int:
        """Take `n`. Return 0; or the milliseconds to wait, and take nothing.

        More than `burst` at once are never granted.
        """
        after_ms = max(self._even_until_ms - at_ms, 0) + n * self.every_ms
        if (wait_ms := after_ms - self.burst * self.every_ms) > 0:
            return wait_ms
        self._even_until_ms = at_ms + after_ms
        return 0
