r"""Write utterances to a file before the transcript log: nothing is lost after `append` returns.

   DIR/0000000001.spool      a segment: records in the order in which they were appended
   DIR/0000000001.spool.gz   the same, compressed: see below
   DIR/under-way             utterances in progress, as far as they were heard: see `Spool.note`
   DIR/acknowledged          how far the log has them: "<segment> <offset>", replaced atomically
   DIR/damaged               records that could not be read, or that the log can never store
   DIR/lock                  held by the process that owns the spool

A record is one line: `<length> <crc32> <json>\n`, length in bytes, both in hexadecimal with 8 digits. It does not
contain what the recogniser knew of each word, which only the work right after the utterance needs. A process that is
killed during a write leaves a torn record at the end. No caller was told that it was stored, and the next opening cuts
it off. A damaged record elsewhere is moved to `DIR/damaged`, with what can be read of it.

Without a log (memory `none`) nothing is ever acknowledged. The spool then keeps all utterances for a future log. Full
segments are compressed to about a fifth; nothing is deleted. If `max_bytes` are still used up (millions of utterances),
appends are refused with the usual alarm, until old segments are moved away by hand while no Glyphoxa runs.

Not thread-safe: `Journal` uses it from one thread.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from loguru import logger

from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.files import lock_nowait, replace_file, sync_directory
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.transcript import spool_files
from glyphoxa.transcript.spool_files import Segments, SpoolPosition, UnderWay

DEFAULT_MAX_BYTES = 256 * 1024 * 1024
_SEGMENT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Pending:
    """A stored utterance that the log does not have yet. Acknowledge `end` when it does."""

    utterance: Utterance
    end: SpoolPosition


class Spool:
    """Append-only file of utterances. See the module for its format.

    Args:
        directory: Its own; created if missing, private to this user.
        max_bytes: On disk. Appends beyond that are refused until the log catches up.
        alarm: Called (in the appending thread) once when half of that is used, and at each refused append.

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
        self._alarm = alarm
        self._alarmed = False
        self._segments = Segments(directory, segment_bytes=min(segment_bytes, max_bytes // 4))
        self._acknowledged = SpoolPosition(1, 0)
        self._shrinks = True
        self._under_way = UnderWay(directory / "under-way")
        try:
            if not directory.is_dir():
                directory.mkdir(parents=True, exist_ok=True, mode=0o700)
                with contextlib.suppress(OSError):  # another user's folder need not be readable
                    sync_directory(directory.parent)
            with contextlib.suppress(PermissionError):  # it belongs to another user, who gave us access
                directory.chmod(0o700)
            self._lock = (directory / "lock").open("a")
        except OSError as error:
            raise InvalidInput(f"the spool {directory} cannot be used: {error.strerror}") from None
        if not lock_nowait(self._lock):
            self._lock.close()
            raise InvalidInput(
                f"the spool {directory} is used by another running Glyphoxa: end that one, or choose another data "
                "directory"
            )
        try:
            self._open()
        except OSError as error:
            self.close()
            raise InvalidInput(f"the spool {directory} cannot be used: {error.strerror}") from None

    def append(self, utterance: Utterance) -> SpoolPosition:
        """Append an utterance; return the place after it when it is on disk (fsync).

        Raises:
            Unavailable: The spool or the disk is full, or the disk fails. The utterance is not stored; all earlier ones
                are.
        """
        record = spool_files.record(utterance)
        used = self.size_bytes
        if used + len(record) > self._max_bytes:
            text = (
                f"the spool {self._directory} is full ({used // 1024} KiB of utterances wait for a database): it takes "
                "nothing more until a database has taken some, or older segments are moved away"
            )
            self._alarm(text)
            raise Unavailable(text)
        if used > self._max_bytes // 2 and not self._alarmed:
            self._alarmed = True
            self._alarm(f"the spool {self._directory} is half full: no database has stored utterances for a long time")
        try:
            end = self._segments.append(record)
        except OSError as error:
            text = f"the spool {self._directory} cannot be written ({error.strerror})"
            self._alarm(text)
            raise Unavailable(text) from None
        with contextlib.suppress(OSError):  # the next opening finds that it was appended
            self._under_way.forget(utterance.id)
        return end

    def note(self, utterance: Utterance) -> None:
        """Store what was heard so far of an utterance in progress; return when it is on disk.

        It replaces the earlier part, and `append` under the same id replaces it by the whole. If the process ends
        before, the next opening appends the last part.

        Raises:
            Unavailable: The disk is full, or fails. The earlier part is still there.
        """
        try:
            self._under_way.note(utterance)
        except OSError as error:
            raise Unavailable(f"the spool {self._directory} cannot be written ({error.strerror})") from None

    def pending(self, after: SpoolPosition | None = None, *, limit: int | None = None) -> list[Pending]:
        """Return what is not acknowledged, or what follows `after`, in the order of appending.

        Raises:
            Unavailable: The disk fails, or has no room to move a damaged record aside.
        """
        found: list[Pending] = []
        try:
            for item in self._records(max(after or self._acknowledged, self._acknowledged)):
                if limit is not None and len(found) >= limit:
                    break
                found.append(item)
        except OSError as error:
            raise Unavailable(f"the spool {self._directory} cannot be read: {error.strerror}") from None
        return found

    def latest(self, campaign: CampaignId, session: SessionId, *, limit: int) -> list[Utterance]:
        """Return the last utterances of a campaign's session, acknowledged or not, each once, in the order of
        appending.

        It reads the last two segments, which contain thousands of utterances.

        Raises:
            Unavailable: The disk fails.
        """
        said: dict[UtteranceId, Utterance] = {}
        try:
            for item in self._records(SpoolPosition(self._segments.end.segment - 1, 0)):
                if (item.utterance.campaign_id, item.utterance.session_id) == (campaign, session):
                    said.setdefault(item.utterance.id, item.utterance)
        except OSError as error:
            raise Unavailable(f"the spool {self._directory} cannot be read: {error.strerror}") from None
        return list(said.values())[-limit:]

    def acknowledge(self, cursor: SpoolPosition) -> None:
        """Record that the log has everything up to here, and delete whole segments before it.

        After a power failure the recorded place may be an earlier one. The log then receives some utterances again,
        which is harmless.

        Raises:
            Unavailable: The disk fails; the cursor stays, and repetition is harmless.
        """
        if cursor <= self._acknowledged:
            return
        try:
            content = b"%d %d\n" % (cursor.segment, cursor.offset)
            replace_file(self._directory / "acknowledged", content, is_synced=False)
        except OSError as error:
            raise Unavailable(f"the spool {self._directory} cannot note its progress: {error.strerror}") from None
        self._acknowledged = cursor
        self._segments.drop_before(cursor.segment)
        if self.size_bytes <= self._max_bytes // 2:
            self._alarmed = False

    def shrink(self) -> None:
        """Compress one full segment, if one is left and no log will store it soon.

        If the disk has no room for that, it is not tried again until the next opening.
        """
        if not self._shrinks:
            return
        try:
            self._segments.shrink_one()
        except OSError as error:
            self._shrinks = False
            logger.warning("the spool {} cannot shrink a segment: {}", self._directory, error.strerror)

    @property
    def size_bytes(self) -> int:
        """Return the size of all segments that are not deleted yet."""
        return self._segments.size_bytes

    def close(self) -> None:
        self._segments.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        for left in self._directory.glob("*.new"):
            left.unlink()
        self._acknowledged = self._read_cursor(self._segments.find())
        self._segments.open(self._acknowledged.segment)
        if self._acknowledged > self._segments.end:
            # Acknowledged bytes vanished with a lost disk cache. The log has them, so nothing is missing, but a new
            # record must not be taken for acknowledged.
            self._segments.rotate()
            self._acknowledged = SpoolPosition(self._segments.end.segment, 0)
        self._take_up()

    def _take_up(self) -> None:
        """Append what a killed process had stored in part, unless the whole utterance was stored after all."""
        left = self._under_way.left()
        if not left:
            return
        appended = {item.utterance.id for item in self._records(SpoolPosition(self._segments.end.segment, 0))}
        try:
            for utterance in left:
                if utterance.id not in appended:
                    self.append(utterance)
        except Unavailable as error:
            logger.warning("an utterance that the last process left unfinished is not recovered yet: {}", error)
            return
        self._under_way.clear()

    def _read_cursor(self, numbers: list[int]) -> SpoolPosition:
        found = _cursor_in(self._directory)
        if found is None and (self._directory / "acknowledged").exists():
            logger.error("the spool's cursor is damaged: everything in the spool is sent again, which is harmless")
        return found or SpoolPosition(numbers[0] if numbers else 1, 0)

    def _records(self, after: SpoolPosition) -> Iterator[Pending]:
        for line, end in self._segments.lines(after):
            utterance = spool_files.utterance_of(line)
            if utterance is None:
                self._set_aside(line)
            else:
                yield Pending(utterance, end)

    def set_aside(self, utterance: Utterance) -> None:
        """Move an utterance that the log will never store to `DIR/damaged`, where a person can look at it.

        Raises:
            Unavailable: The disk has no room for it.
        """
        try:
            self._set_aside(spool_files.record(utterance))
        except OSError as error:
            raise Unavailable(f"the spool {self._directory} cannot be written: {error.strerror}") from None

    def _set_aside(self, line: bytes) -> None:
        damaged = self._directory / "damaged"
        if damaged.exists() and line in damaged.read_bytes():
            return
        logger.error("a record of {} bytes in the spool was moved to {}", len(line), damaged)
        with damaged.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


# Remove records from a spool permanently: from its segments, from `under-way` and from `damaged`.


_SEGMENT: Final = re.compile(r"([0-9]{10})\.spool(?:\.gz|\.damaged)?")


def erase_from_spool(directory: Path, is_meant: Callable[[Utterance], bool], *, mentions: Collection[str] = ()) -> int:
    """Remove all matching records. Each file is replaced as a whole; after a crash, run it again.

    The log may receive some utterances again, which is harmless.

    Args:
        mentions: An unreadable record is removed if it contains one of these.

    Returns:
        How many records were removed.

    Raises:
        Unavailable: A running Glyphoxa uses the spool, or the disk fails.
    """
    if not directory.is_dir():
        return 0
    quoted = [b'"%s"' % each.encode() for each in mentions]

    def goes(line: bytes) -> bool:
        utterance = spool_files.utterance_of(line)
        return any(each in line for each in quoted) if utterance is None else is_meant(utterance)

    try:
        with (directory / "lock").open("a") as lock:
            if not lock_nowait(lock):
                raise Unavailable(
                    f"the spool {directory} is used by a running Glyphoxa, and may contain the erased words: end that "
                    "one, then erase again"
                )
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
        replace_file(path, gzip.compress(content, 4, mtime=0) if path.suffix in (".gz", ".damaged") else content)
        n_gone += len(lines) - len(kept)
    return n_gone


def _lines(path: Path) -> Iterator[bytes]:
    """Return the lines of a segment; of a damaged compressed one, those that can still be read."""
    content = path.read_bytes()
    if path.suffix in (".gz", ".damaged"):
        unpack, packed, content = zlib.decompressobj(zlib.MAX_WBITS | 16), content, b""
        with contextlib.suppress(zlib.error):
            # Byte by byte, so that everything before the damage is returned.
            content = b"".join(unpack.decompress(packed[n : n + 1]) for n in range(len(packed)))
    yield from content.splitlines(keepends=True)


def _begin_again(directory: Path, segment: int) -> None:
    """Reset the cursor to the start of this segment, whose places have changed: the log receives all of it."""
    acknowledged = _cursor_in(directory)
    if acknowledged is not None and acknowledged.segment == segment:
        replace_file(directory / "acknowledged", b"%d 0\n" % segment)


def _cursor_in(directory: Path) -> SpoolPosition | None:
    """Return how far the log has a spool; None if nothing says so, or the file is damaged."""
    try:
        parts = re.fullmatch(r"(\d+) (\d+)\n", (directory / "acknowledged").read_text())
    except FileNotFoundError:
        return None
    return None if parts is None else SpoolPosition(int(parts[1]), int(parts[2]))
