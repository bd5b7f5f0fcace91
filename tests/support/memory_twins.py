"""Memory's ports as small twins in memory: three entities and what is known of them, and what Grimjaw heard."""

from __future__ import annotations

from dataclasses import dataclass, field

from glyphoxa.domain.campaign import BudgetTier, Entity
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, SpeakerId
from glyphoxa.domain.knowledge import (
    PUBLIC,
    Claim,
    Fact,
    Knower,
    Provenance,
    RecalledTalk,
    RecalledUtterance,
    Visibility,
    secret_of,
    witnessed_by,
)
from glyphoxa.npc.memory_tools import NpcMemory
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.transcript.ports import TalkQuery
from tests.support.memory import GraphTwin, WorldTwin

SALTMERE = CampaignId("saltmere")
GRIMJAW = NpcId("grimjaw")
ELOWEN = NpcId("elowen")

SMITH = Entity(EntityId("grimjaw"), "npc", "Grimjaw", aliases=("the smith",))
WARDENS = Entity(EntityId("wardens"), "faction", "Wardens of the Tide")
REAVERS = Entity(EntityId("reavers"), "faction", "Reavers of Skarn")
CULT = Entity(EntityId("cult"), "faction", "The Drowned Cult")
NOVEMBER_MS = 1_794_000_000_000

FILE = Provenance(origin="campaign_file", dm_confirmed=True)
TALK = Provenance(confidence=0.8, session_id=SessionId("s2"), at_ms=NOVEMBER_MS)


def fact(claim: Claim, visibility: Visibility = PUBLIC, provenance: Provenance = FILE) -> Fact:
    return Fact(claim.fact_id, claim, seq=1, visibility=visibility, provenance=provenance)


FACTS = (
    fact(Claim.attribute(SMITH.id, "occupation", "blacksmith")),
    fact(Claim.attribute(SMITH.id, "secret", "The anvil is hollow."), secret_of([GRIMJAW])),
    fact(Claim.relation(SMITH.id, "MEMBER_OF", WARDENS.id)),
    fact(Claim.relation(WARDENS.id, "HOSTILE_TO", REAVERS.id)),
    fact(Claim.relation(REAVERS.id, "OWES_MONEY_TO", SMITH.id), provenance=TALK),
    fact(Claim.attribute(REAVERS.id, "note", "The Reavers of Skarn land at dawn."), witnessed_by([GRIMJAW]), TALK),
    fact(
        Claim.attribute(WARDENS.id, "note", "The Wardens of the Tide have no ships."),
        Visibility.of("told", [Knower(GRIMJAW, "told", SpeakerId("tamsin"))]),
        TALK,
    ),
    fact(Claim.attribute(WARDENS.id, "leader", "Orla"), provenance=TALK).with_(status="pending"),
    fact(Claim.relation(CULT.id, "HOSTILE_TO", WARDENS.id)),
)


def a_graph() -> GraphTwin:
    """Return a graph with a cult of which only Elowen knows."""
    public = [(entity, PUBLIC) for entity in (SMITH, WARDENS, REAVERS)]
    return GraphTwin([*public, (CULT, secret_of([ELOWEN]))], FACTS)


def a_world() -> WorldTwin:
    """Return the worlds in memory with that graph."""
    return WorldTwin(a_graph())


@dataclass
class Talk:
    """Past talk's twin: everything Grimjaw heard."""

    heard: tuple[RecalledTalk, ...] = ()
    asked_for: list[NpcId] = field(default_factory=list)

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> list[RecalledTalk]:
        self.asked_for.append(npc)
        heard = [
            one
            for one in self.heard
            if query.admits(one.session_id, one.at_ms, one.speaker_name if isinstance(one, RecalledUtterance) else "")
        ]
        return heard[: query.limit] if npc == GRIMJAW else []

    def recall_nowait(self, campaign: CampaignId, npc: NpcId, query: TalkQuery) -> list[RecalledTalk] | None:
        return None


def tools_of(npc: NpcId = GRIMJAW, *, talk: Talk | None = None, tier: BudgetTier = "DEEP") -> Toolbox:
    return Toolbox(NpcMemory(SALTMERE, npc, a_world(), talk or Talk(), people={"tamsin": "Tamsin"}), tier=tier)
