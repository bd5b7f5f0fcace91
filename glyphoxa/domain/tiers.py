"""Budget tiers of an NPC: the tools of memory that its model sees, and their time limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from glyphoxa.domain.campaign import BudgetTier

TIERS: tuple[BudgetTier, ...] = ("FAST", "STANDARD", "DEEP")

MemoryTool: TypeAlias = Literal[
    "memory.query_entities", "memory.search_sessions", "memory.get_session_summary", "memory.search_facts"
]
QUERY_ENTITIES: Final = "memory.query_entities"
SEARCH_SESSIONS: Final = "memory.search_sessions"
GET_SESSION_SUMMARY: Final = "memory.get_session_summary"
SEARCH_FACTS: Final = "memory.search_facts"
MEMORY_TOOLS: Final[tuple[MemoryTool, ...]] = (QUERY_ENTITIES, SEARCH_SESSIONS, GET_SESSION_SUMMARY, SEARCH_FACTS)


@dataclass(frozen=True, slots=True)
class TierRule:
    """The limits of a tier.

    Attributes:
        ceiling_ms: Limit for a tool call. Parallel calls take as long as the longest, not the sum.
        tools: The declared tools of memory.
        can_search_around: Whether talk may also be searched around an entity.
    """

    ceiling_ms: int
    tools: tuple[MemoryTool, ...]
    can_search_around: bool = False


TIER_RULES: Mapping[BudgetTier, TierRule] = {
    "FAST": TierRule(500, (QUERY_ENTITIES,)),
    "STANDARD": TierRule(1_500, MEMORY_TOOLS),
    "DEEP": TierRule(4_000, MEMORY_TOOLS, can_search_around=True),
}


def lower_tier(one: BudgetTier, other: BudgetTier) -> BudgetTier:
    return min(one, other, key=TIERS.index)
