"""Bytes on disk: checked, remembered as checked, and put in place whole."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from glyphoxa.adapters.weights.manifest import WeightFile
from glyphoxa.domain.errors import Corrupt, GlyphoxaError, Unavailable

_BLOCK = 1 << 20


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fault_of(path: Path, wanted: WeightFile) -> str:
    """What is wrong with the file, having read all of it; empty when it is the wanted one."""
    size = path.stat().st_size
    if size != wanted.size:
        return f"{size} bytes instead of {wanted.size}"
    found = sha256_of(path)
    if found != wanted.sha256:
        return f"its SHA-256 is {found}, not {wanted.sha256}"
    return ""


class Stamps:
    """Remembers which files were hashed and found right, so that starting up need not read gigabytes.

    A stamp holds while size, inode and times of the file are what they were. It does not notice a disk that
    changes bytes by itself: `Store.verify` does.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def holds(self, path: Path, wanted: WeightFile) -> bool:
        try:
            stamp = json.loads(self._stamp(path).read_text("utf-8"))
            return bool(stamp == _identity(path, wanted.sha256))
        except (OSError, ValueError):
            return False

    def put(self, path: Path, wanted: WeightFile) -> None:
        """Best effort: without a stamp the file is hashed again next time."""
        self._put(path, wanted.sha256)

    def sha256_of(self, path: Path) -> str:
        """Of a file that nobody declared: read whole when it is new here, or has changed.

        Raises:
            OSError: It cannot be read.
        """
        try:
            stamp = json.loads(self._stamp(path).read_text("utf-8"))
            if stamp == _identity(path, stamp["sha256"]):
                return str(stamp["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        found = sha256_of(path)
        self._put(path, found)
        return found

    def _put(self, path: Path, sha256: str) -> None:
        stamp = self._stamp(path)
        try:
            stamp.parent.mkdir(parents=True, exist_ok=True)
            fresh = stamp.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps(_identity(path, sha256)), "utf-8")
            fresh.replace(stamp)
        except OSError:
            return

    def drop(self, path: Path) -> None:
        with suppress(OSError):
            self._stamp(path).unlink()

    def _stamp(self, path: Path) -> Path:
        return self._directory / f"{hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:32]}.json"


def _identity(path: Path, sha256: str) -> dict[str, object]:
    at = path.stat()
    return {
        "path": str(path.absolute()),
        "size": at.st_size,
        "inode": at.st_ino,
        "modified_ns": at.st_mtime_ns,
        "changed_ns": at.st_ctime_ns,
        "sha256": sha256,
    }


class PartFile:
    """A file while it is being put together, next to where it will stand: `<name>.part`.

    What was written survives an interruption and a change of the source: each goes on after the bytes that are there.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}.part")

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def append(self, blocks: Iterator[bytes], *, report: Callable[[int], None]) -> None:
        """Write the blocks after what is there, and onto the disk even when they end in an error.

        Args:
            report: Takes the size of the part after each block.
        """
        with self.path.open("ab") as file:
            try:
                for block in blocks:
                    file.write(block)
                    report(file.tell())
            finally:
                file.flush()
                os.fsync(file.fileno())

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)

    def accept(self, wanted: WeightFile) -> None:
        """Put the finished part in its place, if it is the wanted file.

        Raises:
            Corrupt: It is not. The part is discarded.
        """
        fault = fault_of(self.path, wanted)
        if fault:
            self.discard()
            raise Corrupt(f"{wanted.name}: what was received is not the file: {fault}")
        self.path.replace(self.target)
        directory = os.open(self.target.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def blocks_of(path: Path) -> Iterator[bytes]:
    """Read a file of the user's.

    Raises:
        Unavailable: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
    except OSError as failure:
        raise Unavailable(f"{path}: {failure.strerror or failure}") from failure


@contextmanager
def only_one(lock: Path, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock against other processes; `waiting` is called once if it is taken. Blocks until it is free."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def naming_disk_troubles(directory: Path) -> Iterator[None]:
    """Turns what a disk can do to us into one clear error.

    Raises:
        Unavailable: The disk is full, read-only, not ours, or broken.
    """
    try:
        yield
    except GlyphoxaError:
        raise
    except OSError as failure:
        if failure.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Unavailable(f"{directory}: the disk is full; what was received is kept and continued") from failure
        raise Unavailable(f"{failure.filename or directory}: {failure.strerror or failure}") from failure
