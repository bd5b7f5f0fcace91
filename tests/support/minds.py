"""The hot context of a campaign's NPCs, over twins of its memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.campaign import Campaign, Npc
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.identity import beginning_of
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.prompt import Message
from glyphoxa.recall.world import World
from glyphoxa.world.file_claims import state_of_file
from tests.support.memory import GraphTwin, WorldTwin
from tests.support.patience import DEADLINE_MS

PATIENT = Budgets(recall_deadline_ms=DEADLINE_MS)
"""Twins answer at once, or, told to be late, never."""


class SessionsTwin:
    """`EarlierSessions` in memory: summaries, and threads if there are any."""

    def __init__(self, summaries: Callable[[NpcId], Any], threads: Any = None) -> None:
        self.summaries = summaries
        self._threads = threads

    async def threads(self, npc: NpcId) -> Any:
        return await self._threads(npc) if self._threads is not None else ()

    async def arc(self, npc: NpcId) -> tuple[()]:
        return ()


class Mind:
    """Prefetch and assembly of a campaign.

    Args:
        graph: None: what the campaign's file says.
        talk: Memory of what was said; None without.
        present: The NPCs in the scene; None: all.
        conversations: The NPCs' transcripts.
        options: Options of `HotContexts`.
    """

    def __init__(
        self,
        campaign: Campaign,
        *,
        graph: GraphTwin | None = None,
        by_name: WorldTwin | None = None,
        talk: Any = None,
        present: Callable[[], Mapping[NpcId, str]] | None = None,
        conversations: Mapping[NpcId, Conversation] | None = None,
        budgets: Budgets = PATIENT,
        **options: Any,
    ) -> None:
        self.graph = graph or GraphTwin.of(campaign)
        self.by_name = by_name or WorldTwin(self.graph)
        self.prefetch = Prefetch(
            KnownWorld(campaign, self.by_name),
            talk=talk,
            present=present or (lambda: {npc.id: npc.name for npc in campaign.npcs}),
            conversations=conversations,
            max_recalled=budgets.max_recalled,
        )
        self.assembly = HotContexts(self.prefetch, budgets=budgets, **options)

    async def partial(self, player: PlayerId, text: str) -> None:
        """Somebody begins to speak, a partial transcript, and the look-ups these start."""
        before = asyncio.all_tasks()
        self.prefetch.begin(player)
        self.prefetch.on_partial(player, text)
        await asyncio.gather(*(asyncio.all_tasks() - before))


def beginning(campaign: Campaign, npc: Npc) -> tuple[Message, ...]:
    """Return the messages before the transcript, from what the campaign's file lets the NPC know of itself."""
    world = World(state_of_file(campaign, accept_at=1.0), now_ms=lambda: 0)
    return beginning_of(campaign, npc, world.known(npc.id, npc.entity_id))
