"""A worker of the chronicle: reads what has news, one campaign after the other, as long as it runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final

from loguru import logger

from glyphoxa.chronicle.chronicler import Chronicler
from glyphoxa.chronicle.ports import ChronicleLog, SessionProgress
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId

LOOK_AGAIN_MS: Final = 5_000
"""A session that waits for another try, or whose worker died, is looked at so often."""


class ChronicleWorker:
    """
    Args:
        log: Of this worker alone.
        campaigns: Those that it reads.
        chronicler: Made for a campaign when it has news.
        said: Something whenever anything was said.
        now_ms: Unix epoch.
    """

    def __init__(
        self,
        log: ChronicleLog,
        *,
        campaigns: Callable[[], Awaitable[Sequence[CampaignId]]],
        chronicler: Callable[[CampaignId], Awaitable[Chronicler]],
        said: Callable[[], AsyncGenerator[object, None]],
        now_ms: Callable[[], int],
    ) -> None:
        self._log = log
        self._campaigns = campaigns
        self._chronicler = chronicler
        self._said = said
        self._now_ms = now_ms
        self._troubles: set[str] = set()

    async def run(self) -> None:
        """Read what is said as soon as it is kept, until cancelled. What fails is tried again; nothing ends it.

        Raises:
            GlyphoxaError: The database refuses to say when something is said, for a reason that does not pass.
        """
        async with aclosing(self._woken()) as woken:
            async for _ in woken:
                await self._round()

    async def _round(self) -> None:
        """One campaign after the other; what keeps one from being read keeps no other."""
        troubles: set[str] = set()
        try:
            campaigns = await self._campaigns()
        except GlyphoxaError as error:
            campaigns, troubles = (), {f"talk is not read now: {error}"}
        for campaign in campaigns:
            try:
                await self.read_what_is_new(campaign)
            except GlyphoxaError as error:
                troubles.add(f"talk of campaign {campaign} is not read now: {error}")
        for trouble in sorted(troubles - self._troubles):  # each once, for as long as it lasts
            logger.warning("{}", trouble)
        self._troubles = troubles

    async def read_what_is_new(self, campaign: CampaignId) -> int:
        """Read all sessions of a campaign that have news and are not to be let be for now. Returns how many were read.
        A session that fails is noted, and the others go on.

        Raises:
            Unavailable: The database, or the model that reads, is away.
        """
        waiting = due(await self._log.progress(campaign), self._now_ms())
        if not waiting:
            return 0
        chronicler, n_read = await self._chronicler(campaign), 0
        for each in waiting:
            try:
                n_read += await chronicler.run(each.session) is not None
            except Unavailable:
                raise
            except GlyphoxaError as error:
                logger.warning("session {} of campaign {} cannot be read now: {}", each.session, campaign, error)
        return n_read

    async def _woken(self) -> AsyncGenerator[None, None]:
        """Now, whenever something was said, and every five seconds."""
        async with aclosing(self._said()) as said:
            following = asyncio.ensure_future(anext(said))
            try:
                while True:
                    yield
                    await asyncio.wait([following], timeout=LOOK_AGAIN_MS / 1000)
                    if following.done():
                        following.result()
                        following = asyncio.ensure_future(anext(said))
            finally:
                following.cancel()
                with contextlib.suppress(asyncio.CancelledError, GlyphoxaError):
                    await following


def due(sessions: Sequence[SessionProgress], now_ms: int) -> list[SessionProgress]:
    """Those that are to be read now, the least unread first, so that a long one holds up no short one."""
    waiting = [
        each
        for each in sessions
        if each.has_news and not each.is_dead and (each.retry_at_ms is None or each.retry_at_ms <= now_ms)
    ]
    return sorted(waiting, key=lambda each: each.last_ordinal - each.read_ordinal)
