"""Limit how often somebody may do something."""

from __future__ import annotations

from dataclasses import dataclass


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
