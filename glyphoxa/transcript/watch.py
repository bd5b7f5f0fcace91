"""Whether long-term memory is there, and what is made good when it is back.

    ok ── somebody was refused, or waited too long ──▶ a look ──▶ ok: it was nothing
                                                         │
                                                         ▼
       degraded: a look again after 1 s, 2 s, ... 30 s, 30 s, ... for as long as it takes
          │
          └── the database answers ──▶ what is missing is made good ──▶ ok

A memory that answers is never polled: whoever is disappointed says so, and only then is it looked at. While it does not
answer nobody waits for it: `is_away` says so at once. Giving up after some attempts would leave what waits on
disk there for ever, and costs nothing to avoid: one attempt in 30 s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.transcript.delivery import pause_ms


class MemoryWatch:
    """An actor. Everything but `run` returns at once.

    Args:
        ping: Asks the database for a sign of life.
        make_good: Does what could not be done while the database was away, and only that. Both raise a
            `GlyphoxaError` that says what is in the way.
        changed: Told whenever it went from one state to the other.
        now_ms: Unix epoch.
    """

    def __init__(
        self,
        *,
        ping: Callable[[], Awaitable[None]],
        make_good: Callable[[], Awaitable[None]],
        changed: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._ping = ping
        self._make_good = make_good
        self._changed = changed
        self._now_ms = now_ms
        self._suspected = asyncio.Event()
        self._hopeful = asyncio.Event()
        self._failures = 0
        self.is_away = False
        """The database does not answer: asking it would only cost time."""
        self.since_ms: int | None = None
        """Since when memory is degraded; None while all is well."""
        self.why = ""
        """What is in the way, for the DM."""

    def suspect(self) -> None:
        """Somebody got no answer, or not in time: look whether that was the database's fault."""
        self._suspected.set()

    def hope(self) -> None:
        """Somebody got an answer again: do not wait for the next look."""
        self._hopeful.set()

    def lost(self, why: str) -> None:
        """The database did not answer just now. `run` looks when it does."""
        self.is_away = True
        self._failed(why)
        self._suspected.set()

    async def run(self) -> None:
        """The actor's body."""
        while True:
            await self._suspected.wait()
            self._suspected.clear()
            if not self._failures:
                await self._look()
            while self._failures:
                await self._pause()
                await self._look()

    async def _look(self) -> None:
        if (why := await self._hindered(self._ping)) is not None:
            self.is_away = True
            self._failed(why)
            return
        self.is_away = False
        if (why := await self._hindered(self._make_good)) is not None:
            self._failed(why)
            return
        self._failures = 0
        if self.since_ms is not None:
            self.since_ms, self.why = None, ""
            self._changed()

    async def _hindered(self, step: Callable[[], Awaitable[None]]) -> str | None:
        try:
            await step()
        except GlyphoxaError as error:
            return str(error)
        except Exception as error:  # a bug there must not end what looks for memory
            logger.opt(exception=error).error("long-term memory broke")
            return f"memory broke ({type(error).__name__})"
        return None

    async def _pause(self) -> None:
        self._hopeful.clear()
        try:
            async with asyncio.timeout(pause_ms(self._failures) / 1000):
                await self._hopeful.wait()
        except TimeoutError:
            return

    def _failed(self, why: str) -> None:
        self._failures += 1
        self.why = why
        if self.since_ms is None:
            self.since_ms = self._now_ms()
            self._changed()
        else:
            logger.debug("long-term memory is still degraded: {}", why)
