"""How long a test waits for what must come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

DEADLINE_S = 240
"""Only there to end a hang: a machine that does much else at once is slow, and no test may fail by that."""
DEADLINE_MS = 1_000 * DEADLINE_S


async def until(happened: Callable[[], bool]) -> None:
    """Until `happened`: for what tells nobody that it did."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            if happened():
                return
            await asyncio.sleep(0.01)
