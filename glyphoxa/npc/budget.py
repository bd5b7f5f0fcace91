"""Chooses an NPC's time budget for memory, and thereby the tools that its model sees.

A model does not obey a request to be quick, but it cannot call a tool that it cannot see. A tier therefore limits the
declared tools, and cuts a running call at its ceiling. The lower of two tiers applies: the NPC's own and the
question's.

The question's tier is the first that applies: a word that asks for depth (within half a minute after another one only
STANDARD); a queue of three or more turns (FAST); a word that asks for memory; the first turn of a conversation; else
FAST. The words depend on the language.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from statistics import median
from typing import Final

from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.tiers import TIER_RULES, lower_tier
from glyphoxa.domain.turn import TierChoice
from glyphoxa.language.lexicon import any_of, lexicon

_DEEP_GAP_MS: Final = 30_000
"""Minimum time between two DEEP turns."""
_BUSY_QUEUE: Final = 3
"""From this many waiting turns on, all answers are brief."""


class TierSelector:
    """Chooses the tier of each turn of one conversation. Stores whether it has begun and when it last went deep.

    A turn may be generated several times before it is committed, so `choose` has no side effect; `took` records it.

    Args:
        npc_tier: The NPC's highest tier.
        language: BCP 47 tag of the phrases that ask for depth or memory, with English as fallback.
        deep: Additional phrases.
        standard: Additional phrases.
    """

    def __init__(
        self, npc_tier: BudgetTier, *, language: str = "en", deep: Sequence[str] = (), standard: Sequence[str] = ()
    ) -> None:
        self._npc_tier = npc_tier
        own = lexicon("tiers", language) or lexicon("tiers", "en")
        self._deep = _any_of((*own.words("deep"), *deep))
        self._standard = _any_of((*own.words("standard"), *standard))
        self._first = True
        self._last_deep_ms: int | None = None

    def choose(self, question: str, *, at_ms: int, queued: int = 0) -> TierChoice:
        """Return the tier of this turn, and the reason."""
        wanted, reason = self._wanted(question, at_ms, queued)
        tier = lower_tier(wanted, self._npc_tier)
        if tier != wanted:
            reason = f"{reason}; limited by this NPC's tier"
        return TierChoice(tier, reason, TIER_RULES[tier].ceiling_ms, wanted)

    def took(self, choice: TierChoice, *, at_ms: int) -> None:
        """Record that a turn of this tier was committed."""
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
            return "FAST", f"{queued} others are waiting"
        if standard is not None:
            return "STANDARD", f"asks for memory: {standard[0]!r}"
        return ("STANDARD", "first turn of the conversation") if self._first else ("FAST", "needs nothing more")


def _any_of(phrases: Sequence[str]) -> re.Pattern[str]:
    # Match whole words: "quest" is not in "question", nor "search" in "research".
    return re.compile(rf"\b(?:{any_of(phrases)})\b", re.IGNORECASE)


# Measured durations of tools, so that a model sees only those that fit its tier.
#
# Only calls by a model count, because their arguments are typical. Measurements expire after ten minutes. Otherwise a
# tool that was too slow for every tier would never be called, and therefore never be measured, again.


_MOST: Final = 100
_MIN_CALLS: Final = 5
"""Calls needed for a median; before that the declared estimate applies."""
_LASTS_MS: Final = 600_000


class ToolLatencies:
    """Durations of tool calls. One for all NPCs of a table, because they use the same memory."""

    def __init__(self) -> None:
        self._calls: dict[str, deque[tuple[int, int]]] = {}

    def took(self, tool: str, took_ms: int, *, at_ms: int) -> None:
        """Record a call that was answered, or cut after this time."""
        self._calls.setdefault(tool, deque(maxlen=_MOST)).append((at_ms, took_ms))

    def usual_ms(self, tool: str, *, declared_ms: int, at_ms: int) -> int:
        """Return the median of recent calls, or the declared estimate if there are too few.

        Args:
            at_ms: Now, by the clock of the calls.
        """
        newest = [took_ms for called_ms, took_ms in self._calls.get(tool, ()) if at_ms - called_ms < _LASTS_MS]
        return declared_ms if len(newest) < _MIN_CALLS else round(median(newest))
