"""Other words for what was said, or none any more: in recent talk, in the NPCs' prompts, on the page."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.events import TableEvent, UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId
from glyphoxa.npc.actor import GetReady, NpcActor
from glyphoxa.transcript.journal import RecentTalk
from glyphoxa.transcript.ports import DecidedTalk, News, TalkDecisions


class Revisions:
    """An actor, for what need not be in the NPCs' prompts at once: a prompt that changes is read anew, and that must
    not be in a turn. Everything but `run` returns at once.

    Args:
        somebody: Who will probably speak next.
        wait_until_quiet: Until nobody speaks and no NPC is answering.
        tell: Takes events of the table.
    """

    def __init__(
        self,
        recent: RecentTalk,
        npcs: Mapping[NpcId, NpcActor],
        *,
        somebody: Callable[[], str],
        wait_until_quiet: Callable[[], Awaitable[None]],
        tell: Callable[[TableEvent], None],
    ) -> None:
        self._recent = recent
        self._npcs = npcs
        self._somebody = somebody
        self._wait_until_quiet = wait_until_quiet
        self._tell = tell
        self._waiting: list[News] = []
        self._work = asyncio.Event()

    def at_once(self, news: Sequence[News]) -> None:
        """The DM decided so. An answer that is on its way was asked before."""
        self._remember(news)
        self._spread(news)
        for one in news:
            self._tell(one)

    def when_quiet(self, event: UtteranceRevised) -> None:
        """It was understood better. Recent talk and the page have it at once, NPCs when nobody speaks."""
        self._remember([event])
        self._waiting.append(event)
        self._work.set()
        self._tell(event)

    async def run(self) -> None:
        """The actor's body."""
        while True:
            if not self._waiting:
                self._work.clear()
                await self._work.wait()
            await self._wait_until_quiet()
            waiting, self._waiting = self._waiting, []
            self._spread(waiting)

    def _remember(self, news: Sequence[News]) -> None:
        for one in news:
            match one:
                case UtteranceRetracted(utterance, is_retracted=True):
                    self._recent.retracted(utterance.id)
                case UtteranceRevised(utterance):
                    self._recent.revised(utterance)
                case _:
                    pass  # what is given back is recalled; to those who talk it is over

    def _spread(self, news: Sequence[News]) -> None:
        concerned: dict[NpcId, None] = {}
        for one in news:
            heard_it = sorted(one.utterance.witnesses & self._npcs.keys())
            concerned |= dict.fromkeys(heard_it)
            for npc in heard_it:
                self._npcs[npc].mailbox.post(one)
        for npc in concerned:
            self._npcs[npc].mailbox.post(GetReady("", self._somebody()))


# A table that is being played follows what the DM decides of its talk: retracted, rolled back, or other words.


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
