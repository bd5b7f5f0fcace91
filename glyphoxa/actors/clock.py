from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


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
