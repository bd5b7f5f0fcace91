"""A small actor runtime: mailboxes, and a supervisor that restarts actors that crash.

- An actor is a coroutine function `body(mailbox)` that takes messages until it is cancelled. It owns its state;
  others reach it only through its mailbox.
- Actors of one crash group crash together: when one raises, all of the group are cancelled and restarted.
  Mailboxes keep their unread messages. State that must survive a crash lives in the object whose method is the body.
- A group that crashes more often than `max_restarts` within `window_ms` is given up: `on_given_up` is called, the
  other groups continue.
- Leaving the `async with` block cancels everything and waits for it.
- An actor that does not end when it is cancelled is left behind at a deadline and logged. It does not keep others from
  being restarted, and nothing that it does later counts as a crash.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Generic, Self, TypeVar

from loguru import logger

M = TypeVar("M")


class MailboxFull(RuntimeError):
    """An actor does not keep up: its mailbox holds `capacity` unread messages."""


class Mailbox(Generic[M]):
    """Messages to one actor, in the order in which they were posted.

    Args:
        capacity: Unread messages at which `post` refuses; far above what a live table ever produces, so that a
            stuck actor shows itself instead of eating memory.
        is_expendable: Which messages may go unread when there is no room for a new one, the oldest first.
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
        """Leave a message. Returns at once.

        Raises:
            MailboxFull: The actor does not read.
        """
        if len(self._unread) >= self._capacity:
            self._make_room()
        self._unread.append(message)
        self._has_mail.set()

    async def receive(self) -> M:
        """The oldest unread message; waits for one."""
        while not self._unread:
            self._has_mail.clear()
            await self._has_mail.wait()
        return self._unread.popleft()

    def take_all(self) -> list[M]:
        """What is unread, oldest first, for who reads instead of the actor: in any thread, while others post."""
        taken: list[M] = []
        with suppress(IndexError):  # until it is empty
            while True:
                taken.append(self._unread.popleft())
        return taken

    def __len__(self) -> int:
        return len(self._unread)

    def _make_room(self) -> None:
        # Half of them at once, so that a flood is not counted through for each message of it.
        expendable = [at for at, message in enumerate(self._unread) if self._is_expendable(message)]
        if not expendable:
            raise MailboxFull(f"mailbox of {self.name!r} holds {self._capacity} unread messages")
        gone = set(expendable[: (len(expendable) + 1) // 2])
        self._unread = deque(message for at, message in enumerate(self._unread) if at not in gone)


Body = Callable[[], Awaitable[None]]

RESTART_MS = 1_000
"""Deadline for the rest of a group to end before it is restarted."""
END_MS = 8_000
"""Deadline for actors that are ended for good. An orderly close takes a fraction of it."""


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
    """Runs actors in crash groups. See the module's rules.

    Args:
        max_restarts: Crashes within the window after which a group is still restarted.
        window_ms: Length of that window.
        on_crash: Called with the group and the error after the group was restarted.
        on_given_up: Called with the group that will not be restarted.
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
        self._mends: set[asyncio.Task[None]] = set()
        self._is_closing = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self, name: str, body: Body, *, group: str | None = None) -> None:
        """Start an actor. Without a group it crashes alone."""
        members = self._groups.setdefault(group or name, _Group())
        child = _Child(name, body)
        members.children.append(child)
        self._run(group or name, child)

    async def stop(self, group: str) -> None:
        """End a group for good and wait for it, until the deadline."""
        members = self._groups.pop(group, None)
        if members is not None:
            await _end(members, END_MS)

    async def close(self) -> None:
        """End every group and wait, until the deadline."""
        self._is_closing = True
        for mend in tuple(self._mends):
            mend.cancel()
        # All at once: one that does not end keeps none of the others.
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
        mend = asyncio.create_task(self._mend(group, members, error), name=f"mend:{group}")
        self._mends.add(mend)
        mend.add_done_callback(self._mends.discard)

    async def _mend(self, group: str, members: _Group, error: BaseException) -> None:
        await _end(members, RESTART_MS)
        members.is_restarting = False
        if len(members.crashed_ms) > self._max_restarts:
            members.is_given_up = True
            logger.error("group {} crashed {} times and is given up", group, len(members.crashed_ms))
            if self._on_given_up is not None:
                self._on_given_up(group)
            return
        for child in members.children:
            self._run(group, child)
        if self._on_crash is not None:
            self._on_crash(group, error)


async def _end(members: _Group, within_ms: int) -> None:
    """Cancel all of a group and wait for them; whoever has not ended at the deadline is left behind."""
    running = {child.task: child.name for child in members.children if child.task is not None and not child.task.done()}
    for task in running:
        task.cancel()
    # What they raise while ending was or will be reported by `_on_done`.
    _, hanging = await asyncio.wait(running, timeout=within_ms / 1_000) if running else ((), ())
    for task in hanging:
        logger.error("actor {} did not close within {} ms, and is left as it is", running[task], within_ms)
