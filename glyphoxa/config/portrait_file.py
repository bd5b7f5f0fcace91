"""A picture of an NPC, read from a file beside the campaign file, without what it tells besides the picture.

PNG, JPEG and WebP are lists of parts. Those that make the picture are kept, all others are dropped: where and with what
it was taken, who made it, and whatever stands behind its end. Nothing is decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from glyphoxa.domain.campaign import Portrait
from glyphoxa.domain.errors import InvalidInput

MOST_BYTES: Final = 2_000_000
MOST_PIXELS: Final = 2_048
"""Of its width, and of its height."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT: Final = frozenset(
    (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT", b"bKGD", b"pHYs")
)
_JPEG: Final = b"\xff\xd8"
_SOF: Final = frozenset((*range(0xC0, 0xD0),)) - {0xC4, 0xC8, 0xCC}
"""Markers of the frames that say how large a JPEG is."""
_SOS, _EOI, _COM, _APP0, _APP15 = 0xDA, 0xD9, 0xFE, 0xE0, 0xEF
_ADOBE = 0xEE
"""What its colours are made of."""
_WEBP_KEPT: Final = frozenset((b"VP8X", b"VP8 ", b"VP8L", b"ALPH"))
_ANIMATED: Final = 0x02
_ALPHA: Final = 0x10

_Picture = tuple[int, int, bytes]
"""Width, height, and what is served of it."""


def read_portrait(folder: Path, name: str) -> Portrait:
    """
    Args:
        folder: Of the campaign file.
        name: Of the picture, from that folder on.

    Raises:
        InvalidInput: It is outside of the folder, is not there, is too large, or is no picture that is served.
    """
    where = folder.resolve()
    try:
        path = (where / name).resolve()
    except (OSError, ValueError):
        raise InvalidInput(f"{name!r} is no name of a file") from None
    if not path.is_relative_to(where):
        raise InvalidInput(f"{name!r} is outside of the campaign file's folder; put the picture into it")
    try:
        if not path.is_file():
            raise InvalidInput(f"there is no file {name!r} beside the campaign file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{name!r} cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise InvalidInput(f"{name!r} has more than {MOST_BYTES // 1_000:,} kB; save it smaller")
    kind, (width, height, kept) = picture_of(name, content)
    if not 0 < width <= MOST_PIXELS or not 0 < height <= MOST_PIXELS:
        raise InvalidInput(f"{name!r} has {width} x {height} pixels; at most {MOST_PIXELS} x {MOST_PIXELS} are served")
    return Portrait(kind, kept)


def picture_of(name: str, content: bytes) -> tuple[str, _Picture]:
    """Its content type and what is served, by what it holds: a name's ending says nothing.

    Raises:
        InvalidInput: It is no picture that is served, or damaged.
    """
    try:
        if content.startswith(_PNG):
            return "image/png", _png(content)
        if content.startswith(_JPEG):
            return "image/jpeg", _jpeg(content)
        if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
            return "image/webp", _webp(content)
    except (struct.error, IndexError, ValueError):
        raise InvalidInput(f"{name!r} is damaged: its parts do not fit together") from None
    raise InvalidInput(f"{name!r} is no PNG, JPEG or WebP")


def _png(content: bytes) -> _Picture:
    at, kept, size = len(_PNG), [_PNG], (0, 0)
    seen: set[bytes] = set()
    while b"IEND" not in seen:
        length, kind = struct.unpack_from(">I4s", content, at)
        part = content[at : at + length + 12]
        if len(part) != length + 12 or (not seen and kind != b"IHDR"):
            raise ValueError(kind)
        if kind == b"IHDR":
            size = struct.unpack_from(">II", part, 8)
        if kind in _PNG_KEPT:
            kept.append(part)
        elif not kind[0] & 0x20:
            raise ValueError(kind)  # without it nobody can draw the picture
        seen.add(kind)
        at += len(part)
    if b"IDAT" not in seen:
        raise ValueError("no picture")
    return size[0], size[1], b"".join(kept)


def _jpeg(content: bytes) -> _Picture:
    size, kept, is_drawn = (0, 0), [_JPEG], False
    for marker, part in _segments(content):
        if marker in _SOF:
            height, width = struct.unpack_from(">HH", part, 5)
            size = width, height
        is_drawn = is_drawn or marker == _SOS
        is_told = marker == _COM or (_APP0 <= marker <= _APP15 and marker != _ADOBE)
        if not is_told:
            kept.append(part)
    if not is_drawn:
        raise ValueError("no picture")
    return size[0], size[1], b"".join(kept)


def _segments(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Each with its marker; those that begin a scan with all of it."""
    at = len(_JPEG)
    while True:
        if content[at] != 0xFF:
            raise ValueError(at)
        while content[at + 1] == 0xFF:  # markers may be filled up
            at += 1
        marker = content[at + 1]
        if marker == _EOI:
            yield marker, content[at : at + 2]
            return
        end = at + 2 + struct.unpack_from(">H", content, at + 2)[0]
        if end > len(content):
            raise ValueError(at)
        if marker == _SOS:
            # Inside a scan, 0xFF stands before 0 or a restart; anything else ends it.
            end = content.index(0xFF, end)
            while content[end + 1] == 0 or 0xD0 <= content[end + 1] <= 0xD7:
                end = content.index(0xFF, end + 1)
        yield marker, content[at:end]
        at = end


def _webp(content: bytes) -> _Picture:
    at, end = 12, 8 + struct.unpack_from("<I", content, 4)[0]
    if end > len(content):
        raise ValueError(end)
    size, kept, is_drawn = (0, 0), [], False
    while at + 8 <= end:
        kind, length = struct.unpack_from("<4sI", content, at)
        part = content[at : at + 8 + length + length % 2]
        if len(part) < 8 + length:
            raise ValueError(kind)
        if kind == b"VP8X":
            flags = part[8]
            if flags & _ANIMATED:
                raise ValueError("animated")
            size = 1 + int.from_bytes(part[12:15], "little"), 1 + int.from_bytes(part[15:18], "little")
            part = part[:8] + bytes((flags & _ALPHA,)) + part[9:]
        elif kind == b"VP8 ":
            width, height = struct.unpack_from("<HH", part, 14)
            size = max(size[0], width & 0x3FFF), max(size[1], height & 0x3FFF)
        elif kind == b"VP8L":
            bits = struct.unpack_from("<I", part, 9)[0]
            size = max(size[0], 1 + (bits & 0x3FFF)), max(size[1], 1 + (bits >> 14 & 0x3FFF))
        is_drawn = is_drawn or kind in (b"VP8 ", b"VP8L")
        if kind in _WEBP_KEPT:
            kept.append(part)
        at += len(part)
    if not is_drawn:
        raise ValueError("no picture")
    body = b"WEBP" + b"".join(kept)
    return size[0], size[1], b"RIFF" + struct.pack("<I", len(body)) + body
