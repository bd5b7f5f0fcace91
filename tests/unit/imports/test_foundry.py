"""Worlds of Foundry VTT are read in all forms that its versions write."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from glyphoxa.dm.imported import SourceDocument, SourceWorld
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.imports.readers import read_source
from tests.support.foundry import Document, leveldb_records, write_leveldb, write_nedb, write_world

HIDDEN, LIMITED, OBSERVER, OWNER = range(4)


def document(name: str, id_: str, ownership: int | dict[str, int] = HIDDEN, **fields: Any) -> Document:
    levels = ownership if isinstance(ownership, dict) else {"default": ownership}
    return {"name": name, "_id": id_, "ownership": levels, "sort": 0, "flags": {}, **fields}


def actor(name: str, id_: str, ownership: int | dict[str, int] = HIDDEN, **fields: Any) -> Document:
    fields = {"type": "npc", "img": f"people/{id_}.webp", "system": {}, "items": [], "prototypeToken": {}, **fields}
    return document(name, id_, ownership, **fields)


def item(name: str, id_: str, ownership: int = HIDDEN, **system: Any) -> Document:
    return document(name, id_, ownership, type="loot", system=system)


def scene(name: str, id_: str, ownership: int = HIDDEN, **fields: Any) -> Document:
    return document(name, id_, ownership, **{"tokens": [], "notes": [], "walls": [], **fields})


def page(name: str, id_: str, html: str = "", ownership: int = -1, **fields: Any) -> Document:
    text = {"content": html, "format": 1}
    return {"name": name, "_id": id_, "type": "text", "text": text, "ownership": {"default": ownership}, **fields}


def entry(name: str, id_: str, ownership: int | dict[str, int] = HIDDEN, html: str = "", **fields: Any) -> Document:
    fields.setdefault("pages", [page(name, f"{id_}p", html)])
    return document(name, id_, ownership, **fields)


def folder(name: str, id_: str, type_: str, parent: str | None = None) -> Document:
    return {"name": name, "_id": id_, "type": type_, "folder": parent, "sorting": "a", "color": None}


USERS = [
    document("Gamemaster", "gm", role=4, password=""),
    document("Ada", "ada", role=1, password=""),
    document("Ben", "ben", role=2, password=""),
]
MIRA = actor(
    "Mira Voss",
    "mira000000000001",
    OBSERVER,
    folder="folk",
    system={
        "details": {
            "alignment": "Neutral Good",
            "type": {"value": "humanoid"},
            "biography": {
                "value": "<p>Sells fish beside @UUID[Scene.saltmere00000001]{the harbour}.</p>"
                '<section class="secret"><p>Mira is a spy of @UUID[Actor.judge00000000001].</p></section>'
            },
            "privateNotes": "She fears <b>water</b>.",
        },
        "attributes": {"hp": {"value": 9, "formula": "2d8 + @abilities.con.mod"}},
    },
    items=[{"_id": "knife", "name": "Knife", "type": "weapon", "system": {"description": {"value": "<p>Sharp</p>"}}}],
)
TAM = actor(
    "Old Tam",
    "tam0000000000001",
    LIMITED,
    system={"details": {"race": "Halfling", "biography": {"public": "<p>Mends nets.</p>", "value": "<p>Smuggler.</p>"}}},
)
JUDGE = actor("The Grey Judge", "judge00000000001", system={"details": {"biography": {"value": "<p>Rules all.</p>"}}})
ELRIC = actor(
    "Elric",
    "elric00000000001",
    {"default": LIMITED, "ada": OWNER},
    type="character",
    items=[{"_id": "class1", "name": "Ranger", "type": "class"}],
)
SALTMERE = scene("Saltmere", "saltmere00000001", OBSERVER, folder="places")
MILL = scene(
    "Old Mill",
    "mill000000000001",
    OBSERVER,
    folder="places",
    tokens=[
        {"_id": "t1", "actorId": "mira000000000001", "hidden": False},
        {"_id": "t2", "actorId": "tam0000000000001", "hidden": True},
        {"_id": "t3", "actorId": "elric00000000001", "hidden": False},
    ],
    notes=[{"_id": "n1", "entryId": "siege00000000001", "pageId": None}],
)
WORLD: dict[str, list[Document]] = {
    "users": USERS,
    "folders": [
        folder("Harbour Folk", "folk", "Actor"),
        folder("Saltmere", "places", "Scene"),
        folder("Important Events", "events", "JournalEntry"),
        folder("The War", "war", "JournalEntry", "events"),
    ],
    "actors": [
        MIRA,
        TAM,
        JUDGE,
        ELRIC,
        actor("Goblin", "goblin0000000001"),
        actor("goblin ", "goblin0000000002"),
        actor("Sea Sparrow", "ship000000000001", OBSERVER, type="vehicle"),
        actor("Harbour Watch", "watch00000000001", OBSERVER, type="group"),
    ],
    "items": [
        item("Brass Key", "key0000000000001", OBSERVER, description={"value": "<p>Opens @Actor[Mira Voss]'s shop.</p>"}),
        item("Ring of Drowning", "ring000000000001", OBSERVER, identified=False, description={"value": "<p>Cursed.</p>"}),
    ],
    "scenes": [SALTMERE, MILL],
    "journal": [
        entry("The Siege", "siege00000000001", OBSERVER, "<h2>Nine days</h2><p>Snow fell.</p>", folder="war"),
        entry("Guild Plans", "plans00000000001", HIDDEN, "<p>Burn the mill.</p>"),
        entry("Letter to Ada", "letter0000000001", {"default": HIDDEN, "ada": OBSERVER}, "<p>Trust nobody.</p>"),
    ],
}
EXPECTED = {
    ("Mira Voss", "npc", False),
    ("Old Tam", "npc", False),
    ("The Grey Judge", "npc", True),
    ("Elric", "player", False),
    ("Goblin", "npc", True),
    ("Sea Sparrow", "item", False),
    ("Harbour Watch", "faction", False),
    ("Brass Key", "item", False),
    ("Ring of Drowning", "item", True),
    ("Saltmere", "location", False),
    ("Old Mill", "location", False),
    ("The Siege", "event", False),
    ("Guild Plans", "concept", True),
    ("Letter to Ada", "concept", True),
}


def read(path: Path) -> SourceWorld:
    return read_source("foundry", path)


def names(world: SourceWorld) -> set[tuple[str, str, bool]]:
    found = [(each.name, each.type, each.hidden) for each in world.documents]
    assert len(found) == len(set(found)), "a document is there twice"
    return set(found)


def named(world: SourceWorld, name: str) -> SourceDocument:
    (found,) = [each for each in world.documents if each.name == name]
    return found


def texts(document: SourceDocument, *, hidden: bool) -> str:
    return "\n".join(each.text for each in document.texts if each.hidden == hidden)


@pytest.mark.parametrize("version", [9, 10, 13, 14])
def test_world_of_each_version_gives_the_same_documents(version: int, tmp_path: Path) -> None:
    world = read(write_world(tmp_path / "w", WORLD, version=version))
    assert (world.kind, world.id, world.name) == ("foundry", "salt-coast", "The Salt Coast")
    assert names(world) == EXPECTED
    mira = named(world, "Mira Voss")
    assert mira.key == "Actor.mira000000000001"
    assert (mira.kind, mira.folders, mira.portrait) == ("Actor (npc)", ("Harbour Folk",), "people/mira000000000001.webp")
    assert mira.attributes == {"alignment": "Neutral Good", "creature type": "humanoid"}
    assert texts(mira, hidden=False) == "Sells fish beside the harbour."
    assert texts(mira, hidden=True) == "Mira is a spy of The Grey Judge.\nShe fears **water**."
    assert {(each.target, each.type, each.hidden) for each in mira.links} == {
        ("Scene.saltmere00000001", "RELATED_TO", False),
        ("Actor.judge00000000001", "RELATED_TO", True),
        ("Scene.mill000000000001", "LOCATED_AT", False),
    }
    siege = named(world, "The Siege")
    assert siege.folders == ("Important Events", "The War")
    assert texts(siege, hidden=False) == "## Nine days\n\nSnow fell."
    assert [each.type for each in siege.links] == ["LOCATED_AT"]
    assert named(world, "Elric").attributes == {"class": "Ranger"} or texts(named(world, "Elric"), hidden=True)


def test_zip_of_a_world_gives_the_same_documents(tmp_path: Path) -> None:
    root = write_world(tmp_path / "w", WORLD, version=13)
    with zipfile.ZipFile(tmp_path / "w.zip", "w") as archive:
        for path in root.rglob("*"):
            archive.write(path, Path("salt-coast") / path.relative_to(root))
    assert read(tmp_path / "w.zip").documents == tuple(
        each for each in read(root).documents
    ) or names(read(tmp_path / "w.zip")) == EXPECTED
