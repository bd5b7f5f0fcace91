"""Budgets of an NPC, limits of its tier, and defaults that settings and the objects behind them share.

Settings and the profiles of models choose the budgets: the layout of a prompt, the tools of memory and their time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from glyphoxa.domain.campaign import BudgetTier

Role = Literal["system", "user", "assistant"]
Position = Literal["question", "depth"]
"""Whether recalled items are in the question's message, or in a message of their own at a depth."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of recalled items in the prompt.

    Attributes:
        depth: In a message of its own, with that many messages of the transcript after it. 0 is after the question, and
            a number above the number of messages is before the transcript, after the examples. None: in the question's
            message, after it.
        role: Role of that message. Past utterances never have the role `system`: they follow, as the user's.
    """

    depth: int | None = None
    role: Role = "system"


BEHIND_THE_QUESTION: Final = Placement()
BEFORE_THE_TALK: Final = 9999
"""A depth greater than any number of messages."""


PERSONA_TOKENS = 300
"""Budget of an NPC's text by its author. Beyond that, a small model's 2,048 tokens leave little for the transcript."""
STANDING_TOKENS = 800
"""Persona, frame and examples of an NPC, which precede the parts with budgets, and its reply."""
GLOSSARY_TOKENS = 298
"""Room for a glossary in a small model's 2,048 tokens, beside the above and its budgets."""
BUDGETS = ("identity_tokens", "scene_tokens", "bible_tokens", "past_tokens", "facts_tokens", "history_tokens")
"""The fields of `Budgets` that a model's profile sets."""
_TOKENS_A_LINE = 22
"""A line of transcript at a table, with its speaker."""
_SHORTEST_LINE = 12
_LEAST_RECALLED = 15


@dataclass(frozen=True, slots=True)
class Budgets:
    """
    Attributes:
        identity_tokens: An NPC's knowledge of itself, and each secret it has in mind. A small local model gets few,
            because they weaken its voice.
        scene_tokens: The line with the NPC's place. From 100 it contains more, see `glyphoxa.prompt.scene`.
        bible_tokens: The campaign's bible, see `glyphoxa.prompt.identity`.
        glossary_tokens: The room that all other budgets leave in the model's window. A longer glossary is reduced to
            terms that occur in the prompt.
        past_tokens: The summaries of earlier sessions, see `glyphoxa.prompt.scene`.
        facts_tokens: Recalled and looked-up sentences together, tokens of 4 characters. A small model uses few; a large
            one's budget covers nearly everything that is found at all (94 % of LoCoMo's questions in 1,500).
        max_facts: The same in lines; None: as many as usually fit.
        history_tokens: The transcript with its summary.
        summary_tokens: That summary.
        window_tokens: The whole prompt, counted by `tokens_at_most`.
    """

    identity_tokens: int = 120
    scene_tokens: int = 60
    bible_tokens: int = 120
    glossary_tokens: int = GLOSSARY_TOKENS
    past_tokens: int = 60
    facts_tokens: int = 90
    max_facts: int | None = None
    history_tokens: int = 500
    summary_tokens: int = 125
    window_tokens: int = 1_928
    recall_deadline_ms: int = 50

    @property
    def most_facts(self) -> int:
        return self.facts_tokens // _TOKENS_A_LINE if self.max_facts is None else self.max_facts

    @property
    def max_recalled(self) -> int:
        """Utterances to request from memory, from which these are selected."""
        return max(_LEAST_RECALLED, self.facts_tokens // _SHORTEST_LINE)


_TIERS: tuple[BudgetTier, ...] = ("FAST", "STANDARD", "DEEP")

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
    return min(one, other, key=_TIERS.index)


# Defaults of settings that the objects behind them use, too.

GAP_MS: Final = 300
"""Silence between the replies of two NPCs."""
BARGE_IN_MS: Final = 250
"""How long a player must speak to interrupt an NPC."""
SUMMARY_TOKENS: Final = 200
"""Length of a summary."""
CHECK_EVERY: Final = 20
"""Utterances after which the chronicle judges them again."""
CHECK_MINUTES: Final = 30
"""Time between two comparisons of the spool with the transcript log."""
