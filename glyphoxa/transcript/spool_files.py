"""Store a spool's bytes: one record a line, in segments that may be compressed. See `glyphoxa.transcript.spool`."""

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

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.files import new_version, replace_file, sync_directory
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import UtteranceId

_HEADER = re.compile(rb"([0-9a-f]{8}) ([0-9a-f]{8}) ")
_HEADER_BYTES = 18
_UTTERANCE = TypeAdapter(Utterance)


def record(utterance: Utterance) -> bytes:
    try:
        payload = _UTTERANCE.dump_json(utterance, ensure_ascii=True, exclude={"words"})
    except PydanticSerializationError:  # half a surrogate pair: a model's text may be cut there
        fields = _UTTERANCE.dump_python(utterance, exclude={"words"})
        payload = json.dumps(fields, ensure_ascii=False, default=sorted).encode("utf-8", "replace")
    return b"%08x %08x %s\n" % (len(payload), zlib.crc32(payload), payload)


def utterance_of(line: bytes) -> Utterance | None:
    """Return the utterance of a record; None if the line is not a whole record."""
    header = _HEADER.match(line)
    payload = line[_HEADER_BYTES:-1]
    if header is None or len(payload) != int(header[1], 16) or zlib.crc32(payload) != int(header[2], 16):
        return None
    try:
        return _UTTERANCE.validate_json(payload)
    except ValidationError:
        return None


# The numbered segments of a spool, and the place of the next record. See `glyphoxa.transcript.spool`.


_DIGITS = "[0-9]" * 10


@dataclass(frozen=True, slots=True, order=True)
class SpoolPosition:
    """A place between two records: the number of the segment, and bytes from its start."""

    segment: int
    offset: int


class Segments:
    """Protocol of use: `find`, `open`, and then the rest.

    Args:
        segment_bytes: A longer segment is full.

    Raises:
        OSError: From all methods: the disk is full, or fails.
    """

    def __init__(self, directory: Path, *, segment_bytes: int) -> None:
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._file: BinaryIO | None = None
        self._end = SpoolPosition(1, 0)
        self._sizes: dict[int, int] = {}  # of the full segments, on disk

    @property
    def end(self) -> SpoolPosition:
        """The place after the last record."""
        return self._end

    @property
    def size_bytes(self) -> int:
        """Return the size of all segments that are not deleted yet."""
        return sum(self._sizes.values()) + self._end.offset

    def find(self) -> list[int]:
        """Return the numbers of the existing segments, in order."""
        there = self._there()
        for number, path in there.items():
            if path == self._path(number):
                # The process that made it crashed before it replaced the other.
                self._shrunk_path(number).unlink(missing_ok=True)
        return sorted(there)

    def open(self, first: int) -> None:
        """Open for writing after the last record. Segments before `first` are deleted."""
        there = self._there()
        for number in [n for n in there if n < first]:
            self._remove(number)
        full = {n: path.stat().st_size for n, path in there.items() if n >= first}
        last = max(full, default=first)
        if there.get(last) == self._shrunk_path(last):
            last += 1  # somebody moved the last segment away
        full.pop(last, None)
        self._sizes = full
        self._open(last)

    def append(self, record: bytes) -> SpoolPosition:
        """Append a record; return the place after it when it is on disk (fsync).

        Raises:
            Unavailable: Closed.
        """
        if self._end.offset >= self._segment_bytes:
            self.rotate()
        self._write(record)
        self._end = SpoolPosition(self._end.segment, self._end.offset + len(record))
        return self._end

    def rotate(self) -> None:
        """Start another segment."""
        full, end = self._file, self._end
        self._open(end.segment + 1)
        self._sizes[end.segment] = end.offset
        if full is not None:
            full.close()

    def lines(self, after: SpoolPosition) -> Iterator[tuple[bytes, SpoolPosition]]:
        """Return the records after a place, complete or not, each with the place after it."""
        for number in sorted({*self._sizes, self._end.segment}):
            if number < after.segment:
                continue
            offset = after.offset if number == after.segment else 0
            for line in self._lines_of(number, offset):
                offset += len(line)
                if number == self._end.segment and offset > self._end.offset:
                    return  # a write that could not be undone
                yield line, SpoolPosition(number, offset)

    def drop_before(self, number: int) -> None:
        for old in [n for n in self._sizes if n < number]:
            self._remove(old)
            del self._sizes[old]

    def shrink_one(self) -> None:
        """Compress one full segment, if one is left. It is deleted only after its compressed form is complete."""
        number = next((n for n in sorted(self._sizes) if self._path(n).exists()), None)
        if number is not None:
            path, shrunk = self._path(number), self._shrunk_path(number)
            with (
                path.open("rb") as source,
                new_version(shrunk) as target,
                gzip.GzipFile(filename="", fileobj=target, mode="wb", compresslevel=4, mtime=0) as packed,
            ):
                shutil.copyfileobj(source, packed)
            path.unlink()
            self._sizes[number] = shrunk.stat().st_size

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _there(self) -> dict[int, Path]:
        """Return the segments by their numbers; of two with one number the uncompressed one."""
        paths = (*self._directory.glob(f"{_DIGITS}.spool.gz"), *self._directory.glob(f"{_DIGITS}.spool"))
        return {int(path.name[:10]): path for path in paths}

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
        whole = content.rfind(b"\n") + 1  # a record contains one line break: its last byte
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
        # Not where the last write ended, which may have failed halfway.
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
        """Yield the lines of a segment, from an offset in its uncompressed content, up to where it is damaged."""
        plain, path = self._path(number), self._shrunk_path(number)
        try:
            with plain.open("rb") if plain.exists() else cast(BinaryIO, gzip.open(path)) as file:
                file.seek(offset)
                yield from file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            aside = path.with_suffix(".damaged")
            logger.error("a segment of the spool was moved to {}: {}: {}", aside, path, error)
            path.replace(aside)
            del self._sizes[number]


# A file of utterances in progress, as far as they were heard: what remains after a process is killed.


class UnderWay:
    """The utterances of `path`, as records of a spool; without utterances there is no file.

    Every change is complete on disk when it returns, or has not happened.

    Raises:
        OSError: From all methods: the disk is full, or fails.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted: dict[UtteranceId, Utterance] = {}

    def left(self) -> list[Utterance]:
        """Return what an earlier process left.

        It stays in the file until it is forgotten, or all is cleared. An unreadable record is skipped, because no
        caller was told of it.
        """
        try:
            lines = self._path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        left = [utterance for utterance in map(utterance_of, lines) if utterance is not None]
        self._noted = {utterance.id: utterance for utterance in left}
        return left

    def note(self, utterance: Utterance) -> None:
        """Store an utterance in place of its earlier part."""
        self._write({**self._noted, utterance.id: utterance})

    def forget(self, utterance: UtteranceId) -> None:
        """Remove an utterance that is complete."""
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
