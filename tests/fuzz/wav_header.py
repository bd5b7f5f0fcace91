"""A recording, refused with `InvalidInput`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from demo.recordings import read_recording
from glyphoxa.domain.errors import InvalidInput
from tests.fuzz.running import FuzzTarget


def feed(data: bytes, scratch: Path) -> None:
    scratch.write_bytes(data)
    with suppress(InvalidInput):
        read_recording(scratch)


TARGET = FuzzTarget(
    "wav_header",
    feed,
    (
        b"RIFF",
        b"RIFX",
        b"RF64",
        b"WAVE",
        b"fmt ",
        b"data",
        b"fact",
        b"LIST",
        b"\xff\xff\xff\xff",
        b"\x00" * 4,
        b"\xfe\xff",
    ),
)
