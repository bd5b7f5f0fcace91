"""Measures event loop lag: anything that blocks the loop stops all voices at the table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

EVERY_S = 0.5


async def measure_lag(report: Callable[[float], None], *, every_s: float = EVERY_S) -> None:
    """Measure until cancelled.

    Args:
        report: Receives the seconds by which a timer was late.
    """
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + every_s
        await asyncio.sleep(every_s)
        report(max(0.0, loop.time() - due_s))
