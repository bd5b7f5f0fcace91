"""Sends to a recogniser's connection, so that nothing that happens at the table waits for the network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from loguru import logger

from glyphoxa_processors.deepgram_connection import LONGEST_REPEATED_S

Connection = TypeVar("Connection")
Message = TypeVar("Message")


class DeepgramOutbox(Generic[Connection, Message]):
    """What is still to be sent, in order. Who puts something in does not wait.

    A connection that does not take a message in time, or lags too far behind, is lost: what waits for it is dropped
    and the socket is cut. Sound is worth repeating to the next one, a late transcript is worth nothing.

    Args:
        send: Gives one message to the connection that is open. Its exceptions are those of a lost connection.
        is_open: Whether a connection is still the one that is talked to.
        cut: Ends a connection at once; a closing handshake would wait as long as the message did.
        start: Makes a task of the processor.
    """

    within_s = 1.0
    """A third of what a turn waits for its words. A message waits at all only when the connection's buffers are full,
    which takes seconds of sound."""

    def __init__(
        self,
        send: Callable[[Connection, Message], Awaitable[None]],
        *,
        is_open: Callable[[Connection], bool],
        cut: Callable[[Connection], None],
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._send = send
        self._is_open = is_open
        self._cut = cut
        self._start = start
        self._waiting: asyncio.Queue[tuple[Connection, Message, float]] = asyncio.Queue()
        self._waiting_s = 0.0
        self._lost: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    def put(self, connection: Connection, message: Message, *, lasts_s: float = 0.0) -> None:
        """`lasts_s`: how much sound the message is."""
        if connection is self._lost:
            return
        if self._waiting_s > 2 * LONGEST_REPEATED_S:
            self._lose(connection, "it is too slow for the sound")
            return
        self._waiting_s += lasts_s
        self._waiting.put_nowait((connection, message, lasts_s))
        if self._task is None:
            self._task = self._start(self._run())

    def close(self) -> asyncio.Task[None] | None:
        """No more is sent. Returns what is to be cancelled."""
        task, self._task = self._task, None
        return task

    async def _run(self) -> None:
        while True:
            connection, message, lasts_s = await self._waiting.get()
            self._waiting_s -= lasts_s
            if connection is self._lost or not self._is_open(connection):
                continue
            try:
                async with asyncio.timeout(self.within_s):
                    await self._send(connection, message)
            except TimeoutError:
                self._lose(connection, f"it took nothing for {self.within_s:g} s")
            except Exception as error:  # the sockets' own
                self._lose(connection, type(error).__name__)

    def _lose(self, connection: Connection, why: str) -> None:
        self._lost = connection
        if self._is_open(connection):
            logger.warning("a recogniser's connection is given up: {}", why)
            self._cut(connection)
