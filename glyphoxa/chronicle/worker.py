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
from glyphoxa.chronicle.stretches import LONGEST
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId, SessionId

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
        gather_ms: A stretch that is not full is read when nothing more was said for so long.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        log: ChronicleLog,
        *,
        campaigns: Callable[[], Awaitable[Sequence[CampaignId]]],
        chronicler: Callable[[CampaignId], Awaitable[Chronicler]],
        said: Callable[[], AsyncGenerator[object, None]],
        now_ms: Callable[[], int],
        gather_ms: int = 0,
    ) -> None:
        self._log = log
        self._campaigns = campaigns
        self._chronicler = chronicler
        self._said = said
        self._now_ms = now_ms
        self._gather_ms = gather_ms
        self._seen: dict[tuple[CampaignId, SessionId], tuple[int, int]] = {}
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
        sessions = due(await self._log.progress(campaign), self._now_ms())
        waiting = [each for each in sessions if self._is_gathered(campaign, each)]
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

    def _is_gathered(self, campaign: CampaignId, session: SessionProgress) -> bool:
        if not self._gather_ms or session.n_rereads or session.last_ordinal - session.read_ordinal >= LONGEST:
            return True
        now_ms = self._now_ms()
        last, since_ms = self._seen.get((campaign, session.session), (0, now_ms))
        if last != session.last_ordinal:
            self._seen[campaign, session.session] = session.last_ordinal, now_ms
            return False
        return now_ms - since_ms >= self._gather_ms

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
