"""The HTTP connections of OpenAI's clients, kept open between two turns."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import Any

from loguru import logger
from openai import DefaultAsyncHttpxClient

IDLE_S = 240.0
"""Minutes pass between two answers of an NPC, and a new connection costs two or three ways there and back. What stands
in between forgets one that is idle after four minutes at the earliest (Azure; AWS: 350 s); a server that closes it says
so."""


def kept_open() -> Any:
    """An HTTP client for `AsyncOpenAI`, whose own forgets a connection after five seconds. To be closed by its user."""
    kind: Any = DefaultAsyncHttpxClient
    # httpx, or what has taken its place: whichever this SDK is made of.
    http = importlib.import_module(kind.__base__.__module__.partition(".")[0])
    return kind(limits=http.Limits(max_connections=1_000, max_keepalive_connections=100, keepalive_expiry=IDLE_S))


class OpenAhead:
    """Sees to it that a connection is open when a request comes.

    An answer that is called off takes its connection with it, as HTTP/1.1 has no other way; so the next request would
    pay for a new one, often at the same pause.

    Args:
        http: Where connections are kept.
        address: Of the service. It is told nothing but that somebody connects, with no key.
        clock: Seconds.
    """

    within_s = 3.0

    def __init__(self, http: Any, address: str, *, clock: Callable[[], float]) -> None:
        self._http = http
        self._address = address
        self._clock = clock
        self._open_until_s = 0.0

    @property
    def is_open(self) -> bool:
        return self._clock() < self._open_until_s

    def in_use(self) -> None:
        """A request is on its way. What becomes of its connection is not known before `is_free`."""
        self._open_until_s = 0.0

    def is_free(self) -> None:
        """The answer was read to its end."""
        self._open_until_s = self._clock() + IDLE_S

    async def open(self) -> None:
        """Connect, unless that has been done."""
        if self.is_open:
            return
        self.is_free()  # nobody else needs to
        try:
            async with asyncio.timeout(self.within_s):
                await self._http.head(self._address)
        except Exception as error:  # the SDK's HTTP client's own; the request itself will tell
            self.in_use()
            logger.debug("no connection ahead of time: {}", type(error).__name__)
