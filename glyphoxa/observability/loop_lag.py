"""By how much the event loop is late: what blocks it stops every voice at the table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

EVERY_S = 0.5


async def measure_lag(tell: Callable[[float], None], *, every_s: float = EVERY_S) -> None:
    """Until it is cancelled.

    Args:
        tell: Takes by how many seconds a timer was late.
    """
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + every_s
        await asyncio.sleep(every_s)
        tell(max(0.0, loop.time() - due_s))
