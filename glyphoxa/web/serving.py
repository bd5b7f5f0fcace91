from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from glyphoxa.domain.errors import InvalidInput, Unavailable

CLOSE_WITHIN_S = 5
MAX_MESSAGE_BYTES = 16 * 1024


def bind(host: str, port: int) -> socket.socket:
    """Take an address without listening on it yet, so that a taken port is found before models are loaded.

    Raises:
        Unavailable: The port is in use, or may not be used.
        InvalidInput: The host is not an address of this machine.
    """
    if not 0 <= port <= 65_535:
        raise InvalidInput(f"--port {port} is not a port; valid: 0 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        raise InvalidInput(f"--host {host!r} is not an address or a name of this machine") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Unavailable(
                f"port {port} on {host} is in use; choose another with --port (0 takes any free one)"
            ) from error
        if error.errno == errno.EACCES:
            raise Unavailable(f"port {port} is reserved for root; choose one above 1023 with --port") from error
        raise InvalidInput(f"cannot serve on {host}:{port}: {error.strerror}") from error
    return listener


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::", "127.0.0.1", "::1"):  # noqa: S104 - compared, not bound
        host = "localhost"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Server(uvicorn.Server):
    """uvicorn that leaves signals to whoever runs it: its own way cuts our clean-up short."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                ws_max_size=MAX_MESSAGE_BYTES,
                timeout_graceful_shutdown=CLOSE_WITHIN_S,
                server_header=False,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def listen(self, listener: socket.socket) -> None:
        """Serve until stopped. Connections are closed and the app's lifespan has ended when this returns."""
        await self.serve(sockets=[listener])

    def stop(self) -> None:
        """Stop soon; asked twice, stop at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
