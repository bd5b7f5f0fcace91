"""Reads what was said, in order, and writes what it tells."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from loguru import logger

from glyphoxa.chronicle.effects import Effects, effects_of
from glyphoxa.chronicle.ports import ChronicleLog, Extractor, LeaseLost, ReadingStep, SessionProgress, Unread
from glyphoxa.chronicle.talk import LONGEST, Extraction, SceneTalk, stretches
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId, SessionId

PAGE: Final = 200
"""Utterances that are fetched at once."""
EXTRACT_MS: Final = 10_000
"""Rules take some milliseconds for a stretch: what takes longer has failed."""


@dataclass(slots=True)
class Tally:
    """What came of reading. `n_refused`: what an extractor found and nobody believed."""

    n_read: int = 0
    n_events: int = 0
    n_refused: int = 0


class Chronicler:
    """Turns the talk of one campaign into knowledge, with the extractor that it is given.

    It may be stopped at any time, and several may run: each stretch of talk is written once, in order.

    Args:
        language: BCP 47 tag of the campaign.
        extract_ms: The extractor may take so long for one stretch.
    """

    def __init__(
        self,
        campaign: CampaignId,
        language: str,
        log: ChronicleLog,
        extractor: Extractor,
        *,
        extract_ms: int = EXTRACT_MS,
    ) -> None:
        self._campaign = campaign
        self._language = language
        self._log = log
        self._extractor = extractor
        self._extract_ms = extract_ms

    async def run(self, session: SessionId, *, told: Callable[[int], None] | None = None) -> Tally | None:
        """Read all of a session that was not read yet.

        Args:
            told: Is called with the ordinal that was reached.

        Returns:
            None: another worker reads it.

        Raises:
            Unavailable: The database, or the extractor's model, is away. What was read so far is kept.
            GlyphoxaError: A stretch cannot be read, or not be written. The failure is noted.
        """
        tally = Tally()
        reached = await self._log.take(self._campaign, session)
        if reached is None:
            return None
        try:
            while (changed := await self._log.reread(self._campaign, session, up_to=reached)) is not None:
                await self._again(session, changed, tally, reached)
            while (unread := await self._log.unread(self._campaign, session, after=reached, limit=PAGE)) is not None:
                reached = await self._page(session, unread, tally, reached, told)
        except LeaseLost:
            logger.info("session {} of campaign {} is read by another worker now", session, self._campaign)
            return None
        except GlyphoxaError as error:
            await self._note(session, error)
            raise
        await self._log.release(self._campaign, session)
        return tally

    async def _page(
        self, session: SessionId, unread: Unread, tally: Tally, reached: int, told: Callable[[int], None] | None
    ) -> int:
        parts: list[SceneTalk | None] = list(
            stretches(self._campaign, session, self._language, unread.said, unread.before)
        )
        for n, part in enumerate(parts or [None], start=1):
            # What was retracted behind the last of them was looked at, too.
            end = unread.up_to if part is None or n == len(parts) else part.said[-1].ordinal
            effects = await self._effects(part, await self._extraction(part), tally)
            done = tuple(each for each in unread.rereads if reached < each.ordinal <= end)
            step = ReadingStep(session, reached, end, effects.of, rereads=done, refused=effects.refused)
            await self._log.learn(self._campaign, step)
            reached = end
            if told is not None:
                told(reached)
        return reached

    async def _again(self, session: SessionId, changed: Unread, tally: Tally, reached: int) -> None:
        """What says something else now, up to the end of its stretch: what it told before goes."""
        parts = list(stretches(self._campaign, session, self._language, changed.said, changed.before))
        part = parts[0] if parts else None
        end = changed.up_to if len(parts) < 2 else parts[0].said[-1].ordinal
        said = () if part is None else part.said
        at_ms = max((each.utterance.at_ms for each in said), default=0)
        extraction = await self._extraction(part)
        # First, so that a name that only these lines told is new to them. Whoever dies here finds the mark as it was.
        gone = tuple(each.utterance.id for each in said)
        await self._log.learn(self._campaign, ReadingStep(session, reached, reached, unlearned=gone, at_ms=at_ms))
        effects = await self._effects(part, extraction, tally)
        done = tuple(each for each in changed.rereads if each.ordinal <= end)
        step = ReadingStep(session, reached, reached, effects.of, rereads=done, refused=effects.refused)
        await self._log.learn(self._campaign, step)

    async def _extraction(self, part: SceneTalk | None) -> Extraction:
        if part is None:
            return Extraction()
        known = await self._log.known(self._campaign)
        try:
            async with asyncio.timeout(self._extract_ms / 1000):
                return await self._extractor.extract(part, known)
        except TimeoutError:
            raise Unavailable(
                f"{len(part.said)} utterances could not be read within {self._extract_ms / 1000:g} s"
            ) from None

    async def _effects(self, part: SceneTalk | None, extraction: Extraction, tally: Tally) -> Effects:
        if part is None:
            return Effects(())
        effects = effects_of(extraction, part, await self._log.known(self._campaign))
        for why in effects.refused:
            logger.debug("session {} of campaign {}: not believed: {}", part.session, part.campaign, why)
        tally.n_read += len(part.said)
        tally.n_events += sum(len(effect.events) for effect in effects.of)
        tally.n_refused += len(effects.refused)
        return effects

    async def _note(self, session: SessionId, error: GlyphoxaError) -> None:
        try:
            await self._log.failed(self._campaign, session, str(error))
        except Unavailable as away:
            logger.debug("the failure of session {} could not be noted: {}", session, away)


# A worker of the chronicle: reads what has news, one campaign after the other, as long as it runs.


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
        """Read all sessions of a campaign that have news and are not paused. Return how many were read.

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
