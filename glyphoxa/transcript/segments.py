"""The numbered segments of a spool, and where the next record is written. See `glyphoxa.transcript.spool`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from loguru import logger

from glyphoxa.domain.errors import Corrupt, Unavailable
from glyphoxa.transcript import spool_files

_DIGITS = "[0-9]" * 10


@dataclass(frozen=True, slots=True, order=True)
class SpoolPosition:
    """A place between two records: the number of the segment, and bytes from its beginning."""

    segment: int
    offset: int


class Segments:
    """Protocol of use: `find`, `open`, and then the rest.

    Args:
        segment_bytes: A segment that is longer is full.

    Raises:
        OSError: From all methods: the disk is full, or fails.
    """

    def __init__(self, directory: Path, *, segment_bytes: int) -> None:
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._file: BinaryIO | None = None
        self._end = SpoolPosition(1, 0)
        self._sizes: dict[int, int] = {}  # of the full segments, as they are on disk

    @property
    def end(self) -> SpoolPosition:
        """Behind the last record."""
        return self._end

    @property
    def size_bytes(self) -> int:
        """Of all segments that are not deleted yet."""
        return sum(self._sizes.values()) + self._end.offset

    def find(self) -> list[int]:
        """The numbers of the segments that are there, in order."""
        plain, shrunk = self._there()
        for number in plain.keys() & shrunk.keys():
            shrunk.pop(number).unlink()  # whoever made it died before it took the other's place
        return sorted({**shrunk, **plain})

    def open(self, first: int) -> None:
        """Write behind the last record. Segments before `first` are deleted."""
        plain, shrunk = self._there()
        for number in [n for n in {**shrunk, **plain} if n < first]:
            self._remove(number)
        full = {n: path.stat().st_size for n, path in {**shrunk, **plain}.items() if n >= first}
        last = max(full, default=first)
        if last in shrunk:
            last += 1  # somebody moved the last segment away
        full.pop(last, None)
        self._sizes = full
        self._open(last)

    def append(self, record: bytes) -> SpoolPosition:
        """Returns when the record is on disk (fsync), with the place behind it.

        Raises:
            Unavailable: Closed.
        """
        if self._end.offset >= self._segment_bytes:
            self.rotate()
        self._write(record)
        self._end = SpoolPosition(self._end.segment, self._end.offset + len(record))
        return self._end

    def rotate(self) -> None:
        """Begin another segment."""
        full, end = self._file, self._end
        self._open(end.segment + 1)
        self._sizes[end.segment] = end.offset
        if full is not None:
            full.close()

    def lines(self, after: SpoolPosition) -> Iterator[tuple[bytes, SpoolPosition]]:
        """The records behind a place, whole or not, each with the place behind it."""
        for number in sorted({*self._sizes, self._end.segment}):
            if number < after.segment:
                continue
            offset = after.offset if number == after.segment else 0
            for line in self._lines_of(number, offset):
                offset += len(line)
                if number == self._end.segment and offset > self._end.offset:
                    return  # a write that could not be taken back
                yield line, SpoolPosition(number, offset)

    def drop_before(self, number: int) -> None:
        for old in [n for n in self._sizes if n < number]:
            self._remove(old)
            del self._sizes[old]

    def shrink_one(self) -> None:
        """Shrink one full segment, if there is one that is not yet."""
        number = next((n for n in sorted(self._sizes) if self._path(n).exists()), None)
        if number is not None:
            shrunk = self._shrunk_path(number)
            spool_files.shrink(self._path(number), shrunk)
            self._sizes[number] = shrunk.stat().st_size

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _there(self) -> tuple[dict[int, Path], dict[int, Path]]:
        """Segments as they were written, and shrunk ones."""
        plain = {int(path.name[:10]): path for path in self._directory.glob(f"{_DIGITS}.spool")}
        shrunk = {int(path.name[:10]): path for path in self._directory.glob(f"{_DIGITS}.spool.gz")}
        return plain, shrunk

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:010}.spool"

    def _shrunk_path(self, number: int) -> Path:
        return self._directory / f"{number:010}.spool.gz"

    def _remove(self, number: int) -> None:
        self._path(number).unlink(missing_ok=True)
        self._shrunk_path(number).unlink(missing_ok=True)

    def _open(self, number: int) -> None:
        path = self._path(number)
        is_new = not path.exists()
        content = b"" if is_new else path.read_bytes()
        whole = content.rfind(b"\n") + 1  # a record holds one line break: its last byte
        torn = content[whole:]
        file = path.open("r+b" if not is_new else "w+b", buffering=0)
        if torn:
            logger.warning("the spool ended in a torn record of {} bytes, cut off", len(torn))
            file.truncate(whole)
            os.fsync(file.fileno())
        if is_new:
            spool_files.sync_directory(self._directory)
        self._file = file
        self._end = SpoolPosition(number, whole)

    def _write(self, record: bytes) -> None:
        if self._file is None:
            raise Unavailable(f"the spool {self._directory} was closed")
        # Not where the last write ended: that one may have failed half-way.
        self._file.seek(self._end.offset)
        try:
            written = 0
            while written < len(record):
                written += self._file.write(record[written:])
            os.fsync(self._file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end.offset)
            raise

    def _lines_of(self, number: int, offset: int) -> Iterator[bytes]:
        if self._path(number).exists():
            yield from spool_files.lines(self._path(number), offset)
            return
        path = self._shrunk_path(number)
        try:
            yield from spool_files.lines_of_shrunk(path, offset)
        except Corrupt as error:
            aside = path.with_suffix(".damaged")
            logger.error("a segment of the spool was set aside as {}: {}", aside, error)
            path.replace(aside)
            del self._sizes[number]
