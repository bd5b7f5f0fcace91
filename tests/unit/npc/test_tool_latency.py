"""A tool is shown where it usually answers in time, by what calls really took."""

from __future__ import annotations

from glyphoxa.npc.memory_tools import NpcMemory
from glyphoxa.npc.toolbox import Toolbox, ToolLatencies
from tests.support.memory_twins import GRIMJAW, SALTMERE, Talk, a_world

MINUTE_MS = 60_000


def test_declared_latency_counts_until_five_calls_are_measured() -> None:
    latencies = ToolLatencies()
    for _ in range(4):
        latencies.took("t", 900, at_ms=0)
    assert latencies.usual_ms("t", declared_ms=100, at_ms=0) == 100
    latencies.took("t", 900, at_ms=0)
    assert latencies.usual_ms("t", declared_ms=100, at_ms=0) == 900


def test_one_slow_call_does_not_change_the_usual_latency() -> None:
    latencies = ToolLatencies()
    for took_ms in (20, 4_000, 20, 20, 20):
        latencies.took("t", took_ms, at_ms=0)
    assert latencies.usual_ms("t", declared_ms=100, at_ms=0) == 20


def test_slow_tool_is_retried_after_ten_minutes() -> None:
    latencies = ToolLatencies()
    for _ in range(9):
        latencies.took("t", 9_000, at_ms=0)
    assert latencies.usual_ms("t", declared_ms=100, at_ms=9 * MINUTE_MS) == 9_000
    assert latencies.usual_ms("t", declared_ms=100, at_ms=10 * MINUTE_MS) == 100


class Slow(ToolLatencies):
    """Facts take as long as nobody waits for in STANDARD."""

    def usual_ms(self, tool: str, *, declared_ms: int, at_ms: int) -> int:
        return 2_000 if tool == "memory.search_facts" else declared_ms


def test_a_tool_that_is_too_slow_for_a_tier_is_shown_in_a_deeper_one() -> None:
    tools = Toolbox(NpcMemory(SALTMERE, GRIMJAW, a_world(), Talk()), tier="DEEP", latencies=Slow())
    assert "memory.search_facts" in [spec.name for spec in tools.at("DEEP").declared]
    assert "memory.search_facts" not in [spec.name for spec in tools.at("STANDARD").declared]
    assert [spec.name for spec in tools.at("FAST").declared] == ["memory.query_entities"]
