"""Write a file completely or not at all: after a crash it is the old one or the new one. Lock files."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, Literal, TextIO

PRIVATE: Final = 0o600
_USUAL: Final = 0o666


def replace_file(path: Path, content: bytes, *, mode: int = _USUAL, is_synced: bool = True) -> None:
    """Replace or create a file. See `new_version`."""
    with new_version(path, mode=mode, is_synced=is_synced) as file:
        file.write(content)


@contextmanager
def new_version(path: Path, *, mode: int = _USUAL, is_synced: bool = True, replaces: bool = True) -> Iterator[BinaryIO]:
    """Yield a new file that takes its place when the block succeeds. A killed process leaves `NAME.PID.new`.

    Args:
        mode: A mode for `os.open`, which subtracts the umask.
        is_synced: Whether it survives a power failure, too. False for many files that can be made again.
        replaces: Whether it may replace another file.

    Raises:
        FileExistsError: It may not.
        OSError: It cannot be written. The old version is still there.
    """
    if not replaces and path.exists():
        raise FileExistsError  # before the work of the block
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            yield file
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
        if replaces:
            new.replace(path)
        else:
            os.link(new, path)  # unlike a rename, it takes nobody's place
        if is_synced:
            sync_directory(path.parent)
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make created and renamed files in a directory survive a power failure."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock_nowait(file: IO[Any], how: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file until it is closed. Return False if another process holds it."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_private(path: Path, mode: Literal["w", "a"]) -> TextIO:
    """Open a UTF-8 text file that only this user may read, in a directory for this user alone.

    Raises:
        OSError: The directory cannot be made, or the file cannot be opened.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    return open(path, mode, encoding="utf-8", opener=_opener)


def _opener(path: str, flags: int) -> int:
    opened = os.open(path, flags | os.O_CLOEXEC, PRIVATE)
    os.fchmod(opened, PRIVATE)
    return opened
