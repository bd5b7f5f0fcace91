"""An NPC's memory tools for callers outside: the very functions that its own model calls, in the NPC's name."""

from __future__ import annotations

from functools import partial
from typing import Final

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.campaign import BudgetTier, Campaign
from glyphoxa.domain.ids import NpcId
from glyphoxa.mcp_server.offered import OfferedTool
from glyphoxa.npc.look_ups import MemoryOf
from glyphoxa.npc.tools import MemoryTools
from glyphoxa.recall.around import RecallAround
from glyphoxa.recall.recall import RecallSettings

TIER: Final[BudgetTier] = "DEEP"
"""Nobody waits at a table for these answers."""

PATIENT: Final = RecallSettings(
    deadline_ms=3_000, patient_embed_deadline_ms=2_000, refresh_deadline_ms=10_000, summaries_deadline_ms=2_000
)
"""Within what a tool of that tier may take; the first question reads the talk of years."""


def memory_of(store: Store, campaign: Campaign, npc: NpcId) -> MemoryOf:
    return MemoryOf(
        campaign.id,
        npc,
        store.graph,
        store.past_talk,
        store.summaries,
        campaign.npc(npc).name,
        campaign.language,
        around=RecallAround.of(store.graph_rag, store.past_talk.vectors),
    )


def memory_tools(memory: MemoryOf) -> list[OfferedTool]:
    """All four. Who asks is settled here, and no argument of a call changes it."""
    tools = MemoryTools(memory, tier=TIER)
    return [OfferedTool(spec, partial(tools.ask, spec.name)) for spec in tools.declared]
