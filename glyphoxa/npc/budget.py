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
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.turn import TierChoice
from glyphoxa.language.lexicon import lexicon

TIERS: tuple[BudgetTier, ...] = ("FAST", "STANDARD", "DEEP")

QUERY_ENTITIES = "memory.query_entities"
SEARCH_SESSIONS = "memory.search_sessions"
GET_SESSION_SUMMARY = "memory.get_session_summary"
SEARCH_FACTS = "memory.search_facts"

_DEEP_GAP_MS: Final = 30_000
"""Between two turns that may go deep."""
_BUSY_QUEUE: Final = 3
"""From so many waiting turns on, everyone is brief."""

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


def trigger_words(language: str, *, deep: Sequence[str] = (), standard: Sequence[str] = ()) -> TriggerWords:
    """Of a campaign's language (BCP 47), English where there are none of its own.

    Args:
        deep: Phrases besides.
        standard: Likewise.
    """
    own = lexicon("tiers", language) or lexicon("tiers", "en")
    return TriggerWords((*sorted(own.words("deep")), *deep), (*sorted(own.words("standard")), *standard))


def lower_tier(one: BudgetTier, other: BudgetTier) -> BudgetTier:
    return min(one, other, key=TIERS.index)


class TierSelector:
    """Chooses the tier of each turn of one conversation. Holds whether it has begun and when it last went deep.

    A turn may be thought of several times before it is one, so `choose` changes nothing; `took` does.

    Args:
        npc_tier: The most this NPC may ever use. An override of the DM does not lift it.
        words: What counts as asking for depth or memory; None: in English.
    """

    def __init__(self, npc_tier: BudgetTier, *, words: TriggerWords | None = None) -> None:
        self._npc_tier = npc_tier
        words = words or trigger_words("en")
        self._deep = _any_of(words.deep)
        self._standard = _any_of(words.standard)
        self._first = True
        self._last_deep_ms: int | None = None

    def choose(self, question: str, *, at_ms: int, queued: int = 0, override: BudgetTier | None = None) -> TierChoice:
        """The tier of this turn, and why."""
        wanted, reason = (override, "the DM said so") if override else self._wanted(question, at_ms, queued)
        tier = lower_tier(wanted, self._npc_tier)
        if tier != wanted:
            reason = f"{reason}; this NPC may go no deeper"
        return TierChoice(tier, reason, DEFAULT_RULES[tier].ceiling_ms, wanted)

    def took(self, choice: TierChoice, *, at_ms: int) -> None:
        """A turn of this tier is under way for good: the next is not the first."""
        self._first = False
        if choice.wanted == "DEEP":
            self._last_deep_ms = at_ms

    def _wanted(self, question: str, at_ms: int, queued: int) -> tuple[BudgetTier, str]:
        deep, standard = self._deep.search(question), self._standard.search(question)
        if deep is not None:
            if self._last_deep_ms is not None and at_ms - self._last_deep_ms < _DEEP_GAP_MS:
                return "STANDARD", f"asks for depth again: {deep[0]!r}"
            return "DEEP", f"asks for depth: {deep[0]!r}"
        if queued >= _BUSY_QUEUE:
            return "FAST", f"{queued} others wait for an answer"
        if standard is not None:
            return "STANDARD", f"asks for memory: {standard[0]!r}"
        return ("STANDARD", "the talk begins") if self._first else ("FAST", "asks for nothing more")


def _any_of(phrases: Sequence[str]) -> re.Pattern[str]:
    # Whole words: "quest" is not in "question", nor "search" in "research".
    joined = "|".join(re.escape(phrase) for phrase in phrases)
    return re.compile(rf"\b(?:{joined})\b" if joined else r"(?!)", re.IGNORECASE)


# How long the tools really take, so that a model is shown only those that fit its tier.
#
# Only calls that a model made count, for they ask what models ask. What was measured is forgotten after ten minutes: a
# tool that was too slow for every tier would otherwise never be called, and so never be measured, again.


_MOST: Final = 100
_LEAST: Final = 5
"""Calls from which there is a usual time; before that, what is declared stands for it."""
_LASTS_MS: Final = 600_000


class ToolLatencies:
    """See the module. One for all NPCs of a table: they ask the same memory."""

    def __init__(self) -> None:
        self._calls: dict[str, deque[tuple[int, int]]] = {}

    def took(self, tool: str, took_ms: int, *, at_ms: int) -> None:
        """A call was answered, or was cut when it had lasted so long."""
        self._calls.setdefault(tool, deque(maxlen=_MOST)).append((at_ms, took_ms))

    def usual_ms(self, tool: str, *, declared_ms: int, at_ms: int) -> int:
        """The median of the newest calls; what is declared while there are too few.

        Args:
            at_ms: Now, by the same clock as the calls.
        """
        newest = [took_ms for called_ms, took_ms in self._calls.get(tool, ()) if at_ms - called_ms < _LASTS_MS]
        return declared_ms if len(newest) < _LEAST else round(median(newest))
