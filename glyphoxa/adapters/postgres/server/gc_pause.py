"""No cyclic garbage collection while many objects are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_FEW: Final = 250


@contextmanager
def gc_paused(*, amount: int) -> Iterator[None]:
    """Pause the cyclic garbage collector, if there is much to do: a collection among 100,000 live objects stops the
    process for a tenth of a second. Reference counting goes on, so that only cycles wait.

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
