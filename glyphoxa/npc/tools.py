"""What an NPC's model may look up by itself while it answers, in this process and within its tier's time.

Pre-fetch is the way memory usually reaches a prompt; these tools are for what it did not foresee: three sessions
ago, a distant place, one certain conversation. A tool never ends a turn: whatever happens inside it, the
model gets a short answer it can go on with, `{"found": [...], "note": "..."}`. Everything is asked in the name of one
NPC, so it sees what that NPC may see and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Final

from loguru import logger

from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, Unavailable, did_you_mean
from glyphoxa.domain.turn import LookUp
from glyphoxa.npc.budget import (
    DEFAULT_RULES,
    GET_SESSION_SUMMARY,
    QUERY_ENTITIES,
    SEARCH_FACTS,
    SEARCH_SESSIONS,
    TierRule,
    lower_tier,
)
from glyphoxa.npc.look_ups import LookUps, MemoryOf
from glyphoxa.npc.tool_answers import Found, nothing
from glyphoxa.npc.tool_arguments import noted
from glyphoxa.npc.tool_latency import ToolLatencies
from glyphoxa.npc.tool_spec import ToolSpec


def _text(description: str) -> Mapping[str, object]:
    return {"type": "string", "description": description}


SPECS: Mapping[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        ToolSpec(
            QUERY_ENTITIES,
            "Look up a person, place, thing or group you know of, and how it is related to others.",
            {
                "name": _text("Its name, or what it is called"),
                "type": _text("npc, player, location, item, faction, event, quest or concept"),
                "relation": _text("Only this kind of relation, e.g. ALLIED_WITH"),
            },
            (),
            100,
        ),
        ToolSpec(
            SEARCH_SESSIONS,
            "Search what others have said to you, in all sessions. For what you said: ask for your own words.",
            {"query": _text("What it was about")},
            ("query",),
            300,
        ),
        ToolSpec(
            GET_SESSION_SUMMARY,
            "The summary of one earlier session.",
            {"session": _text("The session's id, as other tools name it")},
            ("session",),
            55,
        ),
        ToolSpec(
            SEARCH_FACTS,
            "Find facts and events you know of, and what others said of them, if you like only within a time.",
            {
                "query": _text("What the fact is about"),
                "after": _text("Only what was said at or after this ISO 8601 time"),
                "before": _text("Only what was said before this ISO 8601 time"),
            },
            ("query",),
            200,
        ),
    )
}


_AROUND: Final = _text(
    "Only talk of this person, place or group and of whoever is related to it: for what is said of a group's people"
)


class MemoryTools:
    """The tool-call handler of one NPC, the same for every engine.

    Args:
        memory: What is asked, and for whom.
        tier: What this NPC's model sees at the most, and how long one call may take.
        rules: What the tiers mean.
        tell: Is told of every call that was answered; returns at once.
        latencies: How long calls took before.
    """

    def __init__(
        self,
        memory: MemoryOf,
        *,
        tier: BudgetTier,
        rules: Mapping[BudgetTier, TierRule] = DEFAULT_RULES,
        tell: Callable[[LookUp], None] = lambda _: None,
        latencies: ToolLatencies | None = None,
    ) -> None:
        self._memory = memory
        self._tier = tier
        self._rules = rules
        self._rule = rules[tier]
        self._tell = tell
        self._latencies = latencies or ToolLatencies()
        self._answers: dict[str, tuple[int, Found]] | None = None

    def at(self, tier: BudgetTier) -> MemoryTools:
        """The same for one turn of this tier, or of the NPC's own if that is lower. What was found is given again to
        the same call, for as long as the tool declares.
        """
        limited = copy(self)
        limited._tier = lower_tier(tier, self._tier)
        limited._rule = self._rules[limited._tier]
        limited._answers = {}
        return limited

    @property
    def declared(self) -> tuple[ToolSpec, ...]:
        """The tools of this tier that usually answer within its ceiling, in the order in which they are shown."""
        return tuple(spec for spec in self._allowed() if self._usual_ms(spec) <= self._rule.ceiling_ms)

    def _allowed(self) -> tuple[ToolSpec, ...]:
        specs = (SPECS[name] for name in self._rule.tools)
        if self._memory.around is None or not self._rule.looks_around:
            return tuple(specs)
        return tuple(
            replace(spec, parameters={**spec.parameters, "around": _AROUND}) if spec.name == SEARCH_SESSIONS else spec
            for spec in specs
        )

    @property
    def ceiling_ms(self) -> int:
        return self._rule.ceiling_ms

    async def call(self, name: str, arguments: Mapping[str, object]) -> Found:
        """Answer a model's call, under either of the tool's names. Never raises, never outlasts the ceiling."""
        as_noted = {key: noted(value) for key, value in arguments.items()}
        call = f"{name} {sorted(as_noted.items())}"
        began_ms = _clock_ms()
        until_ms, answer = (self._answers or {}).get(call, (0, nothing("")))
        if began_ms >= until_ms:
            answer = await self._answer(name, arguments, call)
        self._tell(LookUp(name, as_noted, answer, _clock_ms() - began_ms))
        return answer

    async def _answer(self, name: str, arguments: Mapping[str, object], call: str) -> Found:
        began_ms = _clock_ms()
        try:
            answer = await self.ask(name, arguments)
        except TimeoutError:
            self._took(name, began_ms)
            logger.warning("tool {} of {} took more than {} ms", name, self._memory.npc, self._rule.ceiling_ms)
            return nothing("too slow: answer from what you already know")
        except InvalidInput as wrong:
            return nothing(str(wrong))
        except Unavailable as away:  # the table has been told
            logger.debug("tool {} of {}: {}", name, self._memory.npc, away)
        except GlyphoxaError as failed:
            logger.warning("tool {} of {} failed: {}", name, self._memory.npc, failed)
        except Exception:
            # The edge between a tool and a turn: a bug in a look-up costs that look-up, never the NPC's answer.
            logger.exception("tool {} of {} broke", name, self._memory.npc)
        else:
            self._took(name, began_ms)
            if self._answers is not None:
                self._answers[call] = (_clock_ms() + _spec_of(name).lasts_ms, answer)
            return answer
        return nothing("memory cannot be reached now: answer from what you already know")

    async def ask(self, name: str, arguments: Mapping[str, object]) -> Found:
        """As `call`, for a caller that is to hear what is wrong. Not recorded.

        Raises:
            InvalidInput: There is no such tool, or an argument is missing or of another kind.
            TimeoutError: It took longer than the ceiling.
            GlyphoxaError: Memory cannot answer.
        """
        allowed = self._allowed()
        spec = next((spec for spec in allowed if name in (spec.name, spec.wire_name)), None)
        if spec is None:
            raise NotFound(f"there is no tool {name!r}; " + did_you_mean(name, (s.wire_name for s in allowed)))
        async with asyncio.timeout(self._rule.ceiling_ms / 1_000):
            return await LookUps(self._memory, self._tier, self._rule).answer(spec.name, arguments)

    def _took(self, name: str, began_ms: int) -> None:
        now_ms = _clock_ms()
        self._latencies.took(_spec_of(name).name, now_ms - began_ms, at_ms=now_ms)

    def _usual_ms(self, spec: ToolSpec) -> int:
        return self._latencies.usual_ms(spec.name, declared_ms=spec.estimated_ms, at_ms=_clock_ms())


def _spec_of(name: str) -> ToolSpec:
    return next(spec for spec in SPECS.values() if name in (spec.name, spec.wire_name))


def _clock_ms() -> int:
    return time.monotonic_ns() // 1_000_000
