"""Files of other tools, refused with `InvalidInput`; what was read can be stored."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from benchmarks.leveldb import write_leveldb
from glyphoxa.dm.import_review import cleaned, digest_of
from glyphoxa.dm.imported import ImportKind
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.plugins.imports.files import open_source
from glyphoxa.plugins.imports.html_text import html_text
from glyphoxa.plugins.imports.readers import read_source
from tests.fuzz.running import FuzzTarget


def _feed_zip(data: bytes, scratch: Path) -> None:
    scratch.write_bytes(data)
    with suppress(InvalidInput), open_source(scratch) as files:
        for name in files.names:
            assert not name.startswith("/") and ".." not in name.split("/")
            with suppress(InvalidInput):
                assert files.read(name) == b"".join(files.lines(name))


def _feed_html(data: bytes, scratch: Path) -> None:
    text = html_text(data.decode("utf-8", "replace"))
    assert isinstance(text.visible, str) and isinstance(text.hidden, str)


def _feed_leveldb(data: bytes, scratch: Path) -> None:
    world = scratch.with_name("world-of-leveldb")
    if not world.exists():
        write_leveldb(world / "actors", {b"!actors!a": b"{}"})
    (world / "actors" / "000005.ldb").write_bytes(data)
    _read("foundry", world)


def _feed_log(data: bytes, scratch: Path) -> None:
    world = scratch.with_name("world-of-log")
    if not world.exists():
        write_leveldb(world / "journal", {})
        (world / "journal" / "000005.ldb").unlink()
    (world / "journal" / "000006.log").write_bytes(data)
    _read("foundry", world)


def _as(kind: ImportKind, suffix: str) -> Callable[[bytes, Path], None]:
    def feed(data: bytes, scratch: Path) -> None:
        path = scratch.with_suffix(suffix)
        path.write_bytes(data)
        _read(kind, path)

    return feed


def _read(kind: ImportKind, path: Path) -> None:
    try:
        world = read_source(kind, path)
    except InvalidInput as error:
        assert "\n" not in str(error)
        return
    for document in cleaned(world).documents:
        assert document.name and document.type and document.key
        digest_of(document)


_JSON = (
    b'"',
    b"{",
    b"[" * 3_000,
    b'{"a":' * 2_000,
    b"9" * 5_000,
    b"1e999",
    b"NaN",
    b"\\ud800",
    b"\\u0000",
    b"null",
    b"-1",
)
_LEVELDB = (b"\xff" * 9 + b"\x01", b"\x80" * 9, b"\x00" * 8, b"\xff\xff\xff\xff\x0f", b"\xf4\xff\xff", b"!actors!")
_HTML = (
    b"<",
    b">",
    b"&#0;",
    b"&#x110000;",
    b"<section class='secret'>",
    b"</section>",
    b"<table><tr><td>",
    b"<div>" * 900,
)
_MARKDOWN = (
    b"---\n",
    b"[[",
    b"]]",
    b"%%",
    b"> [!secret]\n",
    b":::secret\n",
    b"```",
    b"&a ",
    b"*a",
    b"!!python/x ",
    b"- " * 900,
)
TARGETS = (
    FuzzTarget(
        "import_zip", _feed_zip, (b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04", b"../", b"\x00\x00", b"\xff" * 4)
    ),
    FuzzTarget("import_html", _feed_html, _HTML),
    FuzzTarget("import_leveldb", _feed_leveldb, _LEVELDB),
    FuzzTarget("import_log", _feed_log, _LEVELDB),
    FuzzTarget("import_foundry", _as("foundry", ".json"), (*_JSON, b'"pages": [', b'"ownership": {', b'"_id"')),
    FuzzTarget(
        "import_roll20", _as("roll20", ".json"), (*_JSON, b'"handouts": [', b'"gmnotes": "', b'"inplayerjournals"')
    ),
    FuzzTarget("import_card", _as("card", ".json"), (*_JSON, b'"entries": [', b'"data": {', b"{{user}}:", b"<START>")),
    FuzzTarget("import_card_png", _as("card", ".png"), (b"tEXt", b"zTXt", b"iTXt", b"chara\0", b"\xff" * 4, b"IEND")),
    FuzzTarget("import_markdown", _as("markdown", ".md"), _MARKDOWN),
)
