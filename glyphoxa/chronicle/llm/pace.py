"""How often a model is asked."""

from __future__ import annotations

import asyncio


class Pace:
    """At most so many calls a minute, evenly: who would be too early waits, in order.

    Args:
        per_minute: 1 or more.
    """

    def __init__(self, per_minute: int) -> None:
        self.gap_ms = -(-60_000 // per_minute)
        self._next_at = 0.0

    async def wait(self) -> None:
        """Until the next call may be made, which is then made."""
        now = asyncio.get_running_loop().time()
        at = max(now, self._next_at)
        self._next_at = at + self.gap_ms / 1000
        if at > now:
            await asyncio.sleep(at - now)
