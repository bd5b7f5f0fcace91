"""Records taken out of a spool for good: of its segments, of what was under way, and of what was damaged."""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.utterance import Utterance
from glyphoxa.transcript import spool_files

_SEGMENT: Final = re.compile(r"([0-9]{10})\.spool(?:\.gz|\.damaged)?")


def erase_from_spool(directory: Path, is_meant: Callable[[Utterance], bool], *, mentions: Collection[str] = ()) -> int:
    """Take out all records that are meant. Each file is replaced whole; killed half-way, do it again. What the log has
    already may be sent to it once more, which is harmless.

    Args:
        mentions: A record that cannot be read is taken out when it holds one of these.

    Returns:
        How many records are gone.

    Raises:
        Unavailable: A running Glyphoxa has the spool, or the disk fails.
    """
    if not directory.is_dir():
        return 0
    quoted = [b'"%s"' % each.encode() for each in mentions]

    def goes(line: bytes) -> bool:
        utterance = spool_files.utterance_of(line)
        return any(each in line for each in quoted) if utterance is None else is_meant(utterance)

    try:
        with (directory / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Unavailable(
                    f"the spool {directory} is used by a running Glyphoxa, and may hold what is erased: end that one, "
                    "and erase again"
                ) from None
            return _erase(directory, goes)
    except OSError as error:
        raise Unavailable(f"the spool {directory} cannot be rewritten: {error.strerror}; erase again") from None


def spool_of(data_dir: Path) -> Path:
    return data_dir / "spool"


def _erase(directory: Path, goes: Callable[[bytes], bool]) -> int:
    for left in directory.glob("*.new"):
        left.unlink()
    n_gone = 0
    for path in sorted(directory.iterdir()):
        segment = _SEGMENT.fullmatch(path.name)
        if segment is None and path.name not in ("under-way", "damaged"):
            continue
        lines = list(_lines(path))
        kept = [line for line in lines if not goes(line)]
        if len(kept) == len(lines):
            continue
        if segment is not None:
            _begin_again(directory, int(segment[1]))
        content = b"".join(kept)
        _replace(path, gzip.compress(content, 4, mtime=0) if path.suffix in (".gz", ".damaged") else content)
        n_gone += len(lines) - len(kept)
    return n_gone


def _lines(path: Path) -> Iterator[bytes]:
    """Of a shrunk segment that is damaged, those that can still be read: no others are kept."""
    content = path.read_bytes()
    if path.suffix in (".gz", ".damaged"):
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        content = _readable(unpack, content)
    yield from content.splitlines(keepends=True)


def _readable(unpack: zlib._Decompress, packed: bytes) -> bytes:
    found = bytearray()
    try:
        for n in range(len(packed)):
            found += unpack.decompress(packed[n : n + 1])
    except zlib.error:
        pass
    return bytes(found)


def _begin_again(directory: Path, segment: int) -> None:
    """Places in this segment are others from now on: the log is sent all of it."""
    path = directory / "acknowledged"
    try:
        acknowledged = re.fullmatch(r"(\d+) (\d+)\n", path.read_text())
    except FileNotFoundError:
        return
    if acknowledged is not None and int(acknowledged[1]) == segment:
        _replace(path, b"%d 0\n" % segment)


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    spool_files.sync_directory(path.parent)
