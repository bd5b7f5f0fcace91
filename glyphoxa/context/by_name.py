"""Whom and what a question names, as far as one NPC knows of it, from memory and at once."""

from __future__ import annotations

from functools import cached_property

from glyphoxa.context.of_file import state_of_file
from glyphoxa.context.told import told_by_name
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.ports.by_name import FactsByName, KnownByName
from glyphoxa.memory.recall.exact.named_world import NamedWorld

_NOW_MS = 0
"""What a campaign's file says holds always."""


class ByName:
    """
    Args:
        memory: None without long-term memory: the campaign's file tells. With it the file does not, not even while the
            database is away: the DM may have hidden since what it tells everybody.
    """

    def __init__(self, campaign: Campaign, memory: FactsByName | None) -> None:
        self._campaign = campaign
        self._memory = memory
        self._own = {npc.id: npc.entity_id for npc in campaign.npcs}
        self._may_be_old = False

    def forget(self) -> None:
        """What is in memory may be otherwise now: nobody is told of it before `refresh` has ended, however it ends."""
        self._may_be_old = self._memory is not None

    async def refresh(self) -> None:
        """Have in memory what is known now.

        Raises:
            GlyphoxaError: It cannot be read; what is in memory stays.
        """
        try:
            if self._memory is not None:
                await self._memory.refresh(self._campaign.id)
        finally:
            self._may_be_old = False

    def named(self, npc: NpcId, question: str) -> list[KnownByName]:
        """Whom the question names beside the NPC itself, of whom it knows: its identity is in every prompt. Nobody when
        nothing is in memory.
        """
        if not question or self._may_be_old:
            return []
        if self._memory is None:
            found = self._of_file.by_name(npc, question, at_ms=_NOW_MS)
        else:
            found = self._memory.by_name(self._campaign.id, npc, question) or []
        return [one for one in found if one.known.entity.id != self._own.get(npc)]

    def told(self, npc: NpcId, question: str) -> list[Recalled]:
        """What the NPC is told of them."""
        found = self.named(npc, question)
        return [one for _, told in told_by_name(found, question, npc, language=self._campaign.language) for one in told]

    @cached_property
    def _of_file(self) -> NamedWorld:
        also = {npc.entity_id: (npc.name, *npc.aliases) for npc in self._campaign.npcs}
        return NamedWorld(state_of_file(self._campaign), language=self._campaign.language, also_called=also)
