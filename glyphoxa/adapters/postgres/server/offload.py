"""Long computations, away from the event loop: a table that is being played may not stop for more than milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

_T = TypeVar("_T")
_AT_ONCE: Final = 250


async def offload(work: Callable[[], _T], *, amount: int) -> _T:
    """Run it in a thread, if there is much to do.

    Args:
        amount: Rows or events; each takes some ten microseconds.
    """
    return work() if amount <= _AT_ONCE else await asyncio.to_thread(work)
