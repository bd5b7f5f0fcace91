from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass


def now_ms() -> int:
    """Return milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def loop_ms() -> int:
    """Return milliseconds on the monotonic clock of the running event loop."""
    return int(asyncio.get_running_loop().time() * 1_000)


def call_at(at_ms: int, callback: Callable[[], None]) -> object:
    """Schedule a callback in the running event loop."""
    delay_s = max(0, at_ms - now_ms()) / 1000
    return asyncio.get_running_loop().call_later(delay_s, callback)


@dataclass(frozen=True, slots=True)
class TableClock:
    """The time of a table.

    Attributes:
        now_ms: Returns milliseconds since the Unix epoch.
        call_at: Schedules a callback in milliseconds since the Unix epoch.
    """

    now_ms: Callable[[], int] = now_ms
    call_at: Callable[[int, Callable[[], None]], object] = call_at
