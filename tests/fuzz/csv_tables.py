"""Tables of entities and relationships, refused with `InvalidInput`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.plugins.imports.csv_tables import read_csv_tables
from glyphoxa.plugins.imports.files import open_source
from tests.fuzz.running import FuzzTarget


def feed(data: bytes, scratch: Path) -> None:
    scratch.write_bytes(data)
    with suppress(InvalidInput), open_source(scratch) as files:
        read_csv_tables(files)


WORDS = (b",", b";", b'"', b'""', b"\r", b"\r\n", b"\n\n", b"\t", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"x" * 140_000)
TARGET = FuzzTarget("csv_tables", feed, (*WORDS, b"name", b"type", b"npc", b"known_by", b"hidden", b"yes", b"Grimjaw"))
