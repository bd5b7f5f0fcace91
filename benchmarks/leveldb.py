"""Write a small LevelDB as Foundry leaves one: older records in a table, later ones and deletions in the log.

https://github.com/google/leveldb/tree/main/doc describes the formats. Blocks of the table are compressed with Snappy,
though only with literals, which every reader has to understand.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

_MAGIC: Final = 0xDB4775248B80FB57
_BLOCK_OF_TABLE: Final = 4_096
_BLOCK_OF_LOG: Final = 32_768
_HEADER: Final = 7
_SNAPPY: Final = b"\x01"
_LITERAL: Final = 65_536
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def write_leveldb(folder: Path, older: Mapping[bytes, bytes], later: Iterable[tuple[bytes, bytes | None]] = ()) -> None:
    """
    Args:
        folder: It is created.
        older: Records of the table.
        later: Records of the log; None deletes the key.
    """
    folder.mkdir(parents=True)
    seq, records = 0, []
    for seq, key in enumerate(sorted(older), start=1):
        records.append((key + struct.pack("<Q", seq << 8 | 1), older[key]))
    (folder / "000005.ldb").write_bytes(table := _table(records))
    batches = []
    for seq, (key, value) in enumerate(later, start=seq + 1):  # noqa: B020 - it goes on counting
        put = b"\x00" + _counted(key) if value is None else b"\x01" + _counted(key) + _counted(value)
        batches.append(struct.pack("<QI", seq, 1) + put)
    (folder / "000006.log").write_bytes(b"".join(_log(batches)))
    edit = b"\x01" + _counted(b"leveldb.BytewiseComparator") + b"\x02\x06\x03\x07\x04" + _varint(seq)
    if records:
        edit += b"\x07\x00\x05" + _varint(len(table)) + _counted(records[0][0]) + _counted(records[-1][0])
    (folder / "MANIFEST-000004").write_bytes(b"".join(_log([edit])))
    (folder / "CURRENT").write_bytes(b"MANIFEST-000004\n")
    (folder / "LOCK").write_bytes(b"")


def _table(records: Iterable[tuple[bytes, bytes]]) -> bytes:
    table, index, block = bytearray(), [], list[tuple[bytes, bytes]]()

    def end_block() -> None:
        index.append((block[-1][0], _put_block(table, block)))
        block.clear()

    size = 0
    for key, value in records:
        block.append((key, value))
        size += len(key) + len(value)
        if size >= _BLOCK_OF_TABLE:
            end_block()
            size = 0
    if block:
        end_block()
    handles = _put_block(table, []) + _put_block(table, index)
    return bytes(table + handles.ljust(40, b"\x00") + struct.pack("<Q", _MAGIC))


def _put_block(table: bytearray, records: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the handle of the block: its offset and its size."""
    content, restarts = bytearray(), []
    for key, value in records:
        restarts.append(len(content))
        content += b"\x00" + _varint(len(key)) + _varint(len(value)) + key + value
    restarts = restarts or [0]
    content += b"".join(struct.pack("<I", each) for each in (*restarts, len(restarts)))
    packed = _packed(bytes(content))
    handle = _varint(len(table)) + _varint(len(packed))
    table += packed + _SNAPPY + _masked_crc(packed + _SNAPPY)
    return handle


def _packed(content: bytes) -> bytes:
    pieces = [_varint(len(content))]
    for at in range(0, len(content), _LITERAL):
        piece = content[at : at + _LITERAL]
        pieces += [b"\xf4", struct.pack("<H", len(piece) - 1), piece]
    return b"".join(pieces)


def _log(payloads: Iterable[bytes]) -> Iterator[bytes]:
    left = _BLOCK_OF_LOG
    for payload in payloads:
        at, begins, ends = 0, True, False
        while not ends:
            if left < _HEADER:
                yield b"\x00" * left
                left = _BLOCK_OF_LOG
            piece = payload[at : at + left - _HEADER]
            ends = at + len(piece) == len(payload)
            kind = bytes([(_FULL if ends else _FIRST) if begins else (_LAST if ends else _MIDDLE)])
            yield _masked_crc(kind + piece) + struct.pack("<H", len(piece)) + kind + piece
            at, begins = at + len(piece), False
            left -= _HEADER + len(piece)


def _counted(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def _masked_crc(data: bytes) -> bytes:
    crc, table = 0xFFFFFFFF, _crc_table()
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@cache
def _crc_table() -> tuple[int, ...]:
    """Return the table of CRC-32C."""

    def entry(crc: int) -> int:
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        return crc

    return tuple(map(entry, range(256)))
