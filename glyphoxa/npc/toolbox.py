"""All tools that an NPC's model may call while it answers: memory tools, and tools of external servers.

Memory usually reaches a prompt by pre-fetch. Its tools cover the rest: three sessions ago, a distant place, one
particular conversation. A call ends within the tier's time and never ends a turn: whatever happens, the model gets a
short result, `{"found": [...], "note": "..."}`, which is recorded with the turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Final

from loguru import logger

from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, Unavailable, did_you_mean
from glyphoxa.domain.tiers import MEMORY_TOOLS, TIER_RULES, TierRule, lower_tier
from glyphoxa.domain.turn import LookUp
from glyphoxa.npc.budget import ToolLatencies
from glyphoxa.npc.memory_tools import NpcMemory, tools_of_tier
from glyphoxa.npc.tool_spec import CallableTool, Found, ToolSpec, noted, nothing

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
