"""Serve on an address of this machine: uvicorn within limits."""

from __future__ import annotations

import asyncio
import errno
import math
import resource
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from typing import Any, NamedTuple

import h11
import uvicorn
from loguru import logger
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from glyphoxa.adapters.certificates import Tls
from glyphoxa.domain.errors import InvalidInput, Unavailable

CLOSE_WITHIN_S = 5
MAX_MESSAGE_BYTES = 16 * 1024
"""Limit of a websocket's message, and of a request's head."""
MOST_CONNECTIONS = 256
LOST_AFTER_MS = 30_000
"""A connection that acknowledged nothing for so long is gone, whatever is still to be sent on it."""
COMPLAIN_EVERY_S = 60
BACKLOG = 64
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


def bind(host: str, port: int, *, options: tuple[str, str] = ("--host", "--port")) -> socket.socket:
    """Bind an address without listening yet, so that a taken port is found before models load.

    Args:
        options: Names of what sets host and port, for the messages.

    Raises:
        Unavailable: The port is in use, or may not be used.
        InvalidInput: The host is not an address of this machine.
    """
    host_option, port_option = options
    if not 0 <= port <= 65_535:
        raise InvalidInput(f"{port_option} {port} is not a port; valid: 0 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        raise InvalidInput(f"{host_option} {host!r} is not an address or a name of this machine") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; its connections inherit it
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_AFTER_MS)
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Unavailable(
                f"port {port} on {host} is in use; choose another with {port_option} (0 takes any free one)"
            ) from error
        if error.errno == errno.EACCES:
            raise Unavailable(f"port {port} is reserved for root; choose one above 1023 with {port_option}") from error
        raise InvalidInput(f"cannot serve on {host}:{port}: {error.strerror}") from error
    return listener


def url_of(listener: socket.socket, *, scheme: str = "http", host: str | None = None) -> str:
    """Return the address to open on this machine, or on others at one of `reached_hosts`."""
    own, port = listener.getsockname()[:2]
    name = host or ("localhost" if own in (*_EVERYWHERE, "127.0.0.1", "::1") else own)
    return f"{scheme}://[{name}]:{port}/" if ":" in name else f"{scheme}://{name}:{port}/"


def is_of_this_machine(listener: socket.socket) -> bool:
    """Return whether only this machine can reach it."""
    return ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


def reached_hosts(listener: socket.socket) -> list[str]:
    """Return this machine's addresses for others: that of the default route first, IPv6 last."""
    host = listener.getsockname()[0]
    if is_of_this_machine(listener):
        return []
    if host not in _EVERYWHERE:
        return [host]
    import ifaddr

    routed = [_routed_address(family) for family in dict.fromkeys((socket.AF_INET, listener.family))]
    # IPv6 addresses have a tuple here.
    names = [ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips if isinstance(ip.ip, str)]
    others = [name for name in names if not (ip_address(name).is_loopback or ip_address(name).is_link_local)]
    ipv4, *ipv6 = routed
    return list(dict.fromkeys(name for name in (ipv4, *others, *ipv6) if name))


def _routed_address(family: int) -> str | None:
    """Return this machine's address on the default route, without sending anything; None without such a route."""
    outside = "192.0.2.1" if family == socket.AF_INET else "2001:db8::1"  # for documentation: nobody has them
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((outside, 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


Handler = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]


def _most_connections() -> int:
    """Return a share of this process's file descriptors; files, database and sound need the others."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_CONNECTIONS if most == resource.RLIM_INFINITY else max(16, min(MOST_CONNECTIONS, most // 4))


class Limits(NamedTuple):
    """
    Attributes:
        head_ms: The head of a request must be there by then.
        request_ms: And its answer must be taken so long after that. Longer than any deadline of the page's routes.
        connections: So many at once, websockets included.
    """

    head_ms: int = 10_000
    request_ms: int = 90_000
    connections: int = MOST_CONNECTIONS


class _LimitedConnection(H11Protocol):
    """Adds limits that uvicorn has no setting for.

    uvicorn times a connection out only after its first answer, and its `limit_concurrency` closes no idle connection:
    it refuses everybody while that many are open. A websocket leaves this protocol with its upgrade, and is pinged.
    """

    def __init__(self, *args: Any, limits: Limits, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits = limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            transport.abort()
        self._deadline = self.loop.call_later(self._limits.head_ms / 1_000, self._head_is_due)

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._deadline.cancel()
        super().handle_websocket_upgrade(event)

    def _head_is_due(self) -> None:
        if not self.headers:
            self.transport.abort()
        else:
            self._deadline = self.loop.call_later(self._limits.request_ms / 1_000, self.transport.abort)


class Server(uvicorn.Server):
    """uvicorn that leaves signals to its caller: its own handling cuts our clean-up short.

    Args:
        trusted_proxies: Addresses or networks whose `X-Forwarded-For` says who asks.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits | None = None,
        tls: Tls | None = None,
        trusted_proxies: Sequence[str] = (),
    ) -> None:
        self._complained_s = -math.inf
        super().__init__(
            uvicorn.Config(
                app,
                http=partial(_LimitedConnection, limits=limits or Limits(connections=_most_connections())),  # type: ignore[arg-type]
                backlog=BACKLOG,
                log_level="warning",
                access_log=False,
                ws_max_size=MAX_MESSAGE_BYTES,
                h11_max_incomplete_event_size=MAX_MESSAGE_BYTES,
                timeout_graceful_shutdown=CLOSE_WITHIN_S,
                server_header=False,
                proxy_headers=bool(trusted_proxies),
                forwarded_allow_ips=[*trusted_proxies],
                ssl_certfile=tls.certificate if tls is not None else None,
                ssl_keyfile=tls.key if tls is not None else None,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def listen(self, listener: socket.socket) -> None:
        """Serve until stopped. On return connections are closed and the app's lifespan has ended."""
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(partial(self._on_trouble, before))
        try:
            await self.serve(sockets=[listener])
        finally:
            loop.set_exception_handler(before)

    def _on_trouble(self, before: Handler | None, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a lack of file descriptors now and then: asyncio reports it for each connection."""
        if "accept() out of system resource" not in context.get("message", ""):
            before(loop, context) if before is not None else loop.default_exception_handler(context)
        elif loop.time() - self._complained_s > COMPLAIN_EVERY_S:
            self._complained_s = loop.time()
            logger.warning("no file descriptor is left for another browser's connection; trying again each second")

    def stop(self) -> None:
        """Stop soon; when called twice, stop at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
