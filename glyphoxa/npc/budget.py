"""How long an NPC may look into its memory, and therefore which tools its model is shown.

A model that is asked to be quick is not quick; a tool it cannot see, it cannot call. So a tier is kept by what is
declared, and a call that is under way is cut at the tier's ceiling. The lower of two tiers holds: the NPC's own
and the one the question asks for.

The question's tier, in this order: the DM's override; a word that asks for depth (a second one within half a
minute only earns STANDARD); a queue of three or more, which makes everyone brief; a word that asks for memory; the
first turn of a conversation; else FAST. Words are given per language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from glyphoxa.domain.campaign import BudgetTier

TIERS: tuple[BudgetTier, ...] = ("FAST", "STANDARD", "DEEP")

QUERY_ENTITIES = "memory.query_entities"
SEARCH_SESSIONS = "memory.search_sessions"
GET_SESSION_SUMMARY = "memory.get_session_summary"
SEARCH_FACTS = "memory.search_facts"

MEMORY_TOOLS = (QUERY_ENTITIES, SEARCH_SESSIONS, GET_SESSION_SUMMARY, SEARCH_FACTS)


@dataclass(frozen=True, slots=True)
class TierRule:
    """What a tier allows.

    Attributes:
        ceiling_ms: A tool call that takes longer is cut. Calls side by side cost the longest, not the sum.
        tools: The only tools that are declared.
        looks_around: Talk may be searched around an entity as well, where the graph can.
    """

    ceiling_ms: int
    tools: tuple[str, ...]
    looks_around: bool = False


DEFAULT_RULES: Mapping[BudgetTier, TierRule] = {
    "FAST": TierRule(500, (QUERY_ENTITIES,)),
    "STANDARD": TierRule(1_500, MEMORY_TOOLS),
    "DEEP": TierRule(4_000, MEMORY_TOOLS, looks_around=True),
}


@dataclass(frozen=True, slots=True)
class TriggerWords:
    """Phrases that ask for more than a quick answer, in one language."""

    deep: tuple[str, ...]
    standard: tuple[str, ...]


ENGLISH = TriggerWords(
    deep=(
        "think carefully",
        "take your time",
        "explain everything",
        "tell me everything",
        "in detail",
        "deep search",
        "generate image",
        "search the web",
    ),
    standard=(
        "remember",
        "last time",
        "do you recall",
        "previously",
        "what happened",
        "search",
        "look up",
        "rules",
        "how does",
        "what are the rules",
        "who is",
        "who was",
        "tell me about",
        "history of",
        "quest",
    ),
)


def lower_tier(one: BudgetTier, other: BudgetTier) -> BudgetTier:
    return min(one, other, key=TIERS.index)


class TierSelector:
    """Picks the tier of each turn of one conversation. Holds whether it has begun and when it last went deep.

    Args:
        npc_tier: The most this NPC may ever use. An override of the DM does not lift it.
        words: What counts as asking for depth or memory.
        deep_gap_ms: Between two turns that may go deep.
        busy_queue: From so many waiting turns on, everyone is brief.
    """

    def __init__(
        self,
        npc_tier: BudgetTier,
        *,
        words: TriggerWords = ENGLISH,
        deep_gap_ms: int = 30_000,
        busy_queue: int = 3,
    ) -> None:
        self._npc_tier = npc_tier
        self._deep = _any_of(words.deep)
        self._standard = _any_of(words.standard)
        self._deep_gap_ms = deep_gap_ms
        self._busy_queue = busy_queue
        self._first = True
        self._last_deep_ms: int | None = None

    def select(self, question: str, *, at_ms: int, queued: int = 0, override: BudgetTier | None = None) -> BudgetTier:
        """The tier of this turn, and the next one is no longer the first."""
        wanted = override or self._wanted(question, at_ms, queued)
        self._first = False
        return lower_tier(wanted, self._npc_tier)

    def reset(self) -> None:
        """A new conversation: the first turn is the first again, and depth is free."""
        self._first = True
        self._last_deep_ms = None

    def _wanted(self, question: str, at_ms: int, queued: int) -> BudgetTier:
        if self._deep.search(question):
            if self._last_deep_ms is not None and at_ms - self._last_deep_ms < self._deep_gap_ms:
                return "STANDARD"
            self._last_deep_ms = at_ms
            return "DEEP"
        if queued >= self._busy_queue:
            return "FAST"
        return "STANDARD" if self._first or self._standard.search(question) else "FAST"


def _any_of(phrases: Sequence[str]) -> re.Pattern[str]:
    # Whole words: "quest" is not in "question", nor "search" in "research".
    joined = "|".join(re.escape(phrase) for phrase in phrases)
    return re.compile(rf"\b(?:{joined})\b" if joined else r"(?!)", re.IGNORECASE)
