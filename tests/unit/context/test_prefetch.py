"""Looking things up while a player still speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from glyphoxa.context.prefetch import Prefetch
from glyphoxa.context.selection import ByName
from glyphoxa.domain.ids import CampaignId, NpcId
from glyphoxa.domain.knowledge import RecalledTalk
from glyphoxa.transcript.ports import TalkQuery
from tests.support.builders import SMITH, TAMSIN, a_campaign


class BrokenTalk:
    def recall_nowait(self, campaign: CampaignId, npc: NpcId, query: TalkQuery) -> Sequence[RecalledTalk] | None:
        raise ValueError("the index is broken")

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> Sequence[RecalledTalk]:
        raise ValueError("the index is broken")


def test_failing_look_up_does_not_reach_the_ear() -> None:
    async def speak() -> Sequence[RecalledTalk]:
        campaign = a_campaign()
        prefetch = Prefetch(
            campaign.id,
            by_name=ByName(campaign, None),
            talk=BrokenTalk(),
            language="en",
            present=lambda: {SMITH: "Grimjaw"},
        )
        prefetch.on_partial(TAMSIN, "Grimjaw, what did you tell me of the road?")
        await prefetch.close()
        return prefetch.recalled(SMITH)

    assert asyncio.run(speak()) == ()
