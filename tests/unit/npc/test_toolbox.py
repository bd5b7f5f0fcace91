"""Tools of an NPC's model besides its memory, and their cost for a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import pytest
from mcp_types import Tool

from glyphoxa.domain.budgets import TIER_RULES, TierRule
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.turn_record import LookUp
from glyphoxa.npc.memory_tools import NpcMemory
from glyphoxa.npc.tool_spec import CallableTool, Found, ToolSpec
from glyphoxa.npc.toolbox import SLOW_MS, Toolbox
from glyphoxa.plugins.mcp.client import spec_of
from tests.support.memory_twins import GRIMJAW, SALTMERE, Talk, a_world
from tests.support.virtual_time import run_in_virtual_time

Ask = Callable[[Mapping[str, object]], Awaitable[Found]]
DICE = {"dice": {"type": "string", "description": "Which"}}


async def seven(_arguments: Mapping[str, object]) -> Found:
    return {"found": ["7"]}


def roller(ask: Ask = seven, *, usual_ms: int = 50) -> CallableTool:
    return CallableTool(ToolSpec("dice.roll", "Roll dice.", DICE, ("dice",), usual_ms), ask)


class Table:
    """A toolbox, and what it told."""

    def __init__(self, *outside: CallableTool, rule: TierRule = TIER_RULES["FAST"], with_memory: bool = True) -> None:
        self.looked_up: list[LookUp] = []
        self.n_slow = 0
        memory = NpcMemory(SALTMERE, GRIMJAW, a_world(), Talk()) if with_memory else None
        rules = {**TIER_RULES, "DEEP": replace(rule, tools=TIER_RULES["FAST"].tools if with_memory else ())}
        self.box = Toolbox(memory, outside, tier="DEEP", rules=rules, tell=self.looked_up.append, tell_slow=self._slow)

    def _slow(self) -> None:
        self.n_slow += 1


async def test_external_tools_follow_memory_tools_and_both_work() -> None:
    table = Table(roller())
    assert [spec.wire_name for spec in table.box.declared] == ["memory_query_entities", "dice_roll"]
    assert await table.box.call("dice_roll", {"dice": "d20"}) == {"found": ["7"]}
    known = await table.box.call("memory_query_entities", {"name": "Grimjaw"})
    assert known["found"]
    assert [(one.tool, one.arguments, one.found) for one in table.looked_up] == [
        ("dice_roll", {"dice": "d20"}, {"found": ["7"]}),
        ("memory_query_entities", {"name": "Grimjaw"}, known),
    ]


async def test_external_tool_is_asked_again_in_one_turn_and_memory_is_not() -> None:
    """The same dice show something else."""
    rolled = iter(range(9))

    async def roll(_arguments: Mapping[str, object]) -> Found:
        return {"found": [next(rolled)]}

    turn = Table(roller(roll)).box.at("FAST")
    assert [(await turn.call("dice_roll", {"dice": "d20"}))["found"] for _ in range(3)] == [[0], [1], [2]]
    assert turn.n_answered == 3
    assert await turn.call("memory_query_entities", {"type": "npc"}) is await turn.call(
        "memory_query_entities", {"type": "npc"}
    )
    assert turn.n_answered == 3


async def test_without_memory_only_external_tools_are_offered() -> None:
    table = Table(roller(), with_memory=False)
    assert [spec.wire_name for spec in table.box.declared] == ["dice_roll"]
    assert "did you mean 'dice_roll'?" in str((await table.box.call("dice_rol", {}))["note"])


def test_lower_tier_shows_only_fast_tools_within_the_npcs_tier() -> None:
    box = Table(roller(usual_ms=1_000), rule=TIER_RULES["STANDARD"]).box
    assert [spec.wire_name for spec in box.at("DEEP").declared] == ["memory_query_entities", "dice_roll"]
    assert [spec.wire_name for spec in box.at("FAST").declared] == ["memory_query_entities"]


def _fails(error: Exception) -> Ask:
    async def ask(_arguments: Mapping[str, object]) -> Found:
        raise error

    return ask


@pytest.mark.parametrize("error", [Unavailable("gone"), ZeroDivisionError("a bug")])
async def test_a_tool_that_fails_is_a_note_that_says_to_make_nothing_up(error: Exception) -> None:
    table = Table(roller(_fails(error)))
    found = await table.box.call("dice_roll", {"dice": "d20"})
    assert found == {"found": [], "note": "it is unavailable now: answer without it, and do not invent a result"}
    assert table.looked_up[0].found == found


def test_slow_tool_is_reported_once_and_cut_at_the_limit() -> None:
    async def never(_arguments: Mapping[str, object]) -> Found:
        await asyncio.Event().wait()
        raise AssertionError

    async def story() -> None:
        table = Table(roller(never), rule=TierRule(4_000, ()), with_memory=False)
        call = asyncio.create_task(table.box.call("dice_roll", {"dice": "d20"}))
        await asyncio.sleep((SLOW_MS - 1) / 1_000)
        assert table.n_slow == 0
        await asyncio.sleep(0.002)
        assert table.n_slow == 1
        assert (await call)["note"] == "too slow: answer without it, and do not invent a result"
        assert (table.n_slow, table.looked_up[0].took_ms) == (1, 4_000)

    run_in_virtual_time(story())


@pytest.mark.parametrize(
    ("kind", "value", "note"),
    [
        ("integer", 2.5, "argument 'of' of shop_price must be a whole number, not float"),
        ("integer", True, "argument 'of' of shop_price must be a whole number, not bool"),
        ("boolean", 1, "argument 'of' of shop_price must be true or false, not int"),
        ("string", "silver", "cannot be 'silver'"),
    ],
)
async def test_wrong_argument_of_external_tool_never_reaches_it(kind: str, value: object, note: str) -> None:
    schema = {"type": kind} | ({"enum": ["gold"]} if kind == "string" else {})
    tool = CallableTool(ToolSpec("shop.price", "Ask the price.", {"of": schema}, ("of",), 50), seven)
    answer = await Table(tool, with_memory=False).box.call("shop_price", {"of": value})
    assert answer["found"] == []
    assert note in str(answer["note"])


def test_choices_of_external_tool_that_are_too_many_are_examples() -> None:
    def offered(n: int) -> Mapping[str, object]:
        schema = {"properties": {"coin": {"type": "string", "enum": [f"coin {each}" for each in range(n)]}}}
        spec = spec_of("shop", Tool(name="pay", description="Pay.", input_schema=schema), usual_ms=50)
        assert spec is not None
        return spec.parameters["coin"]

    assert offered(2) == {"type": "string", "description": "coin", "enum": ["coin 0", "coin 1"]}
    assert "enum" not in offered(30)
    assert "For example: coin 0, coin 1" in str(offered(30)["description"])
