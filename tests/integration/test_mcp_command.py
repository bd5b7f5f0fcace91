"""`glyphoxa mcp` as other programs meet it: over standard input and output, and over HTTP with a token."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from glyphoxa.npc.tool_spec import CallableTool
from glyphoxa.plugins.mcp.server import dice_tools
from tests.support.command_line import a_settings_file, run
from tests.support.mcp import answered, refused, served, tool_names
from tests.support.patience import DEADLINE_S

NPC_TOKEN, DM_TOKEN = "the token of an npc", "the token of the dm"


def a_command(*arguments: object, **environ: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "glyphoxa.cli.main", "mcp", *map(str, arguments)], env=environ
    )


async def test_another_program_asks_an_npcs_memory_over_standard_input_and_output(
    evenings_dsn: str, tmp_path: Path
) -> None:
    settings = a_settings_file(tmp_path, evenings_dsn)
    settings.write_text(f"{settings.read_text()}providers: {{embeddings: {{name: none}}}}\n")
    command = a_command("--npc", "the smith", "--config", settings)
    async with Client(command, read_timeout_seconds=DEADLINE_S) as client:
        assert (await tool_names(client))[0] == "memory_query_entities"
        assert not any(name.startswith("dm_") for name in await tool_names(client))
        [smith] = (await answered(client, "memory_query_entities", name="Grimjaw"))["found"]
        assert smith["about"]["occupation"] == "blacksmith"
        assert "needs the argument 'query'" in await refused(client, "memory_search_facts", {})


BOTH = {NPC_TOKEN: dice_tools(), DM_TOKEN: list[CallableTool]()}


@asynccontextmanager
async def a_caller(url: str, token: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=DEADLINE_S) as http,
        Client(streamable_http_client(url, http_client=http), read_timeout_seconds=DEADLINE_S) as client,
    ):
        yield client


async def test_over_http_a_token_decides_which_tools_there_are() -> None:
    async with served(BOTH) as url:
        async with a_caller(url, NPC_TOKEN) as client:
            assert await tool_names(client) == ["roll"]
            assert (await answered(client, "roll", dice="d20"))["found"]
        async with a_caller(url, DM_TOKEN) as client:
            assert await tool_names(client) == []
            assert "no tool 'roll'" in await refused(client, "roll", {"dice": "d20"})


@pytest.mark.parametrize("shown", [None, "Bearer", "Bearer the token of a player", "Basic the token of an npc", "ü"])
async def test_without_its_token_nobody_is_told_what_is_served(shown: str | None) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"accept": "application/json, text/event-stream"} | ({"authorization": shown} if shown else {})
    async with served(BOTH) as url, httpx2.AsyncClient(timeout=DEADLINE_S) as http:
        refusal = await http.post(
            url, json=call, headers=[(key.encode(), value.encode()) for key, value in headers.items()]
        )
        assert refusal.status_code == 401
        assert "roll" not in refusal.text
        assert json.loads(refusal.text) == {"error": "missing or invalid token: send `Authorization: Bearer TOKEN`"}


async def test_over_http_a_long_request_and_a_foreign_host_are_refused() -> None:
    headers = {"authorization": f"Bearer {NPC_TOKEN}", "accept": "application/json, text/event-stream"}
    async with served(BOTH) as url, httpx2.AsyncClient(headers=headers, timeout=DEADLINE_S) as http:
        long = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "roll", "x": "y" * 100_000}}
        assert (await http.post(url, json=long)).status_code == 413
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert (await http.post(url, json=call, headers={"host": "rebound.example"})).status_code == 421
        assert (await http.post(url, content=b"{")).status_code == 400


@pytest.mark.parametrize(
    ("arguments", "environ", "why"),
    [
        ((), {}, "choose whose tools to serve: --npc NAME, or --dm"),
        (("--dm",), {}, "environment variable GLYPHOXA_MCP_DM_TOKEN is not set"),
        (("--npc", "Grimjaw", "--http"), {}, "environment variable GLYPHOXA_MCP_TOKEN is not set"),
        (("dice", "--http"), {"GLYPHOXA_MCP_TOKEN": "short"}, "has 5 characters; at least 16 are needed"),
        (
            ("--npc", "Grimjaw", "--dm", "--http"),
            {"GLYPHOXA_MCP_TOKEN": "the very same token", "GLYPHOXA_MCP_DM_TOKEN": "the very same token"},
            "hold the same token",
        ),
    ],
)
async def test_what_is_missing_is_said_before_anything_is_opened(
    arguments: tuple[str, ...],
    environ: dict[str, str],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for variable in ("GLYPHOXA_MCP_TOKEN", "GLYPHOXA_MCP_DM_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    assert await run("mcp", *arguments) == 1
    assert why in capsys.readouterr().err


async def test_a_server_over_http_ends_in_order_when_it_is_told_to() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "glyphoxa.cli.main", "mcp", "dice", "--http", "--port", "0"),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "GLYPHOXA_MCP_TOKEN": NPC_TOKEN},
    )
    assert process.stderr is not None
    async with asyncio.timeout(DEADLINE_S):
        assert b"MCP is served at http://localhost:" in await process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert await process.stderr.read() == b""
        assert await process.wait() == 0
