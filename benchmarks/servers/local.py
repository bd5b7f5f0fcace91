"""Provide what the stand-ins for cloud providers share: a local port, and planned failures.

They speak the providers' wire protocols, so that the real client libraries run against them unchanged.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from array import array
from collections.abc import Callable
from functools import lru_cache
from types import TracebackType
from typing import Self

from aiohttp import web

_LOOP_IS_LATE_S = 0.0012
"""Its waits are rounded up to milliseconds."""


class LocalServer:
    """An HTTP and WebSocket server on a free port of 127.0.0.1, for the time of the `async with` block.

    Args:
        key: The only key it accepts; None accepts any.
        refuse_with: An HTTP status that every request gets instead of an answer (401, 429, 500).
    """

    cancels_on_hang_up = False
    """Whether a request is cancelled when its client is gone."""

    def __init__(self, *, key: str | None = None, refuse_with: int | None = None) -> None:
        self.key = key
        self.refuse_with = refuse_with
        self.port = 0
        self._runner: web.AppRunner | None = None
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    async def wait_until(self, true: Callable[[], bool], *, patience_s: float = 120) -> None:
        """Wait until the received messages meet the condition.

        Raises:
            TimeoutError: It did not within `patience_s`.
        """
        if true():
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((true, done))
        async with asyncio.timeout(patience_s):
            await done

    def noted(self) -> None:
        """Report a received message: conditions are checked again."""
        for true, done in self._waiting:
            if not done.done() and true():
                done.set_result(None)

    def routes(self) -> list[web.RouteDef]:
        raise NotImplementedError

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=32 * 1024 * 1024)
        app.add_routes(self.routes())
        # A test that leaves a socket open must not delay the suite for a minute.
        self._runner = web.AppRunner(app, handler_cancellation=self.cancels_on_hang_up, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def refusal(self, request: web.Request) -> int | None:
        """Return the status with which this request is refused, or None."""
        if self.refuse_with is not None:
            return self.refuse_with
        if self.key is None:
            return None
        given = (
            request.headers.get("Authorization", "").split(" ", 1)[-1]
            or request.headers.get("x-goog-api-key", "")
            or request.headers.get("xi-api-key", "")
            or request.headers.get("x-api-key", "")
        )
        return None if given == self.key else 401


async def wait_ms(delay_ms: float) -> None:
    """Wait for a provider's delay. Returns at once without one, so that a test without delays never sleeps."""
    if delay_ms > 0:
        await asyncio.sleep(delay_ms / 1_000)


async def until(due_s: float) -> None:
    """Wait until that time of the loop's clock, to a tenth of a millisecond. Returns at once if it has passed.

    A wait of the loop ends up to 1 ms late, which would add up in a stream of events.
    """
    loop = asyncio.get_running_loop()
    left_s = due_s - loop.time()
    if left_s > _LOOP_IS_LATE_S:
        await asyncio.sleep(left_s - _LOOP_IS_LATE_S)
    while loop.time() < due_s:  # noqa: ASYNC110 - there is no event but the time
        await asyncio.sleep(0)


def hang_up(request: web.Request) -> None:
    """Drop the connection in the middle, as a crashing provider does."""
    if request.transport is not None:
        request.transport.abort()


@lru_cache(maxsize=256)
def tone(text: str, *, rate_hz: int, ms_per_character: int = 60) -> bytes:
    """Return a tone about as long as the spoken text. Mono s16le; each text has its own pitch."""
    pitch_hz = 180 + hashlib.sha256(text.encode()).digest()[0]
    n_samples = rate_hz * ms_per_character * max(1, len(text)) // 1_000
    step = 2 * math.pi * pitch_hz / rate_hz
    return array("h", (int(8_000 * math.sin(step * i)) for i in range(n_samples))).tobytes()
