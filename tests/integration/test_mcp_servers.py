"""Servers outside whose tools NPCs are given: what they may do to a turn, over both transports."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from glyphoxa.domain.budgets import TierRule
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.events import TurnFinished
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn_record import LookUp
from glyphoxa.npc.tool_spec import CallableTool, Found, ToolSpec, nothing
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.plugins.mcp.client import MAX_ANSWERED, McpServers
from glyphoxa.plugins.mcp.server import dice_tools
from glyphoxa.plugins.mcp.settings import McpServerSettings, McpSettings
from tests.support.live_table import an_evening, settings_for, write_campaign
from tests.support.mcp import served
from tests.support.patience import DEADLINE_MS, DEADLINE_S, until

TOKEN = "the token of the dice"
PATIENT = TierRule(DEADLINE_MS, ())


Row = tuple[str, McpServerSettings]


def a_row(name: str = "odd", **settings: object) -> Row:
    return name, McpServerSettings.model_validate(settings)


def hostile(mode: str) -> Row:
    return a_row(command=(sys.executable, "-m", "tests.support.mcp_servers", mode))


@asynccontextmanager
async def opened(
    *rows: Row, connect_ms: int = DEADLINE_MS, again_s: tuple[float, ...] = (1.0,)
) -> AsyncIterator[McpServers]:
    environ = {"GOOD": TOKEN, "BAD": "x", "DICE_MOOD": "good"}
    servers = McpServers(dict(rows), environ, connect_ms=connect_ms, again_s=again_s)
    await servers.open()
    try:
        yield servers
    finally:
        await servers.close()


def a_toolbox(tools: tuple[CallableTool, ...], told: list[LookUp], rule: TierRule = PATIENT) -> Toolbox:
    return Toolbox(None, tools, tier="DEEP", rules={"DEEP": rule}, tell=told.append)


async def look(servers: McpServers, told: list[LookUp], rule: TierRule = PATIENT) -> Found:
    return await a_toolbox(servers.tools("odd"), told, rule).call("odd_look", {"at": "the bell"})


async def test_the_dice_of_the_project_are_rolled_by_a_program_of_their_own() -> None:
    told: list[LookUp] = []
    row = a_row("dice", command=(sys.executable, "-m", "glyphoxa.cli.main", "mcp", "dice"))
    async with opened(row) as servers:
        box = a_toolbox(servers.tools("dice"), told)
        [spec] = box.declared
        assert (spec.wire_name, spec.required) == ("dice_roll", ("dice",))
        rolled = await box.call("dice_roll", {"dice": "2d6"})
        assert '"total": ' in str(rolled["found"])
        refused = await box.call("dice_roll", {"dice": "a pint"})
        assert refused["found"] == [] and "'a pint' is not dice notation" in str(refused["note"])
        assert await box.call("dice_roll", {}) == {"found": [], "note": "dice_roll needs the argument 'dice'"}
    assert [(one.tool, dict(one.arguments), one.found) for one in told[:1]] == [("dice_roll", {"dice": "2d6"}, rolled)]


async def test_a_served_tool_is_called_with_its_token_and_not_offered_without() -> None:
    async with served({TOKEN: dice_tools()}) as url:
        good, bad = (a_row(name, url=url, token_env=name.upper()) for name in ("good", "bad"))
        async with opened(good, bad) as servers:
            assert servers.tools("bad") == ()
            assert (await a_toolbox(servers.tools("good"), []).call("good_roll", {"dice": "d20"}))["found"]


async def test_a_served_answer_that_is_too_long_costs_that_call() -> None:
    async def much(_arguments: object) -> Found:
        return {"found": ["b" * 39_000], "more": "b" * n_more}

    tool = CallableTool(ToolSpec("look", "", {"at": {"type": "string"}}, (), 1), much)
    n_more = 500
    async with served({TOKEN: [tool]}) as url, opened(a_row(url=url, token_env="GOOD")) as servers:
        told: list[LookUp] = []
        [text] = (await look(servers, told))["found"]  # type: ignore[misc]
        assert len(text) <= MAX_ANSWERED + 4


async def test_what_a_server_says_of_its_tools_is_short_plain_and_of_known_kinds() -> None:
    async with opened(hostile("plain")) as servers:
        [tool] = servers.tools("odd")
    assert tool.spec.wire_name == "odd_look"
    assert len(tool.spec.description) < 320
    assert "<|im_start|>" not in tool.spec.description
    assert tool.spec.description.isprintable()


@pytest.mark.parametrize(
    ("mode", "note"),
    [
        ("big", "it is unavailable now: answer without it, and do not invent a result"),
        ("types", "it is unavailable now: answer without it, and do not invent a result"),
        ("dies", "it is unavailable now: answer without it, and do not invent a result"),
        ("fails", "it failed: you see the bell"),
    ],
)
async def test_a_call_that_goes_wrong_is_a_note_and_nothing_else(mode: str, note: str) -> None:
    told: list[LookUp] = []
    async with opened(hostile(mode)) as servers:
        assert await look(servers, told) == {"found": [], "note": note}
    assert [(one.tool, one.found["note"]) for one in told] == [("odd_look", note)]


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ("image", {"found": ["(image)"]}),
        ("images", {"found": ["(image) A map. (image)"]}),
        ("failed image", nothing("it failed: (image)")),
        ("fails silently", nothing("it failed")),
        ("resource", {"found": ["The door is oak."]}),
        ("bytes", {"found": ["(resource)"]}),
        ("link", {"found": ["(resource_link)"]}),
        ("structured", {"found": ['{"weather": "rain", "wind": ["Nord", "Süd"]}']}),
        ("both", {"found": ["Rain."]}),
        ("empty", nothing("it returned no text")),
        ("empty text", nothing("it returned no text")),
        ("unicode", {"found": ["Öl für Łódź 🗡️ 漢字 flip"]}),
    ],
)
async def test_result_of_any_kind_is_shown_as_text(mode: str, found: object) -> None:
    async with opened(hostile(mode)) as servers:
        assert await look(servers, []) == found


@pytest.mark.parametrize("mode", ["silent", "garbage"])
async def test_a_call_without_an_answer_ends_at_the_ceiling_of_the_tier(mode: str) -> None:
    async with opened(hostile(mode)) as servers:
        tools = tuple(CallableTool(_quick(tool.spec), tool.ask) for tool in servers.tools("odd"))
        box = Toolbox(None, tools, tier="DEEP", rules={"DEEP": TierRule(50, ())})
        found = await box.call("odd_look", {"at": "the bell"})
        assert found["note"] in (
            "too slow: answer without it, and do not invent a result",
            "it is unavailable now: answer without it, and do not invent a result",
        )


def _quick(spec: ToolSpec) -> ToolSpec:
    return ToolSpec(spec.name, spec.description, spec.parameters, spec.required, 1)


async def test_a_long_answer_is_cut_and_markers_of_a_chat_mean_nothing() -> None:
    async with opened(hostile("long")) as servers:
        [text] = (await look(servers, []))["found"]  # type: ignore[misc]
        assert len(text) == MAX_ANSWERED + 4
    async with opened(hostile("markers")) as servers:
        [text] = (await look(servers, []))["found"]  # type: ignore[misc]
        assert "<|im_end|>" not in text and "</tool_response>" not in text
        assert text.isprintable() and text.endswith(" tell everything < /tool_response>")


async def test_crashed_server_is_reconnected() -> None:
    fails: list[str] = []
    async with opened(hostile("dies"), again_s=(0.01,)) as servers:
        [tool] = servers.tools("odd")

        async def fail() -> None:
            with pytest.raises(Unavailable) as failed:
                await tool.ask({"at": "the bell"})
            fails.append(str(failed.value))

        await fail()
        await fail()
        assert fails == ["the MCP server odd closed the connection", "the MCP server odd is not connected now"]
        async with asyncio.timeout(DEADLINE_S):
            while fails[-1] != fails[0]:  # it restarted, and closed the connection as it does
                await asyncio.sleep(0.01)
                await fail()


@pytest.mark.parametrize(
    "row",
    [
        a_row(command=("/no/such/program",)),
        a_row(command=(sys.executable, "-c", "print('good evening')")),
        a_row(url="http://127.0.0.1:9/mcp"),
    ],
)
async def test_a_server_that_is_not_there_offers_nothing_and_holds_nobody_up(row: Row) -> None:
    async with opened(row) as servers:
        assert servers.tools("odd") == ()


async def test_a_program_ends_with_the_table_and_knows_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    written = tmp_path / "environment"
    code = (
        f"import os, pathlib; pathlib.Path({str(written)!r}).write_text(f'{{os.getpid()}} {{sorted(os.environ)}}');"
        "from tests.support.mcp_servers import main; main('plain')"
    )
    row = a_row(command=(sys.executable, "-c", code), env=("DICE_MOOD",))
    async with opened(row) as servers:
        assert servers.tools("odd")
    process, _, variables = written.read_text().partition(" ")
    assert "DICE_MOOD" in variables and "OPENAI_API_KEY" not in variables
    await until(lambda: not Path(f"/proc/{process}").exists())


async def test_at_a_table_an_npc_has_the_tools_it_was_given_and_its_turn_keeps_what_they_answered(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = {
        "odd": {"command": [sys.executable, "-m", "tests.support.mcp_servers", "plain"], "npcs": ["grimjaw"]},
        "slow": {"command": [sys.executable, "-m", "tests.support.mcp_servers", "plain"], "usual_ms": 5_000},
        "none": {"command": ["/no/such/program"]},
    }
    settings = settings_for(write_campaign(tmp_path, others=["Eldrinax"]), dsn, tmp_path)
    mcp = McpSettings.model_validate({"servers": programs})
    async with an_evening(settings.model_copy(update={"mcp": mcp}), monkeypatch) as evening:
        smith, wizard = (evening.mouths[NpcId(npc)] for npc in ("grimjaw", "eldrinax"))
        assert smith.tools is not None and wizard.tools is not None
        assert [spec.wire_name for spec in smith.tools.declared] == ["memory_query_entities", "odd_look"]
        assert [spec.wire_name for spec in wizard.tools.declared] == ["memory_query_entities"]
        smith.looks_up = ("odd_look", {"at": "the bell"})
        (await evening.ear()).say("Grimjaw, look at the bell.")
        [turn] = await evening.until(lambda: [each.turn for each in evening.told if isinstance(each, TurnFinished)])
    [look_up] = turn.looked_up
    assert (look_up.tool, dict(look_up.arguments)) == ("odd_look", {"at": "the bell"})
    assert look_up.found["found"] == ["you see the bell"] or "too slow" in str(look_up.found["note"])
