r"""The write-ahead file in front of the transcript log: what `append` has returned for is not lost.

    DIR/0000000001.spool   a segment: records in the order in which they were appended
    DIR/acknowledged       how far the log has them: "<segment> <offset>", replaced atomically
    DIR/lock               held by the process that owns the spool

A record is one line: `<length> <crc32> <json>\n`, length in bytes, both in hexadecimal with 8 digits. What the
recogniser knew of each word is not in it: that is for the work right after the utterance. A process
that is killed in the middle of a write leaves a torn record at the end; nobody was told that it was kept, and it is
cut off at the next opening. A damaged record elsewhere is set aside, with what it still says, in `DIR/damaged`.

Not for use from several threads at once: `Recorder` sees to that.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from loguru import logger
from pydantic import TypeAdapter, ValidationError

from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.utterance import Utterance

DEFAULT_MAX_BYTES = 256 * 1024 * 1024
_SEGMENT_BYTES = 4 * 1024 * 1024
_HEADER = re.compile(rb"([0-9a-f]{8}) ([0-9a-f]{8}) ")
_HEADER_BYTES = 18
_UTTERANCE = TypeAdapter(Utterance)


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A place between two records: the number of the segment, and bytes from its beginning."""

    segment: int
    offset: int


@dataclass(frozen=True, slots=True)
class Pending:
    """A kept utterance that the log does not have yet. Acknowledge `end` when it does."""

    utterance: Utterance
    end: Cursor


