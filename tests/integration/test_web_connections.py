"""Connections that ask for nothing, or for ever: none of them stays, none of them fills the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from loguru import logger
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from glyphoxa.web.serving import Limits, Server, bind, is_of_this_machine, reached_hosts, url_of
from tests.support.patience import DEADLINE_MS, DEADLINE_S, until

HELLO = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def hello(_: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


async def endless(_: Request) -> StreamingResponse:
    async def more() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0)
            yield b"x" * 65_536

    return StreamingResponse(more())


@asynccontextmanager
async def a_server(limits: Limits) -> AsyncIterator[tuple[int, Server]]:
    server = Server(Starlette(routes=[Route("/", hello), Route("/endless", endless)]), limits=limits)
    with bind("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(server.listen(listener))
        await until(lambda: server.started)
        try:
            yield listener.getsockname()[1], server
        finally:
            server.stop()
            async with asyncio.timeout(DEADLINE_S):
                await serving


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Once the other side has closed."""
    async with asyncio.timeout(DEADLINE_S):
        with suppress(ConnectionResetError):
            while await reader.read(65_536):
                pass
    return True


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-", b"\r\n"])
async def test_a_request_whose_head_never_ends_is_given_up(sent: bytes) -> None:
    async with a_server(Limits(head_ms=200, request_ms=DEADLINE_MS)) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        assert await is_closed(reader)
        writer.close()


async def test_a_head_that_comes_byte_by_byte_is_given_up_too() -> None:
    async with a_server(Limits(head_ms=200, request_ms=DEADLINE_MS)) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        closed = asyncio.create_task(is_closed(reader))
        while not closed.done():
            writer.write(b"G")
            await asyncio.sleep(0.02)
        writer.close()


async def test_an_answer_that_nobody_takes_is_given_up() -> None:
    async with a_server(Limits(head_ms=500, request_ms=300)) as (port, server):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await until(lambda: bool(server.server_state.tasks))
        await until(lambda: not server.server_state.connections and not server.server_state.tasks)
        writer.close()


async def test_more_connections_than_are_allowed_are_closed_and_those_that_are_there_work() -> None:
    async with a_server(Limits(connections=4)) as (port, _), AsyncExitStack() as stack:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        first_reader, first = await asyncio.open_connection("127.0.0.1", port)
        stack.callback(first.close)
        for _, writer in idle:
            stack.callback(writer.close)
        late_reader, late = await asyncio.open_connection("127.0.0.1", port)
        assert await is_closed(late_reader)
        late.close()
        first.write(HELLO)
        async with asyncio.timeout(DEADLINE_S):
            assert (await first_reader.readline()).endswith(b"200 OK\r\n")


async def test_lack_of_file_descriptors_is_logged_once_a_minute() -> None:
    """asyncio tries again each second, and reports each connection that waits."""
    logged: list[str] = []
    sink = logger.add(lambda message: logged.append(str(message)), level="WARNING", format="{message}")
    async with a_server(Limits()):
        for _ in range(100):
            asyncio.get_running_loop().call_exception_handler({"message": "socket.accept() out of system resource"})
    logger.remove(sink)
    assert logged == ["no file descriptor is left for another browser's connection; trying again each second\n"]


# What is said of an address that others reach


def test_a_table_for_this_machine_alone_is_reached_by_no_other() -> None:
    with bind("127.0.0.1", 0) as listener:
        assert is_of_this_machine(listener)
        assert reached_hosts(listener) == []


def test_a_table_for_everybody_has_an_address_for_other_machines() -> None:
    with bind("0.0.0.0", 0) as listener:
        assert not is_of_this_machine(listener)
        port = listener.getsockname()[1]
        assert url_of(listener, scheme="https") == f"https://localhost:{port}/"
        assert url_of(listener, scheme="https", host="192.168.1.20") == f"https://192.168.1.20:{port}/"
        # None on a machine without a network.
        assert not {"localhost", "127.0.0.1", "0.0.0.0"}.intersection(reached_hosts(listener))
