"""Memory's ports as small twins in memory: a graph of three, and what Grimjaw heard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from glyphoxa.domain.campaign import BudgetTier, Campaign, Entity, Relationship
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, UtteranceId
from glyphoxa.domain.turn import Recalled
from glyphoxa.npc.tools import MemoryOf, MemoryTools

SALTMERE = CampaignId("saltmere")
GRIMJAW = NpcId("grimjaw")
ELOWEN = NpcId("elowen")

SMITH = Entity(EntityId("grimjaw"), "npc", "Grimjaw", aliases=("the smith",), attributes={"occupation": "blacksmith"})
WARDENS = Entity(EntityId("wardens"), "faction", "Wardens of the Tide")
REAVERS = Entity(EntityId("reavers"), "faction", "Reavers of Skarn")
EDGES = (
    Relationship(SMITH.id, WARDENS.id, "MEMBER_OF"),
    Relationship(WARDENS.id, REAVERS.id, "HOSTILE_TO"),
    Relationship(REAVERS.id, SMITH.id, "OWES_MONEY_TO", dm_confirmed=False),
)


BY_ID = {entity.id: entity for entity in (SMITH, WARDENS, REAVERS)}


class Graph:
    """The knowledge graph's twin in memory."""

    async def load(self, campaign: Campaign) -> None: ...

    async def entities(self, campaign: CampaignId, *, of_type: str | None = None) -> list[Entity]:
        return [one for one in BY_ID.values() if of_type in (None, one.type) and campaign == SALTMERE]

    async def neighbourhood(
        self, campaign: CampaignId, entity: EntityId
    ) -> tuple[Entity | None, list[tuple[Relationship, Entity]]]:
        related = [(e, BY_ID[e.target]) for e in EDGES if e.source == entity]
        related += [(e, BY_ID[e.source]) for e in EDGES if e.target == entity]
        return BY_ID.get(entity), related


@dataclass
class Talk:
    """Past talk's twin: everything Grimjaw heard."""

    heard: tuple[Recalled, ...] = ()
    asked_for: list[NpcId] = field(default_factory=list)

    async def recall(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        limit: int = 5,
    ) -> list[Recalled]:
        self.asked_for.append(npc)
        return list(self.heard[:limit]) if npc == GRIMJAW else []


def tools_of(npc: NpcId = GRIMJAW, *, talk: Talk | None = None, tier: BudgetTier = "DEEP") -> MemoryTools:
    return MemoryTools(MemoryOf(SALTMERE, npc, Graph(), talk or Talk()), tier=tier)
