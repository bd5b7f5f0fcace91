"""A table that is being played follows what the DM decides of its talk: retracted, rolled back, or other words."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.events import UtteranceRevised
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.npc.revisions import Revisions
from glyphoxa.transcript.api import DecidedTalk, RecentTalk, TalkDecisions

_AGAIN_S: Final = 1.0
_PUT_RIGHT_S: Final = 60.0


class FollowedTalk:
    """What an NPC has heard this evening stands in its prompt, and on the page: both follow at once. What is recalled
    follows by itself.

    Args:
        refresh: Reads the talk that recall holds in memory: what leaves a prompt would else be recalled into it.
        after_revise: Awaited when there are other words: what was derived from the old ones is made anew. It must not
            raise.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        campaign: CampaignId,
        session: SessionId,
        decisions: TalkDecisions,
        *,
        recent: RecentTalk,
        revisions: Revisions,
        refresh: Callable[[CampaignId], Awaitable[object]],
        after_revise: Callable[[], Awaitable[None]],
    ) -> None:
        self._campaign = campaign
        self._session = session
        self._decisions = decisions
        self._recent = recent
        self._revisions = revisions
        self._refresh = refresh
        self._after_revise = after_revise
        self._decided = DecidedTalk(self._text_of)

    async def run(self) -> None:
        """The actor's body."""
        has_told = False
        while True:
            try:
                async with aclosing(self._decisions.changes(self._campaign)) as changes:
                    async for _ in changes:
                        await self._follow()
            except GlyphoxaError as error:  # one that does not pass by itself: a password, a schema
                if not has_told:
                    logger.error("what the DM decides of the talk is not seen until this is put right: {}", error)
                has_told = True
                await asyncio.sleep(_PUT_RIGHT_S)

    async def _follow(self) -> None:
        while True:
            try:
                decided = await self._decisions.decided(self._campaign, self._session)
                break
            except Unavailable as error:
                logger.debug("what the DM has decided of the talk is not read yet: {}", error)
                await asyncio.sleep(_AGAIN_S)
        try:
            await self._refresh(self._campaign)
        except GlyphoxaError as error:
            logger.debug("past talk is not read anew yet: {}", error)
        news = self._decided.take(decided)
        self._revisions.at_once(news)
        if any(isinstance(one, UtteranceRevised) for one in news):
            await self._after_revise()

    def _text_of(self, utterance: UtteranceId) -> str | None:
        recent = self._recent.of(self._session, limit=sys.maxsize)
        return next((said.text for said in recent if said.id == utterance), None)
