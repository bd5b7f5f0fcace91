"""Whom and what a question names, as far as one NPC knows of it, from memory and at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glyphoxa.context.fact_selection import select_facts
from glyphoxa.context.of_file import state_of_file
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import AUTO_ACCEPT
from glyphoxa.domain.recalled import RecalledFact
from glyphoxa.recall.entities.named_world import FactsByName, KnownByName, NamedWorld
from glyphoxa.world.api import IdentitySnapshot, Known

_NOW_MS = 0
"""What a campaign's file says holds always."""


class ByName:
    """
    Args:
        memory: None without long-term memory: the campaign's file tells. With it the file does not, not even while the
            database is away: the DM may have hidden since what it tells everybody.
        accept_at: The confidence from which the file's facts are accepted, where it tells.
    """

    def __init__(self, campaign: Campaign, memory: FactsByName | None, *, accept_at: float = AUTO_ACCEPT) -> None:
        self._campaign = campaign
        self._memory = memory
        self._of_file = _world_of_file(campaign, accept_at) if memory is None else None
        self._own = {npc.id: npc.entity_id for npc in campaign.npcs}
        self._may_be_old = False
        self._n_forgotten = 0

    def forget(self) -> None:
        """What is in memory may be otherwise now: nobody is told of it before `refresh` has ended, however it ends."""
        self._may_be_old = self._memory is not None
        self._n_forgotten += 1

    async def refresh(self) -> None:
        """Have in memory what is known now.

        Raises:
            GlyphoxaError: It cannot be read; what is in memory stays.
        """
        n_forgotten = self._n_forgotten
        try:
            if self._memory is not None:
                await self._memory.refresh(self._campaign.id)
        finally:
            if n_forgotten == self._n_forgotten:  # else it began too early for who speaks now
                self._may_be_old = False

    def named(self, npc: NpcId, question: str, *, is_read: bool = False) -> list[KnownByName]:
        """Whom the question names beside the NPC itself, of whom it knows: its identity is in every prompt. Nobody when
        nothing is in memory.

        Args:
            is_read: Whoever asks has had it read since the question was known: that somebody else begins to speak
                meanwhile does not concern it.
        """
        if not question or (self._may_be_old and not is_read):
            return []
        found: Sequence[KnownByName] | None = None
        if self._memory is not None:
            found = self._memory.by_name(self._campaign.id, npc, question)
        elif self._of_file is not None:
            found = self._of_file.by_name(npc, question, at_ms=_NOW_MS)
        return [one for one in found or () if one.known.entity.id != self._own.get(npc)]

    def itself(self, npc: NpcId) -> IdentitySnapshot | None:
        """What an NPC knows of itself, as it is in memory; None when nothing is."""
        try:
            return None if self._memory is None else self._memory.identity(self._campaign.id, npc, self._own[npc])
        except Unavailable:
            return None

    def world_of(self, npc: NpcId) -> Callable[[EntityId], Known | None] | None:
        """What an NPC may know of an entity, asked at once. None as long as the campaign is not stored or not read."""
        if self._of_file is not None:
            of_file = self._of_file
            return lambda entity: of_file.known(npc, entity, at_ms=_NOW_MS)
        memory = self._memory
        if memory is None or self.itself(npc) is None:
            return None

        def known(entity: EntityId) -> Known | None:
            snapshot = memory.identity(self._campaign.id, npc, entity)
            return None if snapshot is None else snapshot.known

        return known

    def facts(self, npc: NpcId, question: str, *, is_read: bool = False) -> list[RecalledFact]:
        """The facts about them that a prompt has room for. See `named`."""
        found = self.named(npc, question, is_read=is_read)
        selected = select_facts(found, question, npc, language=self._campaign.language)
        return [fact for _, facts in selected for fact in facts]


def _world_of_file(campaign: Campaign, accept_at: float) -> NamedWorld:
    also = {npc.entity_id: (npc.name, *npc.aliases) for npc in campaign.npcs}
    return NamedWorld(state_of_file(campaign, accept_at=accept_at), language=campaign.language, also_called=also)
