"""Worlds of Foundry VTT as its versions store them: NeDB until 10, LevelDB since."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Document = dict[str, Any]
_BLOCK = 32_768
_COLLECTIONS = {
    "actors": ("items",),
    "items": (),
    "scenes": ("tokens", "notes", "levels"),
    "journal": ("pages",),
    "folders": (),
    "users": (),
    "adventures": (),
}


def write_world(root: Path, collections: Mapping[str, Iterable[Document]], *, version: int) -> Path:
    """Write what is given in the form of version 13 as an older or newer version stores it; returns the folder."""
    data = root / "data"
    data.mkdir(parents=True)
    title = {"title": "The Salt Coast", "packs": [{"name": "bestiary", "label": "Bestiary", "type": "Actor"}]}
    manifest = {**title, "name": "salt-coast"} if version < 10 else {**title, "id": "salt-coast"}
    (root / "world.json").write_text(json.dumps(manifest))
    for name, documents in collections.items():
        if version < 11:
            old = [_of_version_9(name, each) if version < 10 else each for each in documents]
            write_nedb(data / f"{name}.db", old)
        else:
            write_leveldb(data / name, leveldb_records(name, documents))
    return root


def write_nedb(path: Path, documents: Iterable[Document]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in documents))


def leveldb_records(collection: str, documents: Iterable[Document]) -> dict[str, Document]:
    """Return records by key: documents inside others have their own."""
    records: dict[str, Document] = {}
    for document in documents:
        stored = dict(document)
        for inside in _COLLECTIONS[collection]:
            if inside in stored:
                ids = [each["_id"] for each in stored[inside]]
                for each in stored[inside]:
                    records[f"!{collection}.{inside}!{document['_id']}.{each['_id']}"] = each
                stored[inside] = ids
        records[f"!{collection}!{document['_id']}"] = stored
    return records


def write_leveldb(folder: Path, records: Mapping[str, Document | None] | Iterable[tuple[str, Document | None]]) -> None:
    """Write a database whose records are all in its log, in this order. None deletes."""
    folder.mkdir(parents=True, exist_ok=True)
    items = list(records.items() if isinstance(records, Mapping) else records)
    (folder / "CURRENT").write_text("MANIFEST-000002\n")
    comparator = b"leveldb.BytewiseComparator"
    edit = b"\x01" + _varint(len(comparator)) + comparator + b"\x02" + _varint(3) + b"\x03" + _varint(4)
    (folder / "MANIFEST-000002").write_bytes(_log([edit + b"\x04" + _varint(len(items))]))
    (folder / "000003.log").write_bytes(_log(_batch(i, *item) for i, item in enumerate(items, 1)))


def _batch(sequence: int, key: str, document: Document | None) -> bytes:
    head = struct.pack("<QI", sequence, 1) + (b"\x00" if document is None else b"\x01")
    head += _varint(len(key.encode())) + key.encode()
    if document is None:
        return head
    value = json.dumps(document).encode()
    return head + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _log(entries: Iterable[bytes]) -> bytes:
    """Return entries in the format of LevelDB's log: pieces in blocks of 32 KB. Checksums are left at zero."""
    out = bytearray()
    for entry in entries:
        is_first, rest = True, entry
        while True:
            room = _BLOCK - len(out) % _BLOCK
            if room < 7:
                out += b"\x00" * room
                continue
            piece, rest = rest[: room - 7], rest[room - 7 :]
            kind = (2 if is_first else 3) if rest else (1 if is_first else 4)
            out += struct.pack("<IHB", 0, len(piece), kind) + piece
            is_first = False
            if not rest:
                break
    return bytes(out)


def _of_version_9(collection: str, document: Document) -> Document:
    old = dict(document)
    if "ownership" in old:
        old["permission"] = old.pop("ownership")
    if "system" in old:
        old["data"] = old.pop("system")
    if "prototypeToken" in old:
        old["token"] = old.pop("prototypeToken")
    if collection == "folders":
        old["parent"] = old.pop("folder", None)
    if collection == "journal":
        pages = old.pop("pages")
        old["content"] = pages[0]["text"]["content"] if pages else ""
    return old
