"""All tools that an NPC's model may call: memory tools, and tools of external servers.

An external tool is called within the tier's time limit, and its failure costs the turn only that call. Its results are
recorded with the turn, like memory look-ups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Final, Protocol

from loguru import logger

from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.errors import GlyphoxaError, did_you_mean
from glyphoxa.domain.turn import LookUp
from glyphoxa.judgement.safety import SafetyTopics
from glyphoxa.npc.budget import DEFAULT_RULES, TierRule
from glyphoxa.npc.memory_tools import Found, MemoryTools, nothing
from glyphoxa.npc.tool_spec import ToolSpec, noted

SLOW_MS: Final = 700
"""After this time, a filler tells the player that the NPC is still there."""


class CallableTools(Protocol):
    """The tools that a model sees, and their handler."""

    @property
    def declared(self) -> Sequence[ToolSpec]: ...

    @property
    def n_answered(self) -> int:
        """How many external tool calls have returned a result."""
        ...

    def at(self, tier: BudgetTier) -> CallableTools:
        """Return the tools for one turn, with this tier or the NPC's own if lower."""
        ...

    async def call(self, name: str, arguments: Mapping[str, object]) -> Found:
        """Answer a call. Never raises and never exceeds the tier's ceiling."""
        ...


@dataclass(frozen=True, slots=True)
class OutsideTool:
    """A tool of an external server.

    Attributes:
        ask: Calls the server; raises a `GlyphoxaError` on failure.
        safety: Topics that no answer contains.
    """

    spec: ToolSpec
    ask: Callable[[Mapping[str, object]], Awaitable[Found]]
    safety: SafetyTopics = field(default_factory=SafetyTopics)


class Toolbox:
    """Implements `CallableTools` for one NPC.

    Args:
        memory: None without long-term memory.
        outside: External tools. Those slower than the tier allows are not declared.
        tell: Receives every answered external call; must return at once. `MemoryTools` reports its own.
        tell_slow: Called when a call has taken `SLOW_MS`; must return at once.
    """

    def __init__(
        self,
        memory: MemoryTools | None,
        outside: Sequence[OutsideTool],
        *,
        rule: TierRule,
        tell: Callable[[LookUp], None],
        tell_slow: Callable[[], None],
    ) -> None:
        self._memory = memory
        self._outside = {tool.spec.wire_name: tool for tool in outside if tool.spec.estimated_ms <= rule.ceiling_ms}
        self._ceiling_ms = rule.ceiling_ms
        self._tell = tell
        self._tell_slow = tell_slow
        self._answered: list[str] = []  # shared by the objects that `at` returns

    @property
    def n_answered(self) -> int:
        """See `CallableTools.n_answered`."""
        return len(self._answered)

    def at(self, tier: BudgetTier) -> Toolbox:
        """See `CallableTools.at`."""
        limited = copy(self)
        limited._memory = self._memory.at(tier) if self._memory is not None else None
        limited._ceiling_ms = min(self._ceiling_ms, DEFAULT_RULES[tier].ceiling_ms)
        limited._outside = {
            name: tool for name, tool in self._outside.items() if tool.spec.estimated_ms <= limited._ceiling_ms
        }
        return limited

    @property
    def declared(self) -> tuple[ToolSpec, ...]:
        of_memory = self._memory.declared if self._memory is not None else ()
        return (*of_memory, *(tool.spec for tool in self._outside.values()))

    async def call(self, name: str, arguments: Mapping[str, object]) -> Found:
        slow = asyncio.get_running_loop().call_later(SLOW_MS / 1_000, self._tell_slow)
        try:
            if name in self._outside:
                return await self._call_outside(self._outside[name], name, arguments)
            if self._memory is not None:
                return await self._memory.call(name, arguments)
            return nothing(f"there is no tool {name!r}; " + did_you_mean(name, self._outside))
        finally:
            slow.cancel()

    async def _call_outside(self, tool: OutsideTool, name: str, arguments: Mapping[str, object]) -> Found:
        now = asyncio.get_running_loop().time
        began = now()
        answer = await self._answer(tool, arguments)
        if answer["found"]:
            self._answered.append(tool.spec.name)
        self._tell(LookUp(name, {key: noted(value) for key, value in arguments.items()}, answer, _ms(now() - began)))
        return answer

    async def _answer(self, tool: OutsideTool, arguments: Mapping[str, object]) -> Found:
        try:
            async with asyncio.timeout(self._ceiling_ms / 1_000):
                return dict(tool.safety.allowed_in(await tool.ask(arguments)))
        except TimeoutError:
            logger.warning("tool {} took more than {} ms", tool.spec.name, self._ceiling_ms)
            return nothing("too slow: answer without it, and do not invent a result")
        except GlyphoxaError as failed:
            logger.warning("tool {}: {}", tool.spec.name, failed)
        except Exception:
            # An error of an external server must not cost the turn.
            logger.exception("tool {} raised an error", tool.spec.name)
        return nothing("it is unavailable now: answer without it, and do not invent a result")


def _ms(seconds: float) -> int:
    return round(seconds * 1_000)
