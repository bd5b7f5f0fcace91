"""Servers outside whose tools NPCs are given: reached while the table opens, and again whenever they fall.

- What a server offers is settled when it is first reached: what it says later of its tools changes no prompt.
- A server that cannot be reached while the table opens is left out of this session.
- One that falls later is tried again, less and less often; a call meanwhile fails at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from loguru import logger
from mcp import Client, MCPError
from mcp_types import CONNECTION_CLOSED

from glyphoxa.actors.supervisor import Supervisor
from glyphoxa.adapters.mcp.offered import MOST_TOOLS, checked, plain, spec_of, told
from glyphoxa.adapters.mcp.transports import address, program
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.npc.tool_answers import Found, nothing
from glyphoxa.npc.tool_spec import ToolSpec
from glyphoxa.npc.toolbox import OutsideTool

CONNECT_MS: Final = 20_000
"""What a table that opens waits for all servers together."""
_AGAIN_S: Final = (1.0, 5.0, 30.0, 120.0)
_READ_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """How a server is reached.

    Attributes:
        command: A program and its arguments; empty: it has a `url`.
        env: What the program is given besides.
        allowed: Its only tools that are offered; None: all.
        usual_ms: What a call usually takes.
    """

    name: str
    command: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = ""
    token: str = field(default="", repr=False)
    allowed: frozenset[str] | None = None
    usual_ms: int = 300


class McpServers:
    """Protocol of use: `open`, `tools`, `close`, in one event loop.

    Args:
        connect_ms: See `CONNECT_MS`.
        again_s: How long a server that fell is let be; the longer, the more often it has.
    """

    def __init__(
        self, rows: Sequence[ServerRow], *, connect_ms: int = CONNECT_MS, again_s: Sequence[float] = _AGAIN_S
    ) -> None:
        self._servers = {row.name: _Server(row, again_s) for row in rows}
        self._supervisor = Supervisor()
        self._connect_ms = connect_ms

    async def open(self) -> None:
        """Until each server was reached, or was not in time. Never raises."""
        for name, server in self._servers.items():
            self._supervisor.start(f"MCP server {name}", server.run)
        tried = [asyncio.create_task(server.tried.wait()) for server in self._servers.values()]
        if tried:
            await asyncio.wait(tried, timeout=self._connect_ms / 1_000)
        for waiting in tried:
            waiting.cancel()
        for name, server in self._servers.items():
            if server.tools is None:
                why = server.why or f"it has not answered within {self._connect_ms:,} ms"
                logger.warning("the MCP server {} cannot be reached, and its tools are not offered: {}", name, why)
                await self._supervisor.stop(f"MCP server {name}")

    def tools(self, server: str) -> tuple[OutsideTool, ...]:
        """What it offers; nothing if it was not reached."""
        found = self._servers[server]
        return tuple(OutsideTool(spec, partial(found.call, spec)) for spec in found.tools or ())

    async def close(self) -> None:
        await self._supervisor.close()


class _Server:
    """
    Attributes:
        tools: None until it was reached.
        tried: It was reached, or cannot be.
        why: Why not.
    """

    def __init__(self, row: ServerRow, again_s: Sequence[float]) -> None:
        self.tools: tuple[ToolSpec, ...] | None = None
        self.tried = asyncio.Event()
        self.why = ""
        self._row = row
        self._again_s = again_s
        self._client: Client | None = None
        self._fell = asyncio.Event()

    async def run(self) -> None:
        """The actor's body."""
        n_tried = 0
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._serve()
            except Exception as error:  # whatever somebody else's server makes of a connection
                self.why = _reason(error)
            if self.tools is None:
                self.tried.set()
                return
            is_new = asyncio.get_running_loop().time() - began > self._again_s[-1]
            n_tried = 1 if is_new else n_tried + 1
            logger.warning("the MCP server {} fell: {}", self._row.name, self.why or "its connection is closed")
            await asyncio.sleep(self._again_s[min(n_tried, len(self._again_s)) - 1])

    async def call(self, spec: ToolSpec, arguments: Mapping[str, object]) -> Found:
        """
        Raises:
            Unavailable: It is not there now.
        """
        if self._client is None:
            raise Unavailable(f"the MCP server {self._row.name} is not there now")
        try:
            given = checked(spec, arguments)
        except InvalidInput as wrong:
            return nothing(str(wrong))
        try:
            result = await self._client.call_tool(spec.name.partition(".")[2], given)
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                return told([error.message], is_error=True)
            self._give_up()
            raise Unavailable(f"the MCP server {self._row.name} closed the connection") from error
        except Exception as error:
            # An answer that is none: of the wrong types, or too long. What is behind it on the line is not read.
            self._give_up()
            raise Unavailable(
                f"the MCP server {self._row.name} answered what is no answer: {_reason(error)}"
            ) from error
        texts = [each.text if each.type == "text" else f"({each.type})" for each in result.content]
        return told(texts, is_error=bool(result.is_error))

    def _give_up(self) -> None:
        self._client = None
        self._fell.set()

    async def _serve(self) -> None:
        self._fell.clear()
        try:
            async with Client(self._transport(), read_timeout_seconds=_READ_S, cache=None) as client:
                if self.tools is None:
                    self.tools = self._offered((await client.list_tools()).tools)
                self._client = client
                self.tried.set()
                await self._fell.wait()
        finally:
            self._client = None

    def _transport(self) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        row = self._row
        return program(row.command, env=row.env) if row.command else address(row.url, token=row.token)

    def _offered(self, tools: Sequence[Any]) -> tuple[ToolSpec, ...]:
        row = self._row
        found: list[ToolSpec] = []
        for tool in tools:
            if row.allowed is not None and tool.name not in row.allowed:
                continue
            as_sent = {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            spec = spec_of(row.name, as_sent, usual_ms=row.usual_ms)
            if spec is None:
                logger.warning("the tool {!r} of {} cannot be offered", plain(tool.name, most=80), row.name)
            elif len(found) < MOST_TOOLS:
                found.append(spec)
        if missing := (row.allowed or frozenset()) - {tool.name for tool in tools}:
            logger.warning("the MCP server {} has no tool {}", row.name, ", ".join(sorted(missing)))
        return tuple(found)


def _reason(error: BaseException) -> str:
    """The first of what went wrong at once, in a line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return plain(str(error) or type(error).__name__, most=200)
