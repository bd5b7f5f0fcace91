"""Saved games of Roll20 become documents; GM notes and what players may not see stay hidden."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from glyphoxa.dm.source_world import SourceLink, SourceText, SourceWorld
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.plugins.imports.readers import read_source
from tests.support.source_worlds import named

GM, ANNA, BERT = "-gm", "-anna", "-bert"
EVERYBODY, NOBODY = ["all"], [""]


def character(id_: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"id": id_, "name": name, "inplayerjournals": NOBODY, "controlledby": NOBODY, "attributes": [], **fields}


def handout(id_: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"id": id_, "name": name, "notes": "", "gmnotes": "", "inplayerjournals": NOBODY, **fields}


def campaign(**fields: Any) -> dict[str, Any]:
    players = [{"id": id_, "d20userid": user} for id_, user in ((GM, "7"), (ANNA, "8"), (BERT, "9"))]
    own = {"campaign_title": "The Tower", "campaign_id": "4711", "account_id": "7", "release": "legacy"}
    return {"R20Exporter_format": "1.0", **own, "players": players, "journalfolder": [], **fields}


def read(path: Path, content: Mapping[str, Any] | str | bytes) -> SourceWorld:
    written = json.dumps(content) if isinstance(content, Mapping) else content
    path.write_bytes(written.encode() if isinstance(written, str) else written)
    return read_source("roll20", path)


def zipped(path: Path, files: Mapping[str, Any]) -> SourceWorld:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, str | bytes) else json.dumps(content))
    return read_source("roll20", path)


def test_characters_handouts_and_pages_become_documents(tmp_path: Path) -> None:
    world = read(
        tmp_path / "tower.json",
        campaign(
            characters=[
                character("-c1", "Eldrinax", attributes=[{"name": "npc", "current": "1"}], controlledby=[GM]),
                character("-c2", "Lyra", attributes=[{"name": "class", "current": "Ranger"}], controlledby=[ANNA]),
            ],
            handouts=[handout("-h1", "Ironhold"), handout("-h2", "A letter")],
            pages=[{"id": "-p1", "name": "The gate", "graphics": [{"represents": "-c1"}, {"represents": "-c2"}]}],
            journalfolder=[{"n": "World", "i": [{"n": "Places", "i": ["-h1"]}, "-c1"]}, "-h2"],
        ),
    )
    assert (world.id, world.name) == ("4711", "The Tower")
    assert {(each.name, each.type, each.kind, each.folders) for each in world.documents} == {
        ("Eldrinax", "npc", "character", ("World",)),
        ("Lyra", "player", "character", ()),
        ("Ironhold", "location", "handout", ("World", "Places")),
        ("A letter", "concept", "handout", ()),
        ("The gate", "location", "page", ()),
    }
    assert named(world, "Lyra").attributes == {"class": "Ranger"}
    assert named(world, "Lyra").links == ()
    assert named(world, "Eldrinax").links == (SourceLink("-p1", "LOCATED_AT", hidden=True),)
    assert any("terms of service" in remark for remark in world.remarks)


@pytest.mark.parametrize(
    ("seen_by", "hidden"),
    [
        (EVERYBODY, False),
        ("all", False),
        ([ANNA, BERT], False),
        (f"{ANNA},{BERT},{GM}", False),
        ([ANNA], True),
        ([GM], True),
        (["-gone"], True),
        (NOBODY, True),
        ("", True),
    ],
)
def test_document_is_hidden_unless_every_player_may_see_it(tmp_path: Path, seen_by: object, hidden: bool) -> None:
    told = handout("-h1", "Ironhold", notes="<p>A city.</p>", gmnotes="<p>It burns.</p>", inplayerjournals=seen_by)
    document = named(read(tmp_path / "a.json", campaign(handouts=[told])), "Ironhold")
    assert document.hidden is hidden
    assert document.texts == (SourceText("A city.", hidden, "notes"), SourceText("It burns.", True, "GM notes"))


def test_only_what_all_may_see_is_public_if_nobody_can_tell_the_gm(tmp_path: Path) -> None:
    listed = [handout("-h1", "One", inplayerjournals=[ANNA, BERT]), handout("-h2", "All", inplayerjournals=EVERYBODY)]
    world = read(tmp_path / "a.json", campaign(account_id="0", handouts=listed))
    assert (named(world, "One").hidden, named(world, "All").hidden) == (True, False)


def test_links_in_texts_are_relations_hidden_where_the_text_is(tmp_path: Path) -> None:
    link = '<a href="http://journal.roll20.net/{}/{}">x</a>'
    told = handout("-h1", "A", notes=link.format("handout", "-h2"), inplayerjournals=EVERYBODY)
    told["gmnotes"] = link.format("character", "-c1") + link.format("handout", "-gone")
    listed = [told, handout("-h2", "B", inplayerjournals=EVERYBODY)]
    world = read(tmp_path / "a.json", campaign(handouts=listed, characters=[character("-c1", "C")]))
    assert named(world, "A").links == (SourceLink("-h2", "LINKED_TO"), SourceLink("-c1", "LINKED_TO", hidden=True))


def test_zip_of_r20exporter_brings_texts_and_pictures_beside_its_json(tmp_path: Path) -> None:
    short = handout("-h1", "Ironhold", inplayerjournals=EVERYBODY)
    lyra = character("-c2", "Lyra", controlledby=[ANNA])
    world = zipped(
        tmp_path / "The Tower.zip",
        {
            "campaign.json": campaign(handouts=[short], characters=[lyra]),
            "chat_archive.json": "[]",
            "journal/000 - Places/000 - Ironhold/handout.json": short,
            "journal/000 - Places/000 - Ironhold/notes.html": "<p>A <b>city</b>.</p>",
            "journal/000 - Places/000 - Ironhold/gmnotes.html": "<p>It burns.</p>",
            "characters/000 - Lyra/character.json": lyra,
            "characters/000 - Lyra/avatar.png": b"png",
        },
    )
    assert len(world.documents) == 2
    texts = (SourceText("A **city**.", False, "notes"), SourceText("It burns.", True, "GM notes"))
    assert named(world, "Ironhold").texts == texts
    assert named(world, "Lyra").portrait == "characters/000 - Lyra/avatar.png"


def test_folders_of_r20exporter_are_read_without_its_campaign(tmp_path: Path) -> None:
    path = "journal/000 - World/001 - Places/000 - Ironhold/handout.json"
    world = zipped(tmp_path / "a.zip", {path: handout("-h1", "Ironhold")})
    assert named(world, "Ironhold").folders == ("World", "Places")
    assert named(world, "Ironhold").type == "location"


def vttes(schema: int, kind: str, **fields: Any) -> dict[str, Any]:
    own = {"oldId": "-c1", "name": "Eldrinax", "gmnotes": "<p>Secret.</p>", "inplayerjournals": "all", **fields}
    return {"schema_version": schema, "type": kind, kind: own} if schema > 2 else {"schema_version": schema, **own}


@pytest.mark.parametrize("schema", [1, 2, 3])
def test_json_of_the_vtt_enhancement_suite_is_read(tmp_path: Path, schema: int) -> None:
    content = vttes(schema, "character", bio="<p>A wizard.</p>", attribs=[{"name": "race", "current": "Elf"}])
    document = named(read(tmp_path / "Eldrinax.json", content), "Eldrinax")
    assert (document.key, document.type, document.hidden) == ("-c1", "npc", False)
    sheet = SourceText("race: Elf", True, "sheet")
    assert document.texts == (sheet, SourceText("A wizard.", False, "bio"), SourceText("Secret.", True, "GM notes"))
    assert document.attributes == {}


@pytest.mark.parametrize("controlled_by", ["all", "-anna"])
def test_sheet_that_a_player_may_open_is_visible(tmp_path: Path, controlled_by: str) -> None:
    content = vttes(3, "character", controlledby=controlled_by, attribs=[{"name": "race", "current": "Elf"}])
    document = named(read(tmp_path / "Eldrinax.json", content), "Eldrinax")
    assert (document.attributes, document.hidden) == ({"race": "Elf"}, False)


def test_zip_of_the_vtt_enhancement_suite_is_read(tmp_path: Path) -> None:
    files = {
        "characters/NPCs/Eldrinax.json": vttes(3, "character", bio="x", attribs=[]),
        "handouts/Places/Ironhold.json": vttes(3, "handout", oldId="-h1", name="Ironhold", notes="<p>A city.</p>"),
    }
    world = zipped(tmp_path / "tower.zip", files)
    assert [(each.name, each.type) for each in world.documents] == [("Eldrinax", "npc"), ("Ironhold", "location")]


def test_json_of_an_npc_by_other_tools_is_an_npc_that_is_hidden(tmp_path: Path) -> None:
    content = {"name": "Brood-Mother", "type": "monstrosity", "alignment": "Chaotic Evil", "abilities": {"str": 16}}
    document = named(read(tmp_path / "npc.json", content), "Brood-Mother")
    assert (document.type, document.hidden) == ("npc", True)
    assert document.attributes == {"creature type": "monstrosity", "alignment": "Chaotic Evil"}


def test_documents_of_the_same_name_and_type_are_one(tmp_path: Path) -> None:
    ironhold = handout("-h1", "Ironhold", notes="A city.", inplayerjournals=EVERYBODY)
    world = read(
        tmp_path / "a.json",
        campaign(
            handouts=[ironhold, handout("-h2", "Letter"), handout("-h3", "Letter")],
            pages=[{"id": "-p1", "name": "IRONHOLD", "graphics": [{"represents": "-c1"}]}],
            characters=[character("-c1", "Goblin"), character("-c2", "Goblin", bio="Green."), character("-c3", "Lyra")],
            journalfolder=[{"n": "Places", "i": ["-h1"]}, {"n": "Act 1", "i": ["-h2"]}, {"n": "Act 2", "i": ["-h3"]}],
        ),
    )
    names = sorted(each.name for each in world.documents)
    assert names == ["Goblin", "Ironhold", "Letter (Act 1)", "Letter (Act 2)", "Lyra"]
    assert named(world, "Ironhold").texts == (SourceText("A city.", False, "notes"),)
    assert named(world, "Goblin").links == (SourceLink("-h1", "LOCATED_AT", hidden=True),)
    assert named(world, "Goblin").texts == (SourceText("Green.", True, "bio"),)


def test_united_documents_keep_the_secrets_of_each(tmp_path: Path) -> None:
    public = character("-c1", "Rusk", bio="Kind.", inplayerjournals=EVERYBODY)
    secret = character("-c2", "Rusk", bio="Cruel.", attributes=[{"name": "race", "current": "Demon"}])
    rusk = named(read(tmp_path / "a.json", campaign(characters=[public, secret])), "Rusk")
    assert not rusk.hidden
    assert rusk.attributes == {}
    assert rusk.texts == (SourceText("Kind.", False, "bio"), SourceText("Cruel.", True, "bio"))


def test_handouts_of_a_jumpgate_game_without_text_are_reported(tmp_path: Path) -> None:
    listed = [handout("-h1", "Full", notes="x"), handout("-h2", "Lost", notes="1700000000000"), handout("-h3", "Gone")]
    remarks = read(tmp_path / "a.json", campaign(release="jumpgate", handouts=listed)).remarks
    assert remarks[0].startswith("2 handouts have no text: exports of Jumpgate games")
    assert remarks[0].endswith(": Lost, Gone")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is damaged JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "no document of Roll20 in it; name a zip or campaign.json"),
        ('{"name": "Rusk", "type": "npc", "system": {}, "items": []}', "no document of Roll20"),
        ('{"name": "Journal", "pages": [{"name": "x"}]}', "no document of Roll20"),
        (b"\0\1\2\3\0\5\6\7\0\0", "is damaged JSON"),
    ],
)
def test_other_file_gives_one_clear_error(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read(tmp_path / "a.json", content)


def test_fields_of_wrong_types_are_left_out(tmp_path: Path) -> None:
    odd = [{"id": {}, "name": [1], "notes": 3, "inplayerjournals": {"a": 1}, "controlledby": 4}, "x", None]
    sheets = [character("-c1", "A\ud800\0b", attributes={"x": 1}, bio=["y"]), {"id": None, "attributes": [{"name": 0}]}]
    content = campaign(handouts=odd, characters=sheets, pages=[{"graphics": [{"represents": {}}, 7]}], players=[1])
    content["journalfolder"] = '[{"n": 3, "i": [["-c1"], {"i": "x"}]}]'
    world = read(tmp_path / "a.json", content)
    assert all(each.name.isprintable() and each.hidden for each in world.documents)
    assert named(world, "A b").key == "-c1"
