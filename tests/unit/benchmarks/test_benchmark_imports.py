from __future__ import annotations

import json
from pathlib import Path

import pytest
from chromium_reader.leveldb import RawLevelDb

from benchmarks import foundry_worlds
from benchmarks.foundry_worlds import FOR_ALL, FOR_GM, STORES, invented_world
from benchmarks.imports import compared
from benchmarks.leveldb import write_leveldb
from glyphoxa.dm.imported import SourceDocument, SourceText, SourceWorld


def test_leveldb_is_read_as_it_was_written(tmp_path: Path) -> None:
    older = {f"!actors!{n:04}".encode(): bytes([n % 256]) * (n * 7) for n in range(300)}
    later = [(b"!actors!0001", b"x" * 100_000), (b"!actors!0002", None), (b"!actors!9999", b"new")]
    # Records of every length around the end of a block, also those after which only a header fits in it.
    later += [(f"!actors!x{n:04}".encode(), b"y" * (32_600 + n)) for n in range(200)]
    write_leveldb(tmp_path / "actors", older, later)
    newest = {}
    with RawLevelDb(tmp_path / "actors") as database:
        for record in sorted(database.iterate_records_raw(), key=lambda record: record.seq):
            newest[record.user_key] = record.value if record.state.name == "LIVE" else None
    assert newest == {**older, **dict(later)}


def test_invented_world_is_the_same_for_the_same_seed() -> None:
    one, again, other = (invented_world(60, seed=seed) for seed in (1, 1, 2))
    assert one == again != other
    assert 60 <= len(one.truth) < 70
    assert all(one.collections.values()) and {each["type"] for each in one.truth} >= {"npc", "item", "location"}


@pytest.mark.parametrize("store", STORES)
def test_world_is_written_with_its_truth(store: str, tmp_path: Path) -> None:
    assert foundry_worlds.main([str(tmp_path / "w"), str(tmp_path / "t"), "--documents", "40", "--store", store]) == 0
    truth = json.loads((tmp_path / "t").read_text())
    assert len(truth) >= 40 and all(each["hidden"] for each in truth if each["type"] != "concept" and store == "json")
    written = b"".join(path.read_bytes() for path in (tmp_path / "w").rglob("*") if path.is_file())
    assert FOR_GM.encode() in written and FOR_ALL.encode() in written


def test_failures_of_an_import_are_counted() -> None:
    def document(name: str, type_: str, *texts: SourceText, hidden: bool = False) -> SourceDocument:
        return SourceDocument(name, name, type_, "Actor", "f", hidden=hidden, texts=texts)

    world = SourceWorld(
        "foundry",
        "w",
        "w",
        (
            document("Odo", "npc", SourceText(f"{FOR_ALL}1", hidden=False), SourceText(f"{FOR_ALL}2", hidden=True)),
            document("odo", "npc"),
            document("Mill", "location", SourceText(f"see {FOR_GM}3.", hidden=False)),
            document("Crypt", "location"),
            document("Vault", "location", SourceText(f"{FOR_GM}4", hidden=False), hidden=True),
            document("Extra", "item"),
        ),
    )
    truth: list[dict[str, object]] = [
        {"name": "Odo", "type": "npc", "hidden": False},
        {"name": "Mill", "type": "location"},
        {"name": "Crypt", "type": "location", "hidden": True},
        {"name": "Vault", "type": "location", "hidden": True},
        {"name": "Ring", "type": "item"},
    ]
    figures, failures = compared(world, truth)
    assert figures == {
        "expected": 5,
        "recall": 80.0,
        "duplicates": 1,
        "unexpected": 1,
        "hidden_leaks": 2,
        "visible_texts": 1,
        "wrongly_hidden_texts": 1,
    }
    assert {failure["failure"] for failure in failures} == {"missed", "twice", "unexpected", "shown", "leak"}
