"""Much work beside a table that is being played, which may not be held up for more than a few milliseconds."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

_T = TypeVar("_T")
_AT_ONCE: Final = 250


async def beside(work: Callable[[], _T], *, amount: int) -> _T:
    """Do it in a thread, if there is much to do.

    Args:
        amount: Rows or events; each takes some ten microseconds.
    """
    return work() if amount <= _AT_ONCE else await asyncio.to_thread(work)


@contextmanager
def uncollected(*, amount: int) -> Iterator[None]:
    """Without the search for garbage in circles, if there is much to do: it would stop everybody for a tenth of a
    second to look through 100,000 values that are no garbage. Whatever is not part of a circle goes as always.
    """
    pause = amount > _AT_ONCE and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()
