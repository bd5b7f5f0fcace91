"""MCP servers whose tools NPCs may use: connected when the table opens, and reconnected after a failure.

- The tools of a server are fixed at the first connection: later changes affect no prompt.
- A server that cannot be reached while the table opens is left out of the session.
- After a later failure it is retried with growing delays; calls fail at once in the meantime.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import unicodedata
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import anyio
import httpx2
from loguru import logger
from mcp import Client, MCPError
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, Tool, jsonrpc_message_adapter

from glyphoxa.actors.deadline import done_within
from glyphoxa.actors.supervisor import Supervisor
from glyphoxa.chat.marks import COMMON
from glyphoxa.domain.errors import Unavailable
from glyphoxa.npc.tool_spec import KINDS, CallableTool, Found, ToolSpec, nothing
from glyphoxa.plugins.mcp.settings import McpServerSettings

# What a model may see of a server: short, plain names, descriptions and answers of known types.
#
# A server may send anything: a megabyte, chat template markers, arguments nested a thousand levels deep.


MAX_TOOLS: Final = 16
MAX_ANSWERED: Final = 2_000
_MAX_ARGUMENTS: Final = 10
_MAX_DESCRIBED: Final = 300
_MAX_CHOICES: Final = 20
_MAX_CHOICE: Final = 80
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


def spec_of(server: str, tool: Tool, *, usual_ms: int) -> ToolSpec | None:
    """A tool's description for an NPC's model; None if it cannot be offered."""
    if not _NAME.fullmatch(tool.name):
        return None
    properties, required = tool.input_schema.get("properties") or {}, tool.input_schema.get("required") or []
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return None
    shown = {name: one for name, each in properties.items() if (one := _argument(name, each)) is not None}
    if len(shown) > _MAX_ARGUMENTS or any(name not in shown for name in required):
        return None
    description = plain(tool.description or tool.name, most=_MAX_DESCRIBED)
    return ToolSpec(f"{server}.{tool.name}", description, shown, tuple(required), usual_ms)


def _argument(name: object, schema: object) -> Mapping[str, object] | None:
    """An argument's schema for a model; None if it is not a plain value."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(schema, Mapping):
        return None
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in KINDS:
        return None
    described = schema.get("description")
    description = plain(described, most=_MAX_DESCRIBED) if isinstance(described, str) else name
    choices = schema.get("enum")
    if kind != "string" or not isinstance(choices, list) or not all(isinstance(each, str) for each in choices):
        return {"type": kind, "description": description}
    shown = [plain(each, most=_MAX_CHOICE) for each in choices[:_MAX_CHOICES]]
    if shown == choices:
        return {"type": kind, "description": description, "enum": shown}
    # The server takes others, too, so that they are no limit.
    return {"type": kind, "description": f"{description}. For example: {', '.join(shown)}"}


def told(texts: Iterable[str], *, is_error: bool) -> Found:
    """The result that a model is shown."""
    text = plain(" ".join(texts), most=MAX_ANSWERED)
    if is_error:
        return nothing(f"it failed: {text}" if text else "it failed")
    return {"found": [text]} if text else nothing("it returned no text")


def _text_of(part: Any) -> str:
    """The words of a part of a result; its kind in brackets if it has none, such as an image."""
    text: str | None = getattr(getattr(part, "resource", part), "text", None)
    return f"({part.type})" if text is None else text


