"""The tools that an NPC's model may call while it answers: memory tools, and tools of external servers.

Memory usually reaches a prompt by pre-fetch. Its tools cover the rest: three sessions ago, a distant place, one
particular conversation. A call ends within the tier's time and never ends a turn: whatever happens, the model gets a
short result, `{"found": [...], "note": "..."}`, which is recorded with the turn.

A model does not obey a request to be quick, but it cannot call a tool that it cannot see. A tier therefore limits the
declared tools, and cuts a running call at its ceiling. The lower of two tiers applies: the NPC's own and the
question's.

The question's tier is the first that applies: a word that asks for depth (within half a minute after another one only
STANDARD); a queue of three or more turns (FAST); a word that asks for memory; the first turn of a conversation; else
FAST. The words depend on the language.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from statistics import median
from typing import Final

from loguru import logger

from glyphoxa.domain.budgets import MEMORY_TOOLS, TIER_RULES, TierRule, lower_tier
from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, Unavailable, did_you_mean
from glyphoxa.domain.turn_record import LookUp, TierChoice
from glyphoxa.language.language_data import any_of, lexicon
from glyphoxa.npc.memory_tools import NpcMemory, tools_of_tier
from glyphoxa.npc.tool_spec import CallableTool, Found, ToolSpec, noted, nothing

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


SLOW_MS: Final = 700
"""After this time, a filler tells the player that the NPC is still there."""


@dataclass(eq=False, repr=False)
class Toolbox:
    """The tools that one NPC's model sees, and their handler, for every engine.

    Args:
        memory: None without long-term memory.
        outside: External tools. Those slower than the tier allows are not declared and cannot be called.
        tier: Highest tier of this NPC's model.
        rules: Limits of the tiers.
        tell: Receives every answered call; must return at once.
        tell_slow: Called when a call has taken `SLOW_MS`; must return at once.
        latencies: Measured durations of memory tools.
    """

    memory: NpcMemory | None
    outside: Sequence[CallableTool] = ()
    _: KW_ONLY
    tier: BudgetTier
    rules: Mapping[BudgetTier, TierRule] = field(default_factory=lambda: TIER_RULES)
    tell: Callable[[LookUp], None] = lambda _: None
    tell_slow: Callable[[], None] = lambda: None
    latencies: ToolLatencies = field(default_factory=ToolLatencies)
    _answered: list[str] = field(default_factory=list)  # shared by the objects that `at` returns
    _kept: dict[str, tuple[int, Found]] | None = None

    def __post_init__(self) -> None:
        self._rule = self.rules[self.tier]
        own = [] if self.memory is None else tools_of_tier(self.memory, self.tier, self._rule)
        fast = [tool for tool in self.outside if tool.spec.estimated_ms <= self._rule.ceiling_ms]
        self._tools = {tool.spec.wire_name: tool for tool in (*own, *fast)}

    @property
    def n_answered(self) -> int:
        """How many external tool calls have returned a result."""
        return len(self._answered)

    def at(self, tier: BudgetTier) -> Toolbox:
        """Return the tools for one turn, with this tier or the NPC's own if lower.

        They cache the results of equal calls of memory for as long as the tool declares.
        """
        return replace(self, tier=lower_tier(tier, self.tier), _kept={})

    @property
    def declared(self) -> tuple[ToolSpec, ...]:
        """The tools of this tier that usually answer within its ceiling, in declared order."""
        specs = (tool.spec for tool in self._tools.values())
        return tuple(spec for spec in specs if self._usual_ms(spec) <= self._rule.ceiling_ms)

    async def call(self, name: str, arguments: Mapping[str, object]) -> Found:
        """Answer a model's call by either tool name. Never raises and never exceeds the ceiling."""
        loop = asyncio.get_running_loop()
        began_s, as_noted = loop.time(), {key: noted(value) for key, value in arguments.items()}
        call = f"{name} {sorted(as_noted.items())}"
        slow = loop.call_later(SLOW_MS / 1_000, self.tell_slow)
        try:
            until_ms, answer = (self._kept or {}).get(call, (0, nothing("")))
            if _clock_ms() >= until_ms:
                answer = await self._answer(name, arguments, call)
        finally:
            slow.cancel()
        self.tell(LookUp(name, as_noted, answer, round((loop.time() - began_s) * 1_000)))
        return answer

    async def _answer(self, name: str, arguments: Mapping[str, object], call: str) -> Found:
        tool, began_ms = self._called(name), _clock_ms()
        of_memory = tool is None or _is_of_memory(tool.spec)
        instead = "answer from what you already know" if of_memory else "answer without it, and do not invent a result"
        try:
            answer = await self.ask(name, arguments)
        except TimeoutError:
            self._took(tool, began_ms)
            logger.warning("tool {} took more than {} ms", name, self._rule.ceiling_ms)
            return nothing(f"too slow: {instead}")
        except InvalidInput as wrong:
            return nothing(str(wrong))
        except Unavailable as away:
            # The table has already reported that memory is away.
            logger.log("DEBUG" if of_memory else "WARNING", "tool {}: {}", name, away)
        except GlyphoxaError as failed:
            logger.warning("tool {} failed: {}", name, failed)
        except Exception:
            # A bug in a look-up or of an external server must not cost the NPC its answer.
            logger.exception("tool {} raised an error", name)
        else:
            self._took(tool, began_ms)
            if tool is not None and not of_memory and answer["found"]:
                self._answered.append(tool.spec.name)
            if tool is not None and of_memory and self._kept is not None:
                self._kept[call] = (_clock_ms() + tool.spec.lasts_ms, answer)
            return answer
        return nothing(f"{'memory' if of_memory else 'it'} is unavailable now: {instead}")

    async def ask(self, name: str, arguments: Mapping[str, object]) -> Found:
        """Answer a call as `call` does, but raise errors. The call is not recorded.

        Raises:
            InvalidInput: Unknown tool, or a missing or wrong argument.
            TimeoutError: It exceeded the ceiling.
            GlyphoxaError: Memory or a server failed.
        """
        if (tool := self._called(name)) is None:
            raise NotFound(f"there is no tool {name!r}; " + did_you_mean(name, self._tools))
        async with asyncio.timeout(self._rule.ceiling_ms / 1_000):
            return await tool.call(arguments)

    def _called(self, name: str) -> CallableTool | None:
        return next((tool for tool in self._tools.values() if name in (tool.spec.name, tool.spec.wire_name)), None)

    def _took(self, tool: CallableTool | None, began_ms: int) -> None:
        if tool is not None:
            now_ms = _clock_ms()
            self.latencies.took(tool.spec.name, now_ms - began_ms, at_ms=now_ms)

    def _usual_ms(self, spec: ToolSpec) -> int:
        if not _is_of_memory(spec):
            return spec.estimated_ms
        return self.latencies.usual_ms(spec.name, declared_ms=spec.estimated_ms, at_ms=_clock_ms())


def _is_of_memory(spec: ToolSpec) -> bool:
    return spec.name in MEMORY_TOOLS


def _clock_ms() -> int:
    return time.monotonic_ns() // 1_000_000
