from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


def now_ms() -> int:
    """Unix epoch."""
    return time.time_ns() // 1_000_000


def call_at(at_ms: int, callback: Callable[[], None]) -> object:
    """In the running loop."""
    delay_s = max(0, at_ms - now_ms()) / 1000
    return asyncio.get_running_loop().call_later(delay_s, callback)
