"""A small actor runtime: mailboxes, and a supervisor that restarts actors that crash.

- An actor is a coroutine function that takes messages from its mailbox until it is cancelled. It owns its state; others
  reach it only through its mailbox.
- Actors of one crash group restart together: when one raises, all of the group are cancelled and restarted.
  Mailboxes keep their unread messages. State that must survive a crash lives in the object whose method is the body.
- The supervisor gives up a group that crashes more than `max_restarts` times within `window_ms`. It then calls
  `on_given_up`; the other groups continue.
- Leaving the `async with` block cancels all actors and waits for them.
- An actor that ignores cancellation is abandoned at a deadline and logged. It does not delay restarts, and its later
  errors do not count as crashes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError

M = TypeVar("M")
T = TypeVar("T")

_RETRY_FATAL_S: Final = 60.0


async def follow(
    changes: Callable[[], AsyncGenerator[T, None]], take: Callable[[T], Awaitable[None]], *, what: str
) -> None:
    """Call `take` with each change, until cancelled.

    A permanent error, such as a wrong password or schema, is reported once and retried every minute.
    """
    has_told = False
    while True:
        try:
            async with aclosing(changes()) as news:
                async for change in news:
                    await take(change)
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


Body = Callable[[], Awaitable[None]]

RESTART_MS = 1_000
"""Deadline for the other actors of a group to end before the group restarts."""
END_MS = 8_000
"""Deadline for actors to end for good. An orderly close is much faster."""


@dataclass(slots=True)
class _Child:
    name: str
    body: Body
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class _Group:
    children: list[_Child] = field(default_factory=list)
    crashed_ms: deque[int] = field(default_factory=deque)
    is_given_up: bool = False
    is_restarting: bool = False


class Supervisor:
    """Runs actors in crash groups, by the rules of this module.

    Args:
        max_restarts: Crashes within the window after which a group is still restarted.
        window_ms: Length of that window.
        on_crash: Called with the group and the error after the group was restarted.
        on_given_up: Called with a group that will not be restarted.
    """

    def __init__(
        self,
        *,
        max_restarts: int = 5,
        window_ms: int = 60_000,
        on_crash: Callable[[str, BaseException], None] | None = None,
        on_given_up: Callable[[str], None] | None = None,
    ) -> None:
        self._max_restarts = max_restarts
        self._window_ms = window_ms
        self._on_crash = on_crash
        self._on_given_up = on_given_up
        self._groups: dict[str, _Group] = {}
        self._restarts: set[asyncio.Task[None]] = set()
        self._is_closing = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self, name: str, body: Body, *, group: str | None = None) -> None:
        """Start an actor. Without a group, it forms its own."""
        members = self._groups.setdefault(group or name, _Group())
        child = _Child(name, body)
        members.children.append(child)
        self._run(group or name, child)

    async def stop(self, group: str) -> None:
        """End a group for good. Waits until the deadline."""
        members = self._groups.pop(group, None)
        if members is not None:
            await _end(members, END_MS)

    async def close(self) -> None:
        """End all groups. Waits until the deadline."""
        self._is_closing = True
        for restart in tuple(self._restarts):
            restart.cancel()
        # In parallel, so that a hanging group does not delay the others.
        await asyncio.gather(*(_end(members, END_MS) for members in self._groups.values()))
        self._groups.clear()

    def _run(self, group: str, child: _Child) -> None:
        async def guarded() -> None:
            await child.body()

        child.task = asyncio.create_task(guarded(), name=f"actor:{child.name}")
        child.task.add_done_callback(lambda task: self._on_done(group, child, task))

    def _on_done(self, group: str, child: _Child, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if self._is_closing or task is not child.task:
            return
        members = self._groups.get(group)
        if error is None or members is None or members.is_given_up or members.is_restarting:
            return
        logger.opt(exception=error).error("actor {} crashed", child.name)
        now_ms = int(asyncio.get_running_loop().time() * 1000)
        members.crashed_ms.append(now_ms)
        while members.crashed_ms and now_ms - members.crashed_ms[0] > self._window_ms:
            members.crashed_ms.popleft()
        members.is_restarting = True
        restart = asyncio.create_task(self._restart(group, members, error), name=f"restart:{group}")
        self._restarts.add(restart)
        restart.add_done_callback(self._restarts.discard)

    async def _restart(self, group: str, members: _Group, error: BaseException) -> None:
        await _end(members, RESTART_MS)
        members.is_restarting = False
        if len(members.crashed_ms) > self._max_restarts:
            members.is_given_up = True
            logger.error("group {} crashed {} times and will not be restarted", group, len(members.crashed_ms))
            if self._on_given_up is not None:
                self._on_given_up(group)
            return
        for child in members.children:
            self._run(group, child)
        if self._on_crash is not None:
            self._on_crash(group, error)


async def _end(members: _Group, within_ms: int) -> None:
    """Cancel all actors of a group and wait for them. Abandon those still running at the deadline."""
    running = {child.task: child.name for child in members.children if child.task is not None and not child.task.done()}
    for task in running:
        task.cancel()
        # `_on_done` reports what they raise while ending.
    _, hanging = await asyncio.wait(running, timeout=within_ms / 1_000) if running else ((), ())
    for task in hanging:
        logger.error("actor {} did not close within {} ms; abandoned", running[task], within_ms)
