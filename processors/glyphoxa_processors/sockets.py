"""Connections to providers over WebSockets.

Rules:

- A provider's wire is only its messages. It belongs to one connection.
- A message that cannot be read is skipped. The log names the first one of a connection, without its content.
- The next connection is opened in advance. If that fails, the next request tries again and reports the failure.
- A connection that is given up is cut: a closing handshake would wait behind what is queued.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from loguru import logger
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.protocol import State

from glyphoxa.actors.deadline import end_tasks
from glyphoxa.chat.questions import json_object

OPEN_WITHIN_S: Final = 5.0
FAULTS: Final = (WebSocketException, OSError, TimeoutError)
"""Raised by opening and using a socket."""
_CLOSE_WITHIN_S = 0.5
_PING_S = 10
"""A server that answers no ping for this long is lost."""
_MAX_AGE_S = 8 * 60
"""An older connection is replaced before use: servers end them after ten minutes or an hour."""
_LONGEST = 300


class Wire(Protocol):
    """A provider's messages on one connection.

    Attributes:
        name: For the log.
        opening: Sent first, and answered by the server's first message. Empty: nothing.
    """

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def opening(self) -> str: ...

    def read(self, message: str | bytes, /) -> Any:
        """Read a message of the server.

        Raises:
            ValueError, TypeError, LookupError, AttributeError: It cannot be read, and is skipped.
        """
        ...


W = TypeVar("W", bound=Wire)


class ProviderSocket(Generic[W]):
    """One connection to a provider. All methods raise `FAULTS` if it is lost."""

    def __init__(self, wire: W) -> None:
        self.wire = wire
        self._socket: ClientConnection
        self._opened_s = 0.0
        self._skipped = False

    async def open(self) -> Self:
        """Connect. See `fault_of`."""
        self._socket = await connect(
            self.wire.url,
            additional_headers=dict(self.wire.headers),
            compression=None,  # costs time and does not shrink sound
            open_timeout=OPEN_WITHIN_S,
            close_timeout=_CLOSE_WITHIN_S,
            max_size=None,
            ping_interval=_PING_S,
            ping_timeout=_PING_S,
        )
        try:
            if self.wire.opening:
                await self.send(self.wire.opening)
                await self.receive(within_s=OPEN_WITHIN_S)
        except BaseException:  # including cancellation
            self.cut()
            raise
        self._opened_s = asyncio.get_running_loop().time()
        return self

    def serves(self, wire: Wire) -> bool:
        """Return whether a request of this wire may use the connection."""
        age_s = asyncio.get_running_loop().time() - self._opened_s
        return self._socket.state is State.OPEN and age_s < _MAX_AGE_S and self.wire.opening == wire.opening

    async def send(self, *messages: str | bytes) -> None:
        for message in messages:
            await self._socket.send(message)

    async def receive(self, *, within_s: float | None = None) -> Any:
        """Return the next message, as the wire reads it.

        Raises:
            TimeoutError: None arrived in this time.
        """
        while True:
            async with asyncio.timeout(within_s):
                message = await self._socket.recv()
            try:
                return self.wire.read(message)
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                if not self._skipped:
                    # Its content is what people said.
                    logger.warning("{}: skips a message that it cannot read: {}", self.wire.name, type(error).__name__)
                self._skipped = True

    @property
    def ending(self) -> str:
        """How the connection ended, in one line."""
        return f"code {self._socket.close_code} {self._socket.close_reason or ''}".strip()

    def cut(self) -> None:
        """Close it at once."""
        self._socket.transport.abort()


class Connections(Generic[W]):
    """The connections to one service. One is kept open in advance."""

    def __init__(self) -> None:
        self._spare: ProviderSocket[W] | None = None
        self._opening: asyncio.Task[None] | None = None

    def prepare(self, wire: W) -> None:
        """Open a connection in the background, unless one that serves this wire is open or any is being opened."""
        if (self._opening is None or self._opening.done()) and not self._serves(wire):
            self._opening = asyncio.create_task(self._open(wire), name=f"connection of {wire.name}")

    async def take(self, wire: W) -> ProviderSocket[W]:
        """Return an open connection for this wire, to be cut or given back. See `ProviderSocket.open`."""
        if self._opening is not None:
            await asyncio.wait({self._opening})
        if self._serves(wire) and self._spare is not None:
            spare, self._spare = self._spare, None
            return spare
        return await ProviderSocket(wire).open()

    def give_back(self, socket: ProviderSocket[W]) -> None:
        """Keep a connection for the next request."""
        self._drop_spare()
        self._spare = socket

    async def close(self) -> None:
        if self._opening is not None:
            await end_tasks(self._opening)
        self._drop_spare()

    def _serves(self, wire: W) -> bool:
        return self._spare is not None and self._spare.serves(wire)

    def _drop_spare(self) -> None:
        if self._spare is not None:
            self._spare.cut()
        self._spare = None

    async def _open(self, wire: W) -> None:
        try:
            self.give_back(await ProviderSocket(wire).open())
        except Exception as error:
            # The next request reports it.
            logger.debug("{}: no connection in advance: {}", wire.name, type(error).__name__)


def socket_url(base_url: str) -> str:
    """Return the address of a provider with a scheme for sockets, without a final slash.

    >>> socket_url("https://api.example.com/")
    'wss://api.example.com'
    >>> socket_url("localhost:8080")
    'wss://localhost:8080'
    """
    scheme, _, host = base_url.rstrip("/").rpartition("://")
    return f"{'ws' if scheme in ('http', 'ws') else 'wss'}://{host}"


def object_in(message: str | bytes) -> dict[str, Any]:
    """Parse a message.

    Raises:
        ValueError: It is not a JSON object.
    """
    told = json_object(message)
    if told is None:
        raise ValueError("not a JSON object")
    return told


def fault_of(error: BaseException) -> str:
    """Describe in one line why a connection could not be opened, with the reason that the server gives."""
    if not isinstance(error, InvalidStatus):
        return f"could not be reached: {str(error) or type(error).__name__}"[:_LONGEST]
    response = error.response
    why = reason_in(json_object(response.body or b"")) or response.reason_phrase
    return f"refused the connection: HTTP {response.status_code} {why}"[:_LONGEST]


def reason_in(told: object) -> str:
    """Return the reason in an error message of a provider; "" if it gives none."""
    if not isinstance(told, dict):
        return ""
    nested = next((told[key] for key in ("error", "detail") if isinstance(told.get(key), dict)), None)
    if nested is not None:
        return reason_in(nested)
    keys = ("err_code", "code", "err_msg", "title", "error", "message", "description", "detail", "reason")
    return " ".join(str(told[key]) for key in keys if told.get(key))[:_LONGEST]


def is_refusal(error: BaseException) -> bool:
    """Return whether the server refused the request itself, so that repeating it does not help."""
    return (
        isinstance(error, InvalidStatus)
        and 400 <= error.response.status_code < 500
        and error.response.status_code not in (408, 429)
    )
