"""Recaps: who asks what happened is told that first, in its order; where there are summaries of sessions, by those."""

from __future__ import annotations

import asyncio

from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.domain.recalled import RecalledTalk
from glyphoxa.recall.ranking.ranked import Ranked
from glyphoxa.recall.ranking.recap import asks_for_recap, recap, sessions_in_question, without_repeats
from glyphoxa.transcript.ports import SessionSummaries


class Recaps:
    """
    Args:
        summaries: None: the most telling turns of a session stand for it.
        deadline_ms: For the summaries of one question.
    """

    def __init__(self, summaries: SessionSummaries | None, *, deadline_ms: int) -> None:
        self._summaries = summaries
        self._deadline_ms = deadline_ms

    async def before(
        self,
        items: list[RecalledTalk],
        ranked: Ranked,
        campaign: CampaignId,
        npc: NpcId,
        *,
        left_out: list[str],
    ) -> list[RecalledTalk]:
        """Where a recap is asked for, what happened comes first, and what is like the question fills up.

        Args:
            items: What is like the question, best first.
            left_out: What had no say is added here.
        """
        if not asks_for_recap(ranked.question):
            return items
        happened = recap(ranked, await self._read(ranked, campaign, npc, left_out))
        happened = [one for one in happened if ranked.query.between.holds(one.at_ms)]  # a summary is no turn
        return without_repeats([*happened, *items])[: ranked.query.limit]

    async def _read(
        self, ranked: Ranked, campaign: CampaignId, npc: NpcId, left_out: list[str]
    ) -> dict[SessionId, str]:
        found: dict[SessionId, str] = {}
        if self._summaries is None:
            return found
        try:
            async with asyncio.timeout(self._deadline_ms / 1000):
                for session in sessions_in_question(ranked.index, ranked.seen, ranked.fit):
                    summary = await self._summaries.summary(campaign, npc, session)
                    if summary is not None:
                        found[session] = summary
        except (TimeoutError, GlyphoxaError) as error:
            left_out.append(f"summaries: {str(error) or 'they took too long'}")
        return found
