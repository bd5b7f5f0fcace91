"""Past talk for those who may look long: an NPC of the tier DEEP that searches its memory by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, NpcId
from glyphoxa.domain.recalled import RecalledTalk
from glyphoxa.experimental.deep import DeepRecall
from glyphoxa.experimental.graph.methods import RecallMethod, RecallPath
from glyphoxa.transcript.ports import PastTalk, TalkQuery

_OF_OTHERS: Final = ("language model: ", "rerank: ")


class DeepTalk:
    """A `PastTalk` whose `recall` is by a method of the memory graph, and by words and meaning where that fails. Each
    failure is logged once, until it has gone well again.

    Args:
        talk: Asked where the method fails.
        deep: Not used on the voice path.
        deadline_ms: For one answer; below what a tool may take, so that there is one.
        recent: What an NPC heard last, oldest first, each with its speaker.
        world: What an NPC knows of itself and of the world anyway.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        talk: PastTalk,
        deep: DeepRecall,
        *,
        method: RecallMethod,
        deadline_ms: int,
        recent: Callable[[NpcId], Sequence[str]] = lambda _: (),
        world: Callable[[NpcId], str] = lambda _: "",
    ) -> None:
        self._talk = talk
        self._deep = deep
        self._method = method
        self._deadline_ms = deadline_ms
        self._recent = recent
        self._world = world
        self._has_failed = False

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> list[RecalledTalk]:
        """See `PastTalk.recall`."""
        try:
            found = await self._deep.recall(
                campaign,
                npc,
                query,
                method=self._method,
                path=RecallPath.DEEP,
                recent=self._recent(npc),
                world=self._world(npc),
                deadline_ms=self._deadline_ms,
            )
        except GlyphoxaError as error:
            self._failed(str(error))
            return await self._talk.recall(campaign, npc, query, patient=patient)
        failed = [part for part in found.left_out if part.startswith(_OF_OTHERS)]
        if failed:
            self._failed(failed[0])
        else:
            self._has_failed = False
        return list(found.items)

    def recall_nowait(self, campaign: CampaignId, npc: NpcId, query: TalkQuery) -> list[RecalledTalk] | None:
        """See `PastTalk.recall_nowait`."""
        return self._talk.recall_nowait(campaign, npc, query)

    def _failed(self, why: str) -> None:
        if not self._has_failed:
            logger.warning("recall by {} falls back on words and meaning: {}", self._method, why)
        self._has_failed = True
