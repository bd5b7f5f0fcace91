"""One browser's HTTP connection, which must ask for something in time and take the answer in time.

uvicorn gives a connection time after its first answer only: one that never finishes its first request stays for ever,
and takes a file descriptor with it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import h11
from loguru import logger
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Attributes:
        head_ms: The head of a request must be there by then.
        request_ms: And its answer must be taken by then. Longer than any deadline of the page's routes.
        connections: So many at once, websockets included.
    """

    head_ms: int = 10_000
    request_ms: int = 90_000
    connections: int = MOST_CONNECTIONS


class LimitedConnection(H11Protocol):
    """See the module. A websocket leaves it with its upgrade."""

    def __init__(self, *args: Any, limits: Limits, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= self._limits.connections:
            self._is_refused = True
            transport.abort()
            return
        super().connection_made(transport)
        self._expect(self._limits.head_ms)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if not self._is_refused:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        had_head = self.headers is not None
        super().data_received(data)
        if self._timer is not None and not had_head and self.headers is not None:
            self._expect(self._limits.request_ms)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._stop_timer()
        super().handle_websocket_upgrade(event)

    def _expect(self, within_ms: int) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(within_ms / 1_000, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        logger.debug("a connection did not finish its request in time")
        self.transport.abort()
