from __future__ import annotations

import sys
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bars


class Progress(Protocol):
    """Told what is being brought in, in bytes. Calls come from the thread that fetches, one file at a time."""

    def begin(self, file: str, *, size: int, have: int) -> None:
        """A file of `size` bytes is begun, or begun again from another source; `have` are there already."""
        ...

    def advance(self, received: int) -> None: ...

    def end(self) -> None:
        """The file begun last is in place."""
        ...

    def note(self, text: str) -> None:
        """One line about what goes on: a source that is not reachable, a wait for another process."""
        ...


class Silent:
    """For those who do not look."""

    def begin(self, file: str, *, size: int, have: int) -> None: ...

    def advance(self, received: int) -> None: ...

    def end(self) -> None: ...

    def note(self, text: str) -> None: ...


class Lines:
    """A line when a file begins and ends, and at every tenth of it: for logs and pipes."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._file, self._size, self._have, self._tenths = "", 0, 0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def begin(self, file: str, *, size: int, have: int) -> None:
        self._file, self._size, self._have = file, size, have
        self._tenths = have * 10 // max(1, size)
        resumed = f", {decimal(have)} already there" if have else ""
        self.note(f"{file}: {decimal(size)}{resumed}")

    def advance(self, received: int) -> None:
        self._have += received
        tenths = self._have * 10 // max(1, self._size)
        if self._tenths < tenths < 10:
            self._tenths = tenths
            self.note(f"{self._file}: {tenths * 10} %")

    def end(self) -> None:
        self.note(f"{self._file}: verified")

    def note(self, text: str) -> None:
        print(text, file=self._out, flush=True)


class BarLines:
    """A bar a file, with bytes, speed and the time that remains: for people."""

    def __init__(self, console: Console) -> None:
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}
        self._current = ""

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def begin(self, file: str, *, size: int, have: int) -> None:
        self._current = file
        if file not in self._tasks:
            self._tasks[file] = self._bars.add_task(file, total=size)
        self._bars.update(self._tasks[file], completed=have)

    def advance(self, received: int) -> None:
        self._bars.advance(self._tasks[self._current], received)

    def end(self) -> None:
        task = self._tasks[self._current]
        self._bars.update(task, completed=self._bars.tasks[task].total)

    def note(self, text: str) -> None:
        self._bars.console.print(text, markup=False, highlight=False)


def progress_to(out: TextIO | None = None) -> BarLines | Lines:
    """Bars when a person looks at `out` (standard error by default), plain lines otherwise. A context manager."""
    stream = out or sys.stderr
    return BarLines(Console(file=stream)) if stream.isatty() else Lines(stream)
