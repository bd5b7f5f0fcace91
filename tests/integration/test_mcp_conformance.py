"""Requirements of the Model Context Protocol on every server, message by message, without an SDK on the client's side.

The rules are those of its specification of 2025-11-25 (base protocol, lifecycle, transports, tools), and of
JSON-RPC 2.0: https://modelcontextprotocol.io/specification/2025-11-25
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from glyphoxa.plugins.mcp.server import dice_tools
from tests.support.mcp import served
from tests.support.patience import DEADLINE_S

TOKEN = "the token of an npc"
HEADERS = {"authorization": f"Bearer {TOKEN}", "accept": "application/json, text/event-stream"}
INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, PARSE_ERROR = -32600, -32601, -32602, -32700

Json = dict[str, Any]
Ask = Callable[[Json], Awaitable[Json]]
Send = Callable[..., Awaitable[httpx2.Response]]


def a_request(number: int | str, method: str, **params: object) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}


def a_greeting(number: int, version: str) -> Json:
    who = {"name": "somebody", "version": "1"}
    return a_request(number, "initialize", protocolVersion=version, capabilities={}, clientInfo=who)


@asynccontextmanager
async def over_pipes() -> AsyncIterator[tuple[Ask, asyncio.subprocess.Process]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "glyphoxa.cli.main", "mcp", "dice"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    wire = process.stdin, process.stdout

    async def ask(message: Json) -> Json:
        wire[0].write(json.dumps(message).encode() + b"\n")
        async with asyncio.timeout(DEADLINE_S):
            answer: Json = json.loads(await wire[1].readline())
        return answer

    try:
        yield ask, process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def over_http() -> AsyncIterator[tuple[Ask, Send]]:
    async with (
        served({TOKEN: dice_tools()}) as url,
        httpx2.AsyncClient(headers=HEADERS, timeout=DEADLINE_S) as http,
    ):

        async def ask(message: Json) -> Json:
            answer: Json = (await http.post(url, json=message)).json()
            return answer

        async def send(method: str = "POST", **more: Any) -> httpx2.Response:
            return await http.request(method, url, **more)

        yield ask, send


TRANSPORTS = pytest.mark.parametrize("transport", [over_pipes, over_http])


@TRANSPORTS
async def test_every_server_does_what_the_protocol_asks(transport: Callable[[], Any]) -> None:
    async with transport() as (ask, _):
        greeted = await ask(a_greeting(1, "2025-06-18"))
        assert greeted["id"] == 1
        assert greeted["result"]["protocolVersion"] == "2025-06-18"
        assert greeted["result"]["serverInfo"]["name"] == "glyphoxa"
        assert greeted["result"]["capabilities"].keys() == {"tools"}

        of_old = await ask(a_greeting(2, "1999-01-01"))
        assert of_old["result"]["protocolVersion"] > "2025", "a version that is not known is answered with one that is"

        assert await ask(a_request("three", "ping")) == {"jsonrpc": "2.0", "id": "three", "result": {}}

        [roll] = (await ask(a_request(4, "tools/list")))["result"]["tools"]
        assert roll["name"] == "roll"
        assert roll["description"]
        assert roll["inputSchema"]["type"] == "object"
        assert roll["inputSchema"]["required"] == ["dice"]

        rolled = (await ask(a_request(5, "tools/call", name="roll", arguments={"dice": "d4"})))["result"]
        assert rolled["isError"] is False
        assert [part["type"] for part in rolled["content"]] == ["text"]

        for arguments in ({"dice": 7}, {"dice": "a pint"}, {}, {"dice": "d4", "more": 1}):
            refused = (await ask(a_request(6, "tools/call", name="roll", arguments=arguments)))["result"]
            assert refused["isError"] is True, "the model is told what it can correct"

        for method in ("no/such", "resources/list", "prompts/list"):
            assert (await ask(a_request(7, method)))["error"]["code"] == NO_METHOD
        assert (await ask(a_request(8, "tools/call", arguments={})))["error"]["code"] == INVALID_PARAMS


async def test_over_pipes_what_is_no_request_is_passed_over_and_only_the_protocol_is_written() -> None:
    async with over_pipes() as (ask, process):
        await ask(a_greeting(1, "2025-06-18"))
        assert process.stdin is not None
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        unknown = {"jsonrpc": "2.0", "method": "notifications/unknown"}
        for line in (
            json.dumps(told),
            json.dumps(unknown),
            "{ no json",
            '{"jsonrpc": "1.0", "id": 9, "method": "ping"}',
            "",
        ):
            process.stdin.write(line.encode() + b"\n")
        while (answer := await ask(a_request(10, "ping")))["id"] != 10:
            assert answer["error"]["code"] in (PARSE_ERROR, INVALID_REQUEST)
        process.stdin.close()
        rest, errors = await process.communicate()
        assert rest == b""
        assert b"Traceback" not in errors
        assert process.returncode == 0, "it ends when its input ends"


async def test_over_http_each_answer_has_the_status_that_the_transport_asks_for() -> None:
    async with over_http() as (_, send):
        notified = await send(json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (notified.status_code, notified.content) == (202, b"")
        assert (await send(content=b"{ no json", headers={"content-type": "application/json"})).status_code == 400
        assert (await send(json=[a_request(1, "ping")])).status_code == 400
        assert (await send(json=a_request(1, "ping"), headers={"accept": "text/html"})).status_code == 406
        assert (await send(content=b"ping", headers={"content-type": "text/plain"})).status_code in (400, 415)
        foreign = await send(json=a_request(1, "ping"), headers={"origin": "https://rebound.example"})
        assert foreign.status_code == 403
        future = await send(json=a_request(1, "ping"), headers={"mcp-protocol-version": "1999-01-01"})
        assert future.status_code == 400
        assert (await send("DELETE")).status_code == 405, "no session is kept"


async def test_over_http_who_listens_without_asking_gets_a_stream_of_events() -> None:
    async with served({TOKEN: dice_tools()}) as url, httpx2.AsyncClient(headers=HEADERS, timeout=DEADLINE_S) as http:
        async with http.stream("GET", url) as listening:
            assert listening.status_code == 200
            assert listening.headers["content-type"].startswith("text/event-stream")
        async with http.stream("GET", url, headers={"accept": "application/json"}) as listening:
            assert listening.status_code == 406
