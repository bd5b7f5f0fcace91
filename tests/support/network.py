"""The way between a table and its database, for a test to slow down or cut. The server at its end is the real one."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit


class Network:
    """A proxy in front of a server's socket.

    Attributes:
        dsn: The database, by this way.
        n_cut: Connections that were cut.
    """

    def __init__(self, dsn: str, server: Path) -> None:
        self.dsn = dsn
        self.n_cut = 0
        self.delay_ms = 0
        self.is_cut = False
        self._server = server
        self._changed = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._cut_after: tuple[bytes, asyncio.Event] | None = None

    def cut(self) -> None:
        """Every connection breaks, and no new one can be made."""
        self.is_cut = True
        self._break()

    def slow(self, delay_ms: int) -> None:
        """Whatever the table sends arrives so much later."""
        self.delay_ms = delay_ms

    def well(self) -> None:
        """Everything gets through again, also what is still on its way."""
        self.is_cut, self.delay_ms = False, 0
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def cut_after(self, sent: bytes) -> asyncio.Event:
        """Break once these bytes have passed to the server. Returns what is set then."""
        done = asyncio.Event()
        self._cut_after = (sent, done)
        return done

    def _break(self) -> None:
        for writer in tuple(self._writers):
            self.n_cut += 1
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        try:
            there, to_server = await asyncio.open_unix_connection(self._server)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, to_server}
        try:
            await asyncio.gather(self._pass(reader, to_server, is_asking=True), self._pass(there, writer))
        finally:
            self._writers -= {writer, to_server}
            for each in (writer, to_server):
                each.transport.abort()

    async def _pass(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, is_asking: bool = False) -> None:
        with contextlib.suppress(OSError):
            while sent := await source.read(65_536):
                if is_asking and self.delay_ms:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self.delay_ms / 1_000):
                            await self._changed.wait()
                to.write(sent)
                await to.drain()
                if is_asking and self._cut_after is not None and self._cut_after[0] in sent:
                    done, self._cut_after = self._cut_after[1], None
                    self.cut()
                    done.set()
        if not to.is_closing():
            to.close()


@asynccontextmanager
async def a_network(dsn: str) -> AsyncIterator[Network]:
    """A way to the database of this DSN, which must be that of an embedded server."""
    parts = urlsplit(dsn)
    asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
    socket = f".s.PGSQL.{asked['port']}"
    with tempfile.TemporaryDirectory(prefix="glyphoxa-way-") as directory:
        way = f"postgresql://{parts.username}@{parts.path}?host={quote(directory)}&port={asked['port']}"
        network = Network(way, Path(asked["host"]) / socket)
        server = await asyncio.start_unix_server(network._serve, path=Path(directory) / socket)
        try:
            yield network
        finally:
            network.cut()
            server.close()
            await server.wait_closed()


@contextmanager
def over_tcp(dsn: str, host: str) -> Iterator[str]:
    """The database of an embedded server at an address of this machine, for processes in another network."""
    parts = urlsplit(dsn)
    asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
    network = Network(dsn, Path(asked["host"]) / f".s.PGSQL.{asked['port']}")
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(network._serve, host, 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"postgresql://{parts.username}@{host}:{server.sockets[0].getsockname()[1]}{parts.path}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
