"""How far downloads are: one bar over all files for people, a line every few seconds for logs and pipes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Final, Protocol, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

_LINE_EVERY_S: Final = 5.0


class Progress(Protocol):
    """Told how far a fetch is. Calls come from the thread that fetches."""

    def at(self, done: int, *, total: int) -> None:
        """`done` of `total` bytes of all missing files together are here. Both may rise and fall."""
        ...

    def note(self, text: str) -> None:
        """One line about what goes on: a source that is skipped, a wait for another process."""
        ...


class Silent:
    """For those who do not look."""

    def at(self, done: int, *, total: int) -> None: ...

    def note(self, text: str) -> None: ...


class ShownProgress:
    """A bar on a terminal; elsewhere a line at the start, every five seconds, and at the end. A context manager.

    Args:
        out: Standard error by default.
        now_s: A clock in seconds that is never set back.
    """

    def __init__(self, out: TextIO | None = None, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._out = out or sys.stderr
        self._now_s = now_s
        self._in_lines = not self._out.isatty()
        self._bar = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(file=self._out),
            get_time=now_s,
            disable=self._in_lines,
        )
        self._bar.add_task("models", visible=False)
        [self._task] = self._bar.tasks
        self._next_line_s = now_s()
        self._last_line = ""

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if self._task.visible:
            self._write_line()

    def at(self, done: int, *, total: int) -> None:
        self._bar.update(self._task.id, completed=done, total=total, visible=True)
        if self._now_s() >= self._next_line_s:
            self._next_line_s = self._now_s() + _LINE_EVERY_S
            self._write_line()

    def note(self, text: str) -> None:
        if self._in_lines:
            print(text, file=self._out, flush=True)
        else:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _write_line(self) -> None:
        task = self._task
        remain = f"{_mb(task.remaining)} MB"
        if task.remaining and task.time_remaining is not None:
            remain += f" and {timedelta(seconds=int(task.time_remaining))}"
        line = f"models: {int(task.percentage)} %, {_mb(task.completed)} of {_mb(task.total)} MB, {remain} remain"
        if self._in_lines and line != self._last_line:
            self._last_line = line
            self.note(line)


def _mb(size: float | None) -> str:
    return f"{(size or 0) / 1_000_000:.1f}"
