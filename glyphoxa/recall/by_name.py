"""What a table asks of memory by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from glyphoxa.world.api import IdentitySnapshot, Known


@dataclass(frozen=True, slots=True)
class KnownByName:
    """
    Attributes:
        known: As far as the one who is asked may know, and as it holds now.
        why: "named 'the smith'".
        is_named: It stands in the question itself, and did not come along with what does.
    """

    known: Known
    why: str
    is_named: bool = True


class FactsByName(Protocol):
    """See `glyphoxa.recall.entities.world_cache.WorldCache`."""

    async def refresh(self, campaign: CampaignId) -> None:
        """Have in memory what is known now.

        Raises:
            Unavailable: It cannot be read; what is in memory stays.
        """
        ...

    def by_name(self, campaign: CampaignId, npc: NpcId, question: str) -> list[KnownByName] | None:
        """Whom a question names, at once, in the order in which they are named; who only comes along stands last. None
        when nothing is in memory.
        """
        ...

    def identity(self, campaign: CampaignId, npc: NpcId, entity: EntityId) -> IdentitySnapshot | None:
        """What an NPC knows of itself, at once, as `KnowledgeGraph.identity_snapshot` says it.

        Raises:
            Unavailable: Nothing is in memory.
        """
        ...
