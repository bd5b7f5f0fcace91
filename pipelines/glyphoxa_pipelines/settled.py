"""One call for a burst of changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

CallLater = Callable[[float, Callable[[], None]], "_Timer"]
"""Takes seconds and what to call then."""


class _Timer(Protocol):
    def cancel(self) -> None: ...


class Settled:
    """Calls `act` once, `after_ms` behind the first of any number of changes: changes that never end do not keep it
    from being called.
    """

    def __init__(self, act: Callable[[], None], *, after_ms: int, call_later: CallLater | None = None) -> None:
        self._act = act
        self._after_s = after_ms / 1_000
        self._call_later: CallLater = call_later or (lambda s, what: asyncio.get_running_loop().call_later(s, what))
        self._timer: _Timer | None = None

    def changed(self) -> None:
        if self._timer is None:
            self._timer = self._call_later(self._after_s, self._fire)

    def close(self) -> None:
        """What has not been called yet never is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self._act()