class Spool:
    """Append-only file of utterances. See the module for its format.

    Args:
        directory: Its own; created if missing, private to this user.
        max_bytes: What is appended beyond that is refused until the log catches up.
        alarm: Called (in the thread that appends) once when half of that is used, and each time an append is refused.

    Raises:
        InvalidInput: Another process uses the directory, or it is not usable.
    """

    def __init__(
        self,
        directory: Path,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        segment_bytes: int = _SEGMENT_BYTES,
        alarm: Callable[[str], None] = logger.warning,
    ) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._segment_bytes = min(segment_bytes, max_bytes // 4)
        self._alarm = alarm
        self._alarmed = False
        self._file: BinaryIO | None = None
        self._end = self._acknowledged = Cursor(1, 0)
        self._sizes: dict[int, int] = {}  # of the closed segments
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = (directory / "lock").open("a")
        except OSError as error:
            raise InvalidInput(f"the spool {directory} cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise InvalidInput(
                f"the spool {directory} is used by another running Glyphoxa: end that one, or choose another data "
                "directory"
            ) from None
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def append(self, utterance: Utterance) -> Cursor:
        """Returns when the utterance is on disk (fsync), with the place behind it.

        Raises:
            Unavailable: The spool or the disk is full, or the disk fails. The utterance is not kept; all earlier
                ones are.
        """
        record = _record(utterance)
        used = self.size_bytes
        if used + len(record) > self._max_bytes:
            text = (
                f"the spool {self._directory} is full ({used // 1024} KiB wait for the database): what is said now is "
                "not kept until the database is back"
            )
            self._alarm(text)
            raise Unavailable(text)
        if used > self._max_bytes // 2 and not self._alarmed:
            self._alarmed = True
            self._alarm(f"the spool {self._directory} is half full: the database has been away for long")
        try:
            if self._end.offset >= self._segment_bytes:
                self._rotate()
            self._write(record)
        except OSError as error:
            text = f"the spool {self._directory} cannot be written ({error.strerror}): what is said now is not kept"
            self._alarm(text)
            raise Unavailable(text) from None
        self._end = Cursor(self._end.segment, self._end.offset + len(record))
        return self._end

    def pending(self, after: Cursor | None = None, *, limit: int | None = None) -> list[Pending]:
        """What is not acknowledged, or what stands behind `after`, in the order of appending."""
        found: list[Pending] = []
        for item in self._records(max(after or self._acknowledged, self._acknowledged)):
            if limit is not None and len(found) >= limit:
                break
            found.append(item)
        return found

    def acknowledge(self, cursor: Cursor) -> None:
        """The log has everything up to here. On disk when this returns; whole segments behind it are deleted.

        Raises:
            Unavailable: The disk fails; the cursor stays, and what is repeated later is harmless.
        """
        if cursor <= self._acknowledged:
            return
        temporary = self._directory / "acknowledged.new"
        try:
            with temporary.open("wb") as file:
                file.write(b"%d %d\n" % (cursor.segment, cursor.offset))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._directory / "acknowledged")
            self._sync_directory()
        except OSError as error:
            raise Unavailable(f"the spool {self._directory} cannot note its progress: {error.strerror}") from None
        self._acknowledged = cursor
        for number in [n for n in self._sizes if n < cursor.segment]:
            self._path(number).unlink(missing_ok=True)
            del self._sizes[number]
        if self.size_bytes <= self._max_bytes // 2:
            self._alarmed = False

    @property
    def size_bytes(self) -> int:
        """Of all segments that are not deleted yet."""
        return sum(self._sizes.values()) + self._end.offset

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:010}.spool"

    def _open(self) -> None:
        numbers = sorted(int(path.stem) for path in self._directory.glob("[0-9]*.spool"))
        self._acknowledged = self._read_cursor(numbers)
        for number in [n for n in numbers if n < self._acknowledged.segment]:
            self._path(number).unlink(missing_ok=True)
        numbers = [n for n in numbers if n >= self._acknowledged.segment]
        last = numbers[-1] if numbers else self._acknowledged.segment
        self._sizes = {number: self._path(number).stat().st_size for number in numbers[:-1]}
        self._open_segment(last)

    def _open_segment(self, number: int) -> None:
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
            self._sync_directory()
        self._file = file
        self._end = Cursor(number, whole)
        if self._acknowledged > self._end:
            # Acknowledged bytes vanished with a lost disk cache: the log has them, so nothing is missing; but a new
            # record must not be taken for acknowledged.
            self._rotate()
            self._acknowledged = Cursor(self._end.segment, 0)

    def _rotate(self) -> None:
        full, end = self._file, self._end
        self._open_segment(end.segment + 1)
        self._sizes[end.segment] = end.offset
        if full is not None:
            full.close()

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

    def _read_cursor(self, numbers: list[int]) -> Cursor:
        first = Cursor(numbers[0] if numbers else 1, 0)
        try:
            text = (self._directory / "acknowledged").read_text()
        except FileNotFoundError:
            return first
        parts = re.fullmatch(r"(\d+) (\d+)\n", text)
        if parts is None:
            logger.error("the spool's cursor is damaged: everything in the spool is sent again, which is harmless")
            return first
        return Cursor(int(parts[1]), int(parts[2]))

    def _sync_directory(self) -> None:
        handle = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _records(self, after: Cursor) -> Iterator[Pending]:
        for number in sorted({*self._sizes, self._end.segment}):
            if number < after.segment:
                continue
            offset = after.offset if number == after.segment else 0
            with self._path(number).open("rb") as file:
                file.seek(offset)
                for line in file:
                    offset += len(line)
                    if number == self._end.segment and offset > self._end.offset:
                        return  # a write that could not be taken back
                    utterance = _decode(line)
                    if utterance is None:
                        self._set_aside(line)
                    else:
                        yield Pending(utterance, Cursor(number, offset))

    def set_aside(self, utterance: Utterance) -> None:
        """Keep what the log will never take where a person can look at it: in `DIR/damaged`."""
        self._set_aside(_record(utterance))

    def _set_aside(self, line: bytes) -> None:
        logger.error("a record of {} bytes in the spool was set aside in {}", len(line), self._directory / "damaged")
        damaged = self._directory / "damaged"
        if not damaged.exists() or line not in damaged.read_bytes():
            with damaged.open("ab") as file:
                file.write(line)


def _record(utterance: Utterance) -> bytes:
    payload = _UTTERANCE.dump_json(utterance, ensure_ascii=True, exclude={"words"})
    return b"%08x %08x %s\n" % (len(payload), zlib.crc32(payload), payload)


def _decode(line: bytes) -> Utterance | None:
    header = _HEADER.match(line)
    payload = line[_HEADER_BYTES:-1]
    if header is None or len(payload) != int(header[1], 16) or zlib.crc32(payload) != int(header[2], 16):
        return None
    try:
        return _UTTERANCE.validate_json(payload)
    except ValidationError:
        return None
