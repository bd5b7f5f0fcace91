"""The bytes of a spool: one record a line, in segments that may be shrunk. See `glyphoxa.transcript.spool`."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from loguru import logger
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from glyphoxa.domain.errors import Corrupt, Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import UtteranceId

_HEADER = re.compile(rb"([0-9a-f]{8}) ([0-9a-f]{8}) ")
_HEADER_BYTES = 18
_UTTERANCE = TypeAdapter(Utterance)


def record(utterance: Utterance) -> bytes:
    try:
        payload = _UTTERANCE.dump_json(utterance, ensure_ascii=True, exclude={"words"})
    except PydanticSerializationError:  # half a character of two: what a model writes may be cut there
        fields = _UTTERANCE.dump_python(utterance, exclude={"words"})
        payload = json.dumps(fields, ensure_ascii=False, default=sorted).encode("utf-8", "replace")
    return b"%08x %08x %s\n" % (len(payload), zlib.crc32(payload), payload)


def utterance_of(line: bytes) -> Utterance | None:
    """None when the line is no whole record."""
    header = _HEADER.match(line)
    payload = line[_HEADER_BYTES:-1]
    if header is None or len(payload) != int(header[1], 16) or zlib.crc32(payload) != int(header[2], 16):
        return None
    try:
        return _UTTERANCE.validate_json(payload)
    except ValidationError:
        return None


def lines(path: Path, offset: int) -> Iterator[bytes]:
    """Of a segment, from an offset in what it says.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        file.seek(offset)
        yield from file


def lines_of_shrunk(path: Path, offset: int) -> Iterator[bytes]:
    """
    Raises:
        OSError: It cannot be read.
        Corrupt: It is damaged from here on; what stood before it has been given.
    """
    try:
        with gzip.open(path) as packed:
            packed.seek(offset)
            yield from cast(BinaryIO, packed)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Corrupt(f"{path}: {error}") from None


def shrink(path: Path, into: Path) -> None:
    """`into` is whole or not there, and `path` is gone only when it is whole.

    Raises:
        OSError: The disk is full, or fails. `path` is as it was.
    """
    temporary = into.with_suffix(".new")
    try:
        with path.open("rb") as source, temporary.open("wb") as target:
            with gzip.GzipFile(filename="", fileobj=target, mode="wb", compresslevel=4, mtime=0) as packed:
                shutil.copyfileobj(source, packed)
            target.flush()
            os.fsync(target.fileno())
        temporary.replace(into)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
    path.unlink()


def replace_file(path: Path, content: bytes) -> None:
    """Write a file anew; after a crash or a loss of power it is the old one or the new one, whole."""
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """What was created and renamed in it survives a loss of power."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# The numbered segments of a spool, and where the next record is written. See `glyphoxa.transcript.spool`.


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
            shrink(self._path(number), shrunk)
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
            sync_directory(self._directory)
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
            yield from lines(self._path(number), offset)
            return
        path = self._shrunk_path(number)
        try:
            yield from lines_of_shrunk(path, offset)
        except Corrupt as error:
            aside = path.with_suffix(".damaged")
            logger.error("a segment of the spool was set aside as {}: {}", aside, error)
            path.replace(aside)
            del self._sizes[number]


# A file of what is just being said, as far as it was heard: what a process that is killed leaves of it.


class UnderWay:
    """The utterances of `path`, as records of a spool; there is no file when there is none of them. Every change is
    whole on disk when it returns, or nothing of it.

    Raises:
        OSError: From all methods: the disk is full, or fails.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted: dict[UtteranceId, Utterance] = {}

    def left(self) -> list[Utterance]:
        """What an earlier process left. It stays in the file until it is forgotten, or all is cleared. A record that
        cannot be read is none: nobody was told of it.
        """
        try:
            lines = self._path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        left = [utterance for utterance in map(utterance_of, lines) if utterance is not None]
        self._noted = {utterance.id: utterance for utterance in left}
        return left

    def note(self, utterance: Utterance) -> None:
        """In the place of what was noted of it before."""
        self._write({**self._noted, utterance.id: utterance})

    def forget(self, utterance: UtteranceId) -> None:
        """It has been said to its end."""
        if utterance in self._noted:
            self._write({key: noted for key, noted in self._noted.items() if key != utterance})

    def clear(self) -> None:
        self._write({})

    def _write(self, noted: dict[UtteranceId, Utterance]) -> None:
        if noted:
            replace_file(self._path, b"".join(record(utterance) for utterance in noted.values()))
        else:
            self._path.unlink(missing_ok=True)
        self._noted = noted
