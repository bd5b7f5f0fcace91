"""Paces background work by the clock, and lets it wait while somebody speaks or an NPC answers."""

from __future__ import annotations

import asyncio
from typing import Final

from glyphoxa.actors.deadline import done_within

STEP_EVERY_MS: Final = 500
"""Time from the begin of one step to that of the next."""
LONGEST_WAIT_MS: Final = 10_000
"""Time after which a step begins although a table is busy, so that a table that is never quiet is read, too."""


class QuietGate:
    """Lets background work begin a step when nobody is disturbed. It belongs to a running event loop.

    Steps wait while a table is busy, at most `LONGEST_WAIT_MS`, and begin one after the other at a fixed pace.
    """

    def __init__(self) -> None:
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()
        self._one_at_a_time = asyncio.Lock()
        self._next_s = 0.0
        self._hurries = False

    def busy(self) -> None:
        """Let steps wait: somebody speaks, or an NPC answers."""
        self._is_quiet.clear()

    def quiet(self) -> None:
        self._is_quiet.set()

    def hurry(self) -> None:
        """Let all further steps begin at once: the tables are closed."""
        self._hurries = True
        self._is_quiet.set()

    async def give_way(self) -> None:
        """Wait until the next step may begin."""
        async with self._one_at_a_time:
            if self._hurries:
                return
            loop = asyncio.get_running_loop()
            await asyncio.sleep(max(0.0, self._next_s - loop.time()))
            await done_within(LONGEST_WAIT_MS, self._is_quiet.wait())
            self._next_s = loop.time() + STEP_EVERY_MS / 1_000