def plain(text: str, *, most: int) -> str:
    """The text on one line, without control sequences of a terminal, a database or a chat template."""
    # Truncate first: cleaning a megabyte takes as long as a syllable.
    cut = text[: 2 * most]
    visible = "".join(" " if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Co") else each for each in cut)
    words = " ".join(COMMON.broken(visible).split())
    return words if len(words) <= most and len(text) <= 2 * most else f"{words[:most].rstrip()} ..."


# Transports whose messages are bounded, so that one can be read between two audio frames.
#
# The SDK's own transports read messages of any length in the table's event loop.


MAX_BYTES: Final = 256 * 1024
"""Maximum size of one message."""
_CONNECT_S: Final = 5.0
_READ_S: Final = 30.0
_ENDS_WITHIN_MS: Final = 2_000


@asynccontextmanager
async def program(command: Sequence[str], *, env: Mapping[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """Start a program and speak to it on its standard input and output. Ends it on exit.

    Args:
        env: Its environment besides the few variables that every program needs. Provider keys are not included.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=get_default_environment() | dict(env),
        limit=MAX_BYTES,
        start_new_session=True,
    )
    heard, from_server = anyio.create_memory_object_stream[Any](0)
    to_server, to_be_said = anyio.create_memory_object_stream[Any](0)

    async def read() -> None:
        assert process.stdout is not None  # noqa: S101 - requested as a pipe above
        async with heard:
            with suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):  # ValueError: too long
                while line := await process.stdout.readline():
                    await heard.send(_message(line))

    async def write() -> None:
        assert process.stdin is not None  # noqa: S101 - likewise
        async with to_be_said:
            with suppress(ConnectionError, RuntimeError):
                async for said in to_be_said:
                    line = said.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(f"{line}\n".encode())
                    await process.stdin.drain()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(write)
            try:
                yield from_server, to_server
            finally:
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


def _message(line: bytes) -> Any:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as no_message:
        return no_message


async def _end(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)  # with whatever it started itself
        await done_within(_ENDS_WITHIN_MS, process.wait())


@asynccontextmanager
async def address(url: str, *, token: str) -> AsyncIterator[tuple[Any, Any]]:
    """Connect to a server's address over streamable HTTP.

    Args:
        token: Sent with every request as `Authorization: Bearer`; empty for none.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            httpx2.AsyncClient(
                headers={"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {token}"} if token else {}),
                timeout=httpx2.Timeout(_CONNECT_S, read=_READ_S),
                event_hooks={"response": [_limit]},
                trust_env=False,
            )
        )
        yield await stack.enter_async_context(
            streamable_http_client(url, http_client=client, max_sse_event_size=MAX_BYTES)
        )


async def _limit(response: httpx2.Response) -> None:
    if "content-encoding" in response.headers:  # a few compressed bytes may expand to a gigabyte
        raise httpx2.ReadError("the answer is compressed, which was not requested")
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        return  # limited by the event
    response.stream = _Limited(response.stream)


class _Limited(httpx2.AsyncByteStream):  # type: ignore[misc, unused-ignore] # Any where the extra is not installed
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_BYTES
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError(f"the answer has more than {MAX_BYTES:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


CONNECT_MS: Final = 20_000
"""How long an opening table waits for all servers together."""
_AGAIN_S: Final = (1.0, 5.0, 30.0, 120.0)


class McpServers:
    """Protocol of use: `open`, `tools`, `close`, in one event loop.

    Args:
        servers: The configured ones, by name.
        environ: Holds the variables that they name.
        connect_ms: See `CONNECT_MS`.
        again_s: Delays before reconnecting, growing with the number of failures.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServerSettings],
        environ: Mapping[str, str],
        *,
        connect_ms: int = CONNECT_MS,
        again_s: Sequence[float] = _AGAIN_S,
    ) -> None:
        self._servers = {name: _Server(name, each, environ, again_s) for name, each in servers.items()}
        self._supervisor = Supervisor()
        self._connect_ms = connect_ms

    async def open(self) -> None:
        """Wait until each server is connected or has failed. Never raises."""
        for name, server in self._servers.items():
            self._supervisor.start(f"MCP server {name}", server.run)
        await done_within(self._connect_ms, asyncio.gather(*(each.tried.wait() for each in self._servers.values())))
        for name, server in self._servers.items():
            if server.tools is None:
                why = server.why or f"it has not answered within {self._connect_ms:,} ms"
                logger.warning("the MCP server {} cannot be reached, and its tools are not offered: {}", name, why)
                await self._supervisor.stop(f"MCP server {name}")

    def tools(self, server: str) -> tuple[CallableTool, ...]:
        """The server's tools; empty if it was not reached."""
        found = self._servers[server]
        return tuple(CallableTool(spec, partial(found.call, spec)) for spec in found.tools or ())

    async def close(self) -> None:
        await self._supervisor.close()


@dataclass(slots=True, eq=False, repr=False)  # its environment has keys
class _Server:
    """
    Attributes:
        tools: None until it was reached.
        tried: The first attempt is over.
        why: Why it cannot be reached.
    """

    name: str
    settings: McpServerSettings
    environ: Mapping[str, str]
    again_s: Sequence[float]
    tools: tuple[ToolSpec, ...] | None = None
    tried: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""
    _client: Client | None = None
    _fell: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """The actor's body."""
        n_tried = 0
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._serve()
            except Exception as error:  # anything a foreign server does to a connection
                self.why = _reason(error)
            if self.tools is None:
                self.tried.set()
                return
            is_new = asyncio.get_running_loop().time() - began > self.again_s[-1]
            n_tried = 1 if is_new else n_tried + 1
            logger.warning("the MCP server {} failed: {}", self.name, self.why or "its connection was closed")
            await asyncio.sleep(self.again_s[min(n_tried, len(self.again_s)) - 1])

    async def call(self, spec: ToolSpec, arguments: Mapping[str, object]) -> Found:
        """
        Raises:
            Unavailable: It is not connected now.
        """
        if self._client is None:
            raise Unavailable(f"the MCP server {self.name} is not connected now")
        try:
            result = await self._client.call_tool(spec.name.partition(".")[2], dict(arguments))
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                return told([error.message], is_error=True)
            self._give_up()
            raise Unavailable(f"the MCP server {self.name} closed the connection") from error
        except Exception as error:
            # An invalid answer: of the wrong types, or too long. The rest of the stream is not read.
            self._give_up()
            raise Unavailable(f"the MCP server {self.name} returned an invalid answer: {_reason(error)}") from error
        texts = [_text_of(each) for each in result.content]
        if not any(texts) and result.structured_content:
            texts = [json.dumps(result.structured_content, ensure_ascii=False)]
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
        to, environ = self.settings, self.environ
        if to.command:
            return program(to.command, env={variable: environ[variable] for variable in to.env})
        return address(to.url or "", token=environ[to.token_env].strip() if to.token_env is not None else "")

    def _offered(self, tools: Sequence[Tool]) -> tuple[ToolSpec, ...]:
        allowed = self.settings.tools
        found: list[ToolSpec] = []
        for tool in tools:
            if allowed is not None and tool.name not in allowed:
                continue
            spec = spec_of(self.name, tool, usual_ms=self.settings.usual_ms)
            if spec is None:
                logger.warning("the tool {!r} of {} cannot be offered", plain(tool.name, most=80), self.name)
            elif len(found) < MAX_TOOLS:
                found.append(spec)
        if missing := {*(allowed or ())} - {tool.name for tool in tools}:
            logger.warning("the MCP server {} has no tool {}", self.name, ", ".join(sorted(missing)))
        return tuple(found)


def _reason(error: BaseException) -> str:
    """The first of several simultaneous errors, on one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return plain(str(error) or type(error).__name__, most=200)
