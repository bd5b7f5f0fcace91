"""Ways to a server outside, on which it can send no more at a time than fits between two pieces of sound.

The SDK's own read a message of any length, in the event loop of the table.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

import anyio
import httpx2
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

MOST_BYTES: Final = 256 * 1024
"""Of one message."""
_CONNECT_S: Final = 5.0
_READ_S: Final = 30.0
_ENDS_WITHIN_S: Final = 2.0


@asynccontextmanager
async def program(command: Sequence[str], *, env: Mapping[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """A program that is started, and spoken to on its standard input and output. It is ended at the end.

    Args:
        env: What it is given besides the few variables that every program needs. Keys of providers are not among them.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=get_default_environment() | dict(env),
        limit=MOST_BYTES,
        start_new_session=True,
    )
    heard, from_server = anyio.create_memory_object_stream[Any](0)
    to_server, to_be_said = anyio.create_memory_object_stream[Any](0)

    async def read() -> None:
        assert process.stdout is not None  # noqa: S101 - a pipe, as was asked for
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
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDS_WITHIN_S):
                await process.wait()


@asynccontextmanager
async def address(url: str, *, token: str) -> AsyncIterator[tuple[Any, Any]]:
    """A server's address, for streamable HTTP.

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
            streamable_http_client(url, http_client=client, max_sse_event_size=MOST_BYTES)
        )


async def _limit(response: httpx2.Response) -> None:
    if "content-encoding" in response.headers:  # a few packed bytes may be a gigabyte
        raise httpx2.ReadError("the answer is packed, which nobody asked for")
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        return  # limited by the event
    response.stream = _Limited(response.stream)


class _Limited(httpx2.AsyncByteStream):  # type: ignore[misc, unused-ignore] # Any where the extra is not installed
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_BYTES
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError(f"the answer has more than {MOST_BYTES:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
