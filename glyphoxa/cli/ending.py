"""End the process of a table, even if something in it hangs.

    first Ctrl-C or SIGTERM   runs `act` in the event loop; the deadline begins
    second                    ends the process at once
    the deadline              ends the process at once, even if the event loop is blocked

Before the process ends without having closed, what was said is written to disk (`last_words`). A thread listens for
signals: a signal handler runs in the main thread, which may hang, and could wait for a lock forever.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

CLOSE_WITHIN_S = 30.0
"""For all steps of an orderly end together."""
GONE_WITHIN_S = 5.0
"""For what remains after that: threads that still load, tasks that cannot be cancelled."""
LAST_WORDS_S = 3.0

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Ending:
    """See the module. One per process, in its main thread.

    Args:
        close_within_s: From the first signal, or `begin`, until the process ends anyway.

    Attributes:
        act: Called at the first signal, in the event loop. Without a loop the first signal ends the process.
        last_words: Writes what is said and not on disk, in any thread; returns how much of it could not be written.
    """

    def __init__(self, *, close_within_s: float = CLOSE_WITHIN_S) -> None:
        self.act: Callable[[], object] = lambda: None
        self.last_words: Callable[[], int] = lambda: 0
        self._close_within_s = close_within_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: int | None = None
        self._give_up_at: float | None = None
        self._closed_as: int | None = None
        self._handlers: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
        self._heard, self._wake = socket.socketpair()
        self._wakeup_before = -1

    @property
    def code(self) -> int:
        """The exit status after a signal; 1 without one."""
        return 1 if self._asked is None else 128 + self._asked

    def __enter__(self) -> Self:
        self._wake.setblocking(False)
        self._wakeup_before = signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        for number in _SIGNALS:
            self._handlers[number] = signal.signal(number, lambda *_: None)  # the thread hears it
        threading.Thread(target=self._listen, name="ending", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the handlers, unless the process is ending: then listen until it ends."""
        if self._give_up_at is not None:
            return
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._wake.close()

    def attach(self) -> None:
        """Let the first signal run `act` in the running event loop."""
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Begin to end without a signal, with the same deadline."""
        if self._give_up_at is None:
            self._set_deadline(self._close_within_s)

    def closed(self, code: int) -> None:
        """Note that everything is closed; end with this code after `GONE_WITHIN_S` at the latest."""
        self._closed_as = code
        self._set_deadline(GONE_WITHIN_S)

    def _set_deadline(self, seconds: float) -> None:
        at = time.monotonic() + seconds
        self._give_up_at = at if self._give_up_at is None else min(at, self._give_up_at)
        self._wake.send(b"\0")

    def _listen(self) -> None:
        while True:
            left_s = None if self._give_up_at is None else max(0.0, self._give_up_at - time.monotonic())
            try:
                is_heard = bool(select.select([self._heard], [], [], left_s)[0])
                numbers = self._heard.recv(64) if is_heard else b""
            except OSError:
                return
            if is_heard and not numbers:
                self._heard.close()
                return
            if not is_heard:
                self._end_now("closing took too long")
            for number in numbers:
                if number in _SIGNALS:
                    self._on_signal(number)

    def _on_signal(self, number: int) -> None:
        if self._asked is not None or self._loop is None:
            self._asked = self._asked or number
            self._end_now("")
            return
        self._asked = number
        self.begin()
        try:
            self._loop.call_soon_threadsafe(self.act)
        except RuntimeError:  # the loop was closed a moment ago
            return

    def _end_now(self, why: str) -> None:
        if self._closed_as is not None:
            os._exit(self._closed_as)
        n_lost: list[int] = []
        writing = threading.Thread(target=lambda: n_lost.append(self.last_words()), name="last words", daemon=True)
        writing.start()
        writing.join(LAST_WORDS_S)
        is_written = n_lost == [0]
        if why or not is_written:
            words = "what was said is on disk" if is_written else "some of what was said last could not be written"
            os.write(2, f"glyphoxa: {why or 'stopped'}; {words}\n".encode())
        os._exit(self.code)
