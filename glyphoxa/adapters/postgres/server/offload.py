"""Run long computations outside the event loop, which may block a running table only for milliseconds."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

_T = TypeVar("_T")
_FEW: Final = 250


async def offload(work: Callable[[], _T], *, amount: int) -> _T:
    """Run it in a thread if the amount is large.

    Args:
        amount: Rows or events; each takes some ten microseconds.
    """
    return work() if amount <= _FEW else await asyncio.to_thread(work)


@contextmanager
def gc_paused(*, amount: int) -> Iterator[None]:
    """Pause the cyclic garbage collector if the amount is large.

    A collection among 100,000 live objects stops the process for a tenth of a second. Reference counting continues.

    Args:
        amount: Rows or events.
    """
    pause = amount > _FEW and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()
