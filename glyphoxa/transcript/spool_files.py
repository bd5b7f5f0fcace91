"""The bytes of a spool: one record a line, in segments that may be shrunk. See `glyphoxa.transcript.spool`."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from glyphoxa.domain.errors import Corrupt
from glyphoxa.domain.utterance import Utterance

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


def sync_directory(directory: Path) -> None:
    """What was created and renamed in it survives a loss of power."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
