"""A table that is being played follows what the DM decides of its talk: retracted, rolled back, or other words."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.events import TableEvent, UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId
from glyphoxa.npc.actor import GetReady, NpcActor, Retract, Revise
from glyphoxa.transcript.decisions import DecidedTalk, News
from glyphoxa.transcript.ports import TalkDecisions
from glyphoxa.transcript.recorder import Recorder

_AGAIN_S: Final = 1.0
_PUT_RIGHT_S: Final = 60.0


class FollowedTalk:
    """What an NPC has heard this evening stands in its prompt, and on the page: both follow at once. What is recalled
    follows by itself. An answer that is on its way was asked before.

    Args:
        tell: Takes events of the table.
        somebody: Who will probably speak next.
        refresh: Reads the talk that recall holds in memory: what leaves a prompt would else be recalled into it.
        after_revise: Awaited when there are other words: what was derived from the old ones is made anew. It must not
            raise.
    """

    def __init__(
        self,
        campaign: CampaignId,
        session: SessionId,
        decisions: TalkDecisions,
        *,
        recorder: Recorder,
        npcs: Mapping[NpcId, NpcActor],
        tell: Callable[[TableEvent], None],
        somebody: Callable[[], str],
        refresh: Callable[[CampaignId], Awaitable[object]],
        after_revise: Callable[[], Awaitable[None]],
    ) -> None:
        self._campaign = campaign
        self._session = session
        self._decisions = decisions
        self._recorder = recorder
        self._npcs = npcs
        self._tell = tell
        self._somebody = somebody
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
        for one in news:
            self._spread(one)
        if any(isinstance(one, UtteranceRevised) for one in news):
            await self._after_revise()

    def _spread(self, news: News) -> None:
        utterance = news.utterance
        heard_it = utterance.witnesses & self._npcs.keys()
        match news:
            case UtteranceRetracted(is_retracted=True):
                self._recorder.retracted(utterance.id)
                for npc in heard_it:
                    self._npcs[npc].mailbox.post(Retract(utterance.id))
            case UtteranceRevised(was=was):
                self._recorder.revised(utterance)
                for npc in heard_it:
                    self._npcs[npc].mailbox.post(Revise(utterance, was.text))
            case _:
                pass  # what is given back is recalled; to those who talk it is over
        for npc in sorted(heard_it):
            self._npcs[npc].mailbox.post(GetReady("", self._somebody()))
        self._tell(news)

    def _text_of(self, utterance: UtteranceId) -> str | None:
        recent = self._recorder.recent(self._session, limit=sys.maxsize)
        return next((said.text for said in recent if said.id == utterance), None)
