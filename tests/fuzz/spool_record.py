"""A line of the spool: what is no whole record is None, and what was read is written again as it was."""

from __future__ import annotations

import zlib
from pathlib import Path

from glyphoxa.transcript.spool_files import record, utterance_of
from tests.fuzz.running import FuzzTarget


def feed(data: bytes, scratch: Path) -> None:
    utterance_of(data)
    # With a header that is right, so that the payload is looked at, too.
    told = utterance_of(b"%08x %08x %s\n" % (len(data), zlib.crc32(data), data))
    if told is not None:
        assert utterance_of(record(told)) is not None


TARGET = FuzzTarget(
    "spool_record", feed, (b'"', b"{", b"}", b"null", b"1e999", b"9" * 40, b"\\ud800", b"\\u0000", b"-1")
)
