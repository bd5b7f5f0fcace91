"""The way between a browser and the server, for a test to freeze: connections stay open and nothing comes through."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Literal

Way = Literal["both", "to_page"]


class FrozenNetwork:
    """A proxy on a port of its own.

    Attributes:
        server: The server's own address.
        url: The server, by this way.
    """

    def __init__(self, server: str) -> None:
        self.server = server
        self.url = ""
        self._port = int(server.rpartition(":")[2])
        self._frozen: frozenset[str] = frozenset()
        self._late = False
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._ways: set[asyncio.Task[None]] = set()

    @contextmanager
    def frozen(self, way: Way = "both", *, late: bool = False) -> Iterator[None]:
        """Nothing comes through.

        Args:
            way: Which direction is frozen.
            late: What is sent meanwhile arrives afterwards; else it never does, and nothing more on that connection.
        """
        self._frozen = frozenset({"to_page"} if way == "to_page" else {"to_page", "to_server"})
        self._late = late
        self._thawed.clear()
        try:
            yield
        finally:
            self._frozen = frozenset()
            self._thawed.set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._ways.add(task)
        try:
            there, to_server = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                await asyncio.gather(self._pass(reader, to_server, "to_server"), self._pass(there, writer, "to_page"))
            finally:
                to_server.transport.abort()
        except OSError:
            pass
        finally:
            writer.transport.abort()
            self._ways.discard(task)

    async def _pass(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, way: str) -> None:
        is_swallowed = False
        with contextlib.suppress(OSError):
            while sent := await source.read(65_536):
                if way in self._frozen:
                    is_swallowed = is_swallowed or not self._late
                    if self._late:
                        await self._thawed.wait()
                if not is_swallowed:
                    to.write(sent)
                    await to.drain()
        # A frozen network does not tell that the other side has closed, either.
        if way in self._frozen or is_swallowed:
            if not self._late:
                return
            await self._thawed.wait()
        to.close()

    async def close(self) -> None:
        for task in self._ways:
            task.cancel()
        await asyncio.gather(*self._ways, return_exceptions=True)


@asynccontextmanager
async def a_frozen_network(url: str) -> AsyncIterator[FrozenNetwork]:
    """A way to the server at this address."""
    network = FrozenNetwork(url)
    server = await asyncio.start_server(network.connect, "127.0.0.1", 0)
    network.url = f"http://localhost:{server.sockets[0].getsockname()[1]}"
    try:
        yield network
    finally:
        server.close()
        await network.close()
