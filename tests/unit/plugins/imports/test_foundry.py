"""Worlds of Foundry VTT are read in all forms that its versions write."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.dm.source_world import SourceWorld
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.plugins.imports.readers import read_source
from tests.support.foundry import Document, leveldb_records, write_leveldb, write_nedb, write_world
from tests.support.source_worlds import named, texts

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
    system={
        "details": {"race": "Halfling", "biography": {"public": "<p>Mends nets.</p>", "value": "<p>Smuggler.</p>"}}
    },
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
        item(
            "Brass Key", "key0000000000001", OBSERVER, description={"value": "<p>Opens @Actor[Mira Voss]'s shop.</p>"}
        ),
        item(
            "Ring of Drowning", "ring000000000001", OBSERVER, identified=False, description={"value": "<p>Cursed.</p>"}
        ),
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


@pytest.mark.parametrize("version", [9, 10, 13, 14])
def test_world_of_each_version_gives_the_same_documents(version: int, tmp_path: Path) -> None:
    world = read(write_world(tmp_path / "w", WORLD, version=version))
    assert (world.kind, world.id, world.name) == ("foundry", "salt-coast", "The Salt Coast")
    assert names(world) == EXPECTED
    mira = named(world, "Mira Voss")
    assert mira.key == "Actor.mira000000000001"
    assert (mira.kind, mira.folders, mira.portrait) == (
        "Actor (npc)",
        ("Harbour Folk",),
        "people/mira000000000001.webp",
    )
    assert mira.attributes == {"alignment": "Neutral Good", "creature type": "humanoid"}
    assert texts(mira, hidden=False) == "Sells fish beside the harbour."
    assert texts(mira, hidden=True) == "Mira is a spy of The Grey Judge.\nShe fears **water**."
    assert {(each.target, each.type, each.hidden) for each in mira.links} == {
        ("Scene.saltmere00000001", "LINKED_TO", False),
        ("Actor.judge00000000001", "LINKED_TO", True),
        ("Scene.mill000000000001", "LOCATED_AT", False),
    }
    siege = named(world, "The Siege")
    assert siege.portrait == ""
    assert siege.folders == ("Important Events", "The War")
    assert texts(siege, hidden=False) == "## Nine days\n\nSnow fell."
    assert [each.type for each in siege.links] == ["LOCATED_AT"]
    assert texts(named(world, "Elric"), hidden=True) == "class: Ranger"


def test_zip_of_a_world_gives_the_same_documents(tmp_path: Path) -> None:
    root = write_world(tmp_path / "w", WORLD, version=13)
    with zipfile.ZipFile(tmp_path / "w.zip", "w") as archive:
        for path in root.rglob("*"):
            archive.write(path, Path("salt-coast") / path.relative_to(root))
    assert read(tmp_path / "w.zip").documents == read(root).documents


def test_limited_ownership_shows_name_and_public_text_only(tmp_path: Path) -> None:
    tam = named(read(write_world(tmp_path, WORLD, version=13)), "Old Tam")
    assert not tam.hidden
    assert texts(tam, hidden=False) == "Mends nets."
    assert texts(tam, hidden=True) == "race: Halfling\nSmuggler."
    assert tam.attributes == {}
    assert [(each.type, each.hidden) for each in tam.links] == [("LOCATED_AT", True)]


def test_name_of_hidden_document_stays_out_of_visible_text(tmp_path: Path) -> None:
    html = "<p>Fear @UUID[Actor.judge00000000001], not @UUID[Actor.mira000000000001].</p>"
    journal = [entry("Rumours", "rumours000000001", OBSERVER, html)]
    rumours = named(read(write_world(tmp_path, {**WORLD, "journal": journal}, version=13)), "Rumours")
    assert texts(rumours, hidden=False) == "Fear ..., not Mira Voss."
    assert {each.target: each.hidden for each in rumours.links} == {
        "Actor.judge00000000001": True,
        "Actor.mira000000000001": False,
    }


@pytest.mark.parametrize(
    ("ownership", "hidden", "has_text"),
    [
        ({"default": LIMITED}, False, False),
        ({"default": OBSERVER, "ada": HIDDEN, "ben": HIDDEN}, True, False),
        ({"default": HIDDEN, "ada": OBSERVER, "ben": OWNER}, False, True),
        ({"default": HIDDEN, "gm": OWNER, "deleted": OWNER}, True, False),
        ({}, True, False),
    ],
)
def test_players_levels_decide_what_is_hidden(
    ownership: dict[str, int], hidden: bool, has_text: bool, tmp_path: Path
) -> None:
    one = actor("Mira", "m", ownership, system={"details": {"biography": {"value": "<p>Sells fish.</p>"}}})
    mira = named(read(write_world(tmp_path, {"users": USERS, "actors": [one]}, version=13)), "Mira")
    assert (mira.hidden, bool(texts(mira, hidden=False))) == (hidden, has_text)


def test_pages_are_documents_with_levels_of_their_own(tmp_path: Path) -> None:
    pages = [
        page("Salt Guild", "p1", "<p>Old.</p>", sort=2),
        page("Plan", "p2", "<p>Fire.</p>", HIDDEN, sort=1),
        page("Saltmere", "p3", "<p>Port.</p>"),
        {"_id": "p4", "name": "Seal", "type": "image", "src": "seal.webp", "ownership": {"default": -1}},
        page("Oath", "p5", text={"format": 2, "markdown": "We **swear**.", "content": ""}),
    ]
    journal = [
        entry("Factions", "e1", OBSERVER, pages=pages),
        entry("Notes", "e2", HIDDEN, pages=[page("Plan", "p6", "", OBSERVER), page("Salt Guild", "p7")]),
    ]
    world = read(write_world(tmp_path, {"users": USERS, "journal": journal, "scenes": [SALTMERE]}, version=13))
    assert names(world) == {
        ("Salt Guild (Factions)", "faction", False),
        ("Salt Guild (Notes)", "concept", True),
        ("Plan (Factions)", "faction", True),
        ("Plan", "concept", False),
        ("Saltmere", "faction", False),
        ("Saltmere", "location", False),
        ("Seal", "faction", False),
        ("Oath", "faction", False),
    }
    assert named(world, "Salt Guild (Factions)").key == "JournalEntry.e1.JournalEntryPage.p1"
    assert named(world, "Seal").portrait == "seal.webp"
    assert texts(named(world, "Oath"), hidden=False) == "We **swear**."


def test_compendium_is_hidden_and_its_copies_are_one(tmp_path: Path) -> None:
    copy = actor("Red Bandit", "copy", OBSERVER, _stats={"compendiumSource": "Compendium.world.bestiary.Actor.bandit"})
    old = actor("Wolf", "wolfcopy", flags={"core": {"sourceId": "Compendium.world.bestiary.wolf"}})
    root = write_world(tmp_path, {"users": USERS, "actors": [copy, old]}, version=13)
    bandit, wolf, bear = (actor(name, name.lower(), OWNER) for name in ("Bandit", "Wolf", "Bear"))
    write_leveldb(root / "packs" / "bestiary", leveldb_records("actors", [bandit, wolf, bear]))
    adventure = {"name": "Wreck", "_id": "wreck", "journal": [entry("Wreck Log", "log", OWNER)], "actors": [bear]}
    write_nedb(root / "packs" / "wreck.db", [adventure])
    world = read(root)
    assert names(world) == {
        ("Red Bandit", "npc", False),
        ("Wolf", "npc", True),
        ("Bear", "npc", True),
        ("Wreck Log", "concept", True),
    }
    assert named(world, "Bear").folders == ("Bestiary",)


def test_hidden_double_adds_only_hidden_texts(tmp_path: Path) -> None:
    def mira(id_: str, ownership: int, text: str, race: str) -> Document:
        return actor(
            "Mira", id_, ownership, system={"details": {"race": race, "biography": {"value": f"<p>{text}</p>"}}}
        )

    actors = [mira("a", HIDDEN, "A vampire.", "vampire"), mira("b", OBSERVER, "A baker.", "human")]
    document = named(read(write_world(tmp_path, {"users": USERS, "actors": actors}, version=13)), "Mira")
    assert (document.hidden, document.attributes) == (False, {"race": "human"})
    assert texts(document, hidden=False) == "A baker."
    assert texts(document, hidden=True) == "race: vampire\nA vampire."


def test_private_fields_of_any_system_are_hidden(tmp_path: Path) -> None:
    system = {
        "details": {
            "publicNotes": "<p>Public one.</p>",
            "privateNotes": "<p>Private two.</p>",
            "bio": "Long, grey and very thin.",
        },
        "biography": [{"title": "Youth", "value": "<p>Born at sea.</p>"}],
        "description": {"keeper": "Third secret.", "gm": "<p>Fourth.</p>"},
        "gmNotes": "<p>Born at sea.</p>",
        "attributes": {"formula": "2d6 + 1 + @abilities.str.mod + 4", "init": {"value": 3}},
    }
    world = read(write_world(tmp_path, {"actors": [actor("Mira", "m", OBSERVER, system=system)]}, version=13))
    mira = named(world, "Mira")
    assert texts(mira, hidden=False) == "Public one.\nLong, grey and very thin."
    assert set(texts(mira, hidden=True).splitlines()) == {"Private two.", "Third secret.", "Fourth.", "Born at sea."}


def test_last_line_of_a_nedb_document_wins(tmp_path: Path) -> None:
    first, other = actor("Mira", "m"), actor("Tam", "t")
    lines = [first, other, {**first, "name": "Mira Voss"}, {"$$deleted": True, "_id": "t"}, {"$$indexCreated": {}}]
    write_nedb(tmp_path / "actors.db", lines)
    with (tmp_path / "actors.db").open("a") as file:
        file.write('{"_id": "m", "name": "Mira V')
    world = read(tmp_path / "actors.db")
    assert names(world) == {("Mira Voss", "npc", True)}
    assert "1 damaged record of actors.db could not be read." in world.remarks


def test_newest_record_of_a_leveldb_wins(tmp_path: Path) -> None:
    first, other = actor("Mira", "m"), actor("Tam", "t")
    long = actor("Mira Voss", "m", system={"description": f"<p>{'Sells fish. ' * 9_000}</p>"})
    write_leveldb(
        tmp_path / "w", [("!actors!m", first), ("!actors!t", other), ("!actors!m", long), ("!actors!t", None)]
    )
    world = read(tmp_path / "w")
    assert names(world) == {("Mira Voss", "npc", True)}
    assert texts(named(world, "Mira Voss"), hidden=True).count("fish") == 9_000
    assert named(world, "Mira Voss").file == "w"


def test_compacted_leveldb_is_read_without_obsolete_files() -> None:
    world = read(Path("tests/data/foundry/actors"))
    assert {each.name for each in world.documents} == {
        "Ansa Reed",
        "Bero Quill",
        "Cald Thorn",
        "Edda Finch the Younger",
    }
    assert all(each.attributes == {"class": "Keeper"} for each in world.documents)


def test_leveldb_wins_over_the_file_it_was_made_from(tmp_path: Path) -> None:
    root = write_world(tmp_path, {"actors": [actor("New Mira", "m")]}, version=13)
    write_nedb(root / "data" / "actors.db", [actor("Mira", "m"), actor("Long Gone", "g")])
    assert names(read(root)) == {("New Mira", "npc", True)}


def test_truncated_log_is_remarked_and_the_rest_is_read(tmp_path: Path) -> None:
    root = write_world(tmp_path, {"actors": [actor("Mira", "m"), actor("Tam", "t")]}, version=13)
    log = root / "data" / "actors" / "000003.log"
    log.write_bytes(log.read_bytes()[:-20])
    world = read(root)
    assert names(world) == {("Mira", "npc", True)}
    assert any("damaged record of data/actors" in each for each in world.remarks)


@pytest.mark.parametrize("broken", ["000005.ldb", "CURRENT", "MANIFEST-000002"])
@pytest.mark.parametrize("how", ["missing", "cut", "noise"])
def test_damaged_leveldb_gives_one_clear_error(broken: str, how: str, tmp_path: Path) -> None:
    for path in Path("tests/data/foundry/actors").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    target = tmp_path / broken
    if how == "missing":
        target.unlink()
    else:
        content = target.read_bytes()
        target.write_bytes(content[: len(content) // 2] if how == "cut" else b"\xff" * len(content))
    with pytest.raises(InvalidInput, match="close Foundry and copy the folder again") as caught:
        read(tmp_path)
    assert "\n" not in str(caught.value)


def test_damaged_compendium_is_left_out_with_a_remark(tmp_path: Path) -> None:
    root = write_world(tmp_path, {"actors": [actor("Mira", "m")]}, version=13)
    write_leveldb(root / "packs" / "bestiary", leveldb_records("actors", [actor("Bear", "b")]))
    (root / "packs" / "bestiary" / "CURRENT").write_text("nothing")
    world = read(root)
    assert names(world) == {("Mira", "npc", True)}
    assert any(each.startswith("The compendium 'bestiary' was left out") for each in world.remarks)
    assert str(tmp_path) not in str(world.remarks)


def test_exports_are_hidden_and_keep_the_id_in_their_file_name(tmp_path: Path) -> None:
    def exported(document: Document) -> str:
        return json.dumps({key: each for key, each in document.items() if key not in ("_id", "ownership", "folder")})

    (tmp_path / "fvtt-Actor-mira-voss-mira000000000001.json").write_text(exported(MIRA))
    (tmp_path / "fvtt-Item-brass-key-key0000000000001.json").write_text(exported(WORLD["items"][0]))
    (tmp_path / "fvtt-Scene-saltmere-saltmere00000001.json").write_text(exported(SALTMERE))
    (tmp_path / "fvtt-JournalEntry-the-siege-siege00000000001.json").write_text(exported(WORLD["journal"][0]))
    pages = {**entry("Log", "log"), "pages": [page("The Siege", "p", "", OBSERVER), page("End", "q")]}
    (tmp_path / "fvtt-JournalEntry-log-log0000000000001.json").write_text(exported(pages))
    (tmp_path / "renamed.json").write_text(exported(TAM))
    (tmp_path / "fvtt-RollTable-x.json").write_text(json.dumps({"name": "Loot", "results": [], "formula": "1d6"}))
    (tmp_path / "notes.json").write_text("[1]")
    world = read(tmp_path)
    assert names(world) == {
        ("Mira Voss", "npc", True),
        ("Brass Key", "item", True),
        ("Saltmere", "location", True),
        ("The Siege", "concept", True),
        ("The Siege (Log)", "concept", True),
        ("End", "concept", True),
        ("Old Tam", "npc", True),
    }
    assert named(world, "Mira Voss").key == "Actor.mira000000000001"
    assert ("Scene.saltmere00000001", "LINKED_TO") in {
        (each.target, each.type) for each in named(world, "Mira Voss").links
    }
    assert "Nothing in these files could be seen by players: all of it is hidden." in world.remarks
    assert names(read(tmp_path / "renamed.json")) == {("Old Tam", "npc", True)}


def test_combined_object_and_adventure_are_read(tmp_path: Path) -> None:
    world = {key: each for key, each in WORLD.items() if key != "users"}
    (tmp_path / "world.json").write_text(json.dumps({"title": "All", "id": "all", **WORLD}))
    assert names(read(tmp_path / "world.json")) == EXPECTED
    (tmp_path / "adventure.json").write_text(json.dumps({"name": "All", "_id": "x", "caption": "", **world}))
    assert names(read(tmp_path / "adventure.json")) == {(name, type_, True) for name, type_, _ in EXPECTED}
    (tmp_path / "array.json").write_text(json.dumps([MIRA, SALTMERE]))
    assert {each.name for each in read(tmp_path / "array.json").documents} == {"Mira Voss", "Saltmere"}


def test_unpacked_compendium_is_read(tmp_path: Path) -> None:
    for collection in ("actors", "items", "journal", "folders"):
        for each in WORLD[collection]:
            unpacked = {**each, "_key": f"!{collection}!{each['_id']}", "ownership": {"default": 0}}
            path = tmp_path / collection / f"{each['_id']}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(unpacked))
    world = read(tmp_path)
    assert named(world, "Mira Voss").folders == ("Harbour Folk",)
    assert {each.name for each in world.documents} == {name for name, type_, _ in EXPECTED if type_ != "location"}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_encoding_of_an_export_is_detected(encoding: str, tmp_path: Path) -> None:
    content = json.dumps({**MIRA, "name": "Käthe Brückner"}, ensure_ascii=False)
    (tmp_path / "mira.json").write_bytes(content.encode(encoding))
    assert [each.name for each in read(tmp_path / "mira.json").documents] == ["Käthe Brückner"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.json", "{", "damaged JSON"),
        ("x.json", "[1]", "no JSON object"),
        ("x.json", "[]", "no JSON object"),
        ("x.json", '{"name": "x"}', "looked for a world"),
        ("x.json", "[" * 100_000, "nested too deeply"),
        ("actors.db", "SQLite format 3", "no database of Foundry"),
        ("x.txt", "Mira", "looked for a world"),
        ("world.json", '{"title": "Empty"}', "looked for a world"),
    ],
)
def test_other_files_give_one_clear_error(name: str, content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInput, match=told) as caught:
        read(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_folder_with_several_worlds_names_them(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_world(tmp_path / name, {"actors": []}, version=13)
    with pytest.raises(InvalidInput, match="several worlds; import one of them: first, second"):
        read(tmp_path)


def test_document_without_letter_in_its_name_is_left_out(tmp_path: Path) -> None:
    write_nedb(tmp_path / "actors.db", [actor("???", "a"), actor("", "b"), actor("Mira", "m")])
    world = read(tmp_path / "actors.db")
    assert names(world) == {("Mira", "npc", True)}
    assert "2 documents left out: no letter or digit in the name." in world.remarks


@pytest.mark.parametrize("kind", ["spell", "feat", "class", "background", "condition", "campaignFeature"])
def test_item_that_is_a_rule_is_left_out(kind: str, tmp_path: Path) -> None:
    rule = document("Fog Walk", "rule000000000001", OBSERVER, type=kind, system={})
    world = write_world(
        tmp_path / "w", {"items": [rule, item("Old Knife", "knife00000000001")], "users": USERS}, version=13
    )
    assert [(each.name, each.type) for each in read(world).documents] == [("Old Knife", "item")]


def test_order_of_records_does_not_matter(tmp_path: Path) -> None:
    turned = {name: list(reversed(each)) for name, each in WORLD.items()}
    first = read(write_world(tmp_path / "a", WORLD, version=10))
    second = read(write_world(tmp_path / "b", turned, version=10))
    assert first.documents == second.documents


@given(data=st.data())
def test_hidden_text_and_names_never_become_visible(data: st.DataObject) -> None:
    level = st.integers(-1, 3)
    ownership = st.dictionaries(st.sampled_from(["default", "gm", "ada", "ben", "gone"]), level, max_size=4)
    owned = data.draw(st.lists(st.tuples(st.sampled_from("AB"), ownership, ownership), min_size=1, max_size=6))

    def seen_by_all(levels: dict[str, int], within: dict[str, int] | None = None) -> int:
        own = [levels.get(user, levels.get("default", -1)) for user in ("ada", "ben")]
        outer = [(within or {}).get(user, (within or {}).get("default", 0)) for user in ("ada", "ben")]
        return min(o if mine == -1 and within is not None else mine for mine, o in zip(own, outer, strict=True))

    actors, journal, visible = [], [], set()
    for i, (name, outer, inner) in enumerate(owned):
        html = f'<p>open{i}</p><section class="secret"><p>closed{i} @UUID[Actor.a{i}]</p></section>'
        system = {"details": {"biography": {"value": html}, "privateNotes": f"<p>closed{i}</p>"}}
        actors.append(actor(f"Actor {name}", f"a{i}", outer, system=system))
        pages = [page(f"Page {name}", f"p{i}", html, ownership=0) | {"ownership": inner}, page("Other", f"o{i}", "", 0)]
        journal.append(entry(f"Entry {name}", f"e{i}", outer, pages=pages))
        if seen_by_all(outer) >= OBSERVER:
            visible.add(("npc", f"open{i}"))
        if outer and seen_by_all(inner, outer) >= OBSERVER:
            visible.add(("concept", f"open{i}"))
    with tempfile.TemporaryDirectory() as root:
        world = read(write_world(Path(root), {"users": USERS, "actors": actors, "journal": journal}, version=10))
    shown = {
        (each.type, text.text) for each in world.documents if not each.hidden for text in each.texts if not text.hidden
    }
    assert shown == visible
    secret_entries = {f"Entry {name}" for name, outer, _ in owned if seen_by_all(outer) < LIMITED} - {
        f"Entry {name}" for name, outer, _ in owned if seen_by_all(outer) >= LIMITED
    }
    assert not [
        each.name for each in world.documents if not each.hidden and any(n in each.name for n in secret_entries)
    ]
