"""A small actor runtime: mailboxes, and a supervisor that restarts actors that crash.

- An actor is a coroutine function that takes messages from its mailbox until it is cancelled. It owns its state; others
  reach it only through its mailbox.
- An actor that raises is restarted at once; the others continue. Its mailbox keeps its unread messages. State that must
  survive a crash lives in the object whose method is the body.
- The supervisor gives up an actor that crashes more than `max_restarts` times within a minute. It then calls
  `on_given_up`.
- `close` cancels all actors and waits for them.
- An actor that ignores cancellation is abandoned at a deadline and logged. Its later errors do not count as crashes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from loguru import logger

from glyphoxa.actors.clock import loop_ms
from glyphoxa.domain.errors import GlyphoxaError, Unavailable

M = TypeVar("M")
T = TypeVar("T")

_RETRY_S: Final = 1.0
_RETRY_FATAL_S: Final = 60.0
_CRASHES_WITHIN_MS: Final = 60_000


async def follow(
    changes: Callable[[], AsyncGenerator[T, None]], take: Callable[[T], Awaitable[None]], *, what: str
) -> None:
    """Call `take` with each change, until cancelled.

    A permanent error, such as a wrong password or schema, is reported once and retried every minute; `Unavailable` is
    retried every second.

    Args:
        changes: Begins with a change for whatever happened before.
    """
    has_told = False
    while True:
        try:
            async with aclosing(changes()) as news:
                async for change in news:
                    await take(change)
        except Unavailable as error:
            logger.debug("{} cannot be read now: {}", what, error)
            await asyncio.sleep(_RETRY_S)
        except GlyphoxaError as error:
            if not has_told:
                logger.error("{} cannot be read until this is fixed: {}", what, error)
            has_told = True
            await asyncio.sleep(_RETRY_FATAL_S)


class MailboxFull(RuntimeError):
    """An actor does not read fast enough: its mailbox holds `capacity` unread messages."""


class Mailbox(Generic[M]):
    """The messages to one actor, in the order in which they were posted.

    Args:
        capacity: Unread messages at which `post` raises. A live table never reaches it, so a stuck actor is noticed
            before it exhausts memory.
        is_expendable: Selects messages that may be dropped to make room, oldest first.
    """

    def __init__(
        self, name: str, *, capacity: int = 10_000, is_expendable: Callable[[M], bool] = lambda _: False
    ) -> None:
        self.name = name
        self._capacity = capacity
        self._is_expendable = is_expendable
        self._unread: deque[M] = deque()
        self._has_mail = asyncio.Event()

    def post(self, message: M) -> None:
        """Add a message. Returns at once.

        Raises:
            MailboxFull: The actor does not read its messages.
        """
        if len(self._unread) >= self._capacity:
            self._make_room()
        self._unread.append(message)
        self._has_mail.set()

    async def receive(self) -> M:
        """Return the oldest unread message. Waits for one if there is none."""
        while not self._unread:
            self._has_mail.clear()
            await self._has_mail.wait()
        return self._unread.popleft()

    def take_all(self) -> list[M]:
        """Remove and return all unread messages, oldest first. Safe in any thread while others post."""
        taken: list[M] = []
        with suppress(IndexError):  # the deque is empty
            while True:
                taken.append(self._unread.popleft())
        return taken

    def __len__(self) -> int:
        return len(self._unread)

    def _make_room(self) -> None:
        # Drop half of them at once, so that a flood does not scan the queue for each message.
        expendable = [at for at, message in enumerate(self._unread) if self._is_expendable(message)]
        if not expendable:
            raise MailboxFull(f"mailbox of {self.name!r} holds {self._capacity} unread messages")
        gone = set(expendable[: (len(expendable) + 1) // 2])
        self._unread = deque(message for at, message in enumerate(self._unread) if at not in gone)


Body = Callable[[], Coroutine[Any, Any, None]]

END_MS = 8_000
"""Deadline for actors to end for good. An orderly close is much faster."""


@dataclass(slots=True, eq=False)
class _Actor:
    body: Body
    task: asyncio.Task[None] | None = None
    crashed_ms: deque[int] = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class Supervisor:
    """Runs actors, by the rules of this module.

    Args:
        max_restarts: Crashes within a minute after which an actor is still restarted.
        on_crash: Called with the actor's name and the error after the actor was restarted.
        on_given_up: Called with the name of an actor that will not be restarted.
    """

    max_restarts: int = 5
    on_crash: Callable[[str, BaseException], None] | None = None
    on_given_up: Callable[[str], None] | None = None
    _actors: dict[str, _Actor] = field(default_factory=dict)
    _is_closing: bool = False

    def start(self, name: str, body: Body) -> None:
        """Start an actor. No other one may have its name."""
        actor = self._actors[name] = _Actor(body)
        self._run(name, actor)

    async def stop(self, name: str) -> None:
        """End an actor for good. Waits until the deadline."""
        actor = self._actors.pop(name, None)
        if actor is not None:
            await _end(name, actor)

    async def close(self) -> None:
        """End all actors. Waits until the deadline."""
        self._is_closing = True
        # In parallel, so that a hanging actor does not delay the others.
        await asyncio.gather(*(_end(name, actor) for name, actor in self._actors.items()))
        self._actors.clear()

    def _run(self, name: str, actor: _Actor) -> None:
        actor.task = asyncio.create_task(actor.body(), name=f"actor:{name}")
        actor.task.add_done_callback(lambda task: self._on_done(name, actor, task))

    def _on_done(self, name: str, actor: _Actor, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None or self._is_closing or self._actors.get(name) is not actor:
            return
        logger.opt(exception=error).error("actor {} crashed", name)
        now_ms = loop_ms()
        crashed_ms = actor.crashed_ms
        crashed_ms.append(now_ms)
        while crashed_ms and now_ms - crashed_ms[0] > _CRASHES_WITHIN_MS:
            crashed_ms.popleft()
        if len(crashed_ms) > self.max_restarts:
            logger.error("actor {} crashed {} times and will not be restarted", name, len(crashed_ms))
            if self.on_given_up is not None:
                self.on_given_up(name)
            return
        self._run(name, actor)
        if self.on_crash is not None:
            self.on_crash(name, error)


async def _end(name: str, actor: _Actor) -> None:
    """Cancel an actor and wait for it. Abandon it if it still runs at the deadline."""
    if actor.task is None or actor.task.done():
        return
    actor.task.cancel()
    _, hanging = await asyncio.wait({actor.task}, timeout=END_MS / 1_000)
    if hanging:
        logger.error("actor {} did not close within {} ms; abandoned", name, END_MS)
