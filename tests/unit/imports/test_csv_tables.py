"""CSV tables become documents to review."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from glyphoxa.dm.imported import SourceLink, SourceText, SourceWorld
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.imports.readers import read_source

ENTITIES = "name,type,aliases,hidden,known_by,occupation\nOrla,npc,Orl;the miller,,,miller\nThe Mill,Location,,,,\n"


def read(folder: Path, **tables: str | bytes) -> SourceWorld:
    for name, content in tables.items():
        (folder / f"{name}.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    return read_source("csv", folder)


def test_rows_become_public_documents_with_relations(tmp_path: Path) -> None:
    relationships = "source;type;target\nOrla;LOCATED_AT;The Mill\n"
    orla, mill = read(tmp_path, entities=ENTITIES, relationships=relationships).documents
    assert (orla.key, orla.name, orla.type, orla.aliases) == ("orla", "Orla", "npc", ("Orl", "the miller"))
    assert (orla.attributes, orla.hidden, orla.file) == ({"occupation": "miller"}, False, "entities.csv")
    assert orla.links == (SourceLink("the-mill", "LOCATED_AT"),)
    assert (mill.type, mill.links) == ("location", ())


def test_rows_that_not_everybody_knows_are_hidden(tmp_path: Path) -> None:
    rows = "name,type,hidden,known_by\nA,npc,yes,\nB,npc,,Grimjaw\nC,npc,no,\nD,npc,,\n"
    edges = "source,type,target,hidden,known_by\nC,KNOWS,D,,\nC,FEARS,D,yes,\nD,KNOWS,C,,Grimjaw\nC,KNOWS,B,,\n"
    world = read(tmp_path, entities=rows, relationships=edges)
    assert [(each.name, each.hidden) for each in world.documents] == [
        ("A", True),
        ("B", True),
        ("C", False),
        ("D", False),
    ]
    assert [(link.target, link.hidden) for link in world.documents[2].links] == [("d", False), ("d", True), ("b", True)]
    assert [link.hidden for link in world.documents[3].links] == [True]


def test_table_alone_in_another_encoding_is_read(tmp_path: Path) -> None:
    path = tmp_path / "Eldermoor.csv"
    path.write_bytes("sep=;\r\nname;type\r\nHöhle;location\r\n".encode("cp1252"))
    world = read_source("csv", path)
    assert (world.id, [each.name for each in world.documents]) == ("Eldermoor", ["Höhle"])
    assert world.remarks[0].startswith("Eldermoor.csv:3: not UTF-8")


def test_zip_with_tables_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("world/entities.csv", ENTITIES)
    assert len(read_source("csv", tmp_path / "a.zip").documents) == 2


def test_type_of_the_author_is_kept_and_a_misspelt_one_is_an_error(tmp_path: Path) -> None:
    assert read(tmp_path, entities="name,type\nMoradin,deity\n").documents[0].type == "deity"
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, entities="name,type\nMoradin,deity\nHall,locatoin\n")
    assert str(caught.value) == f"{tmp_path}/entities.csv:3: unknown entity type 'locatoin', did you mean 'location'?"


def test_relation_to_an_entity_without_a_row_is_reported(tmp_path: Path) -> None:
    world = read(tmp_path, entities=ENTITIES, relationships="source,type,target\nOrla,KNOWS,Odo\n")
    assert world.documents[0].links == ()
    assert world.remarks[-1].startswith("Odo: no row says what they are")


def test_all_mistakes_are_reported_with_the_lines_of_the_own_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, entities="name,type\nA,npc,x\n", relationships="source,type\nA,B\n")
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{tmp_path}/entities.csv:2", f"{tmp_path}/relationships.csv:1"]


def test_folder_without_tables_says_what_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"no table in it; name a \.csv file \(Excel: save as CSV\) or what contains entities\.csv"
    ):
        read(tmp_path, other="name,type\n")


def test_column_for_the_dm_is_a_hidden_text(tmp_path: Path) -> None:
    [orla] = read(tmp_path, entities="name,type,occupation,GM notes\nOrla,npc,miller,She poisons wells.\n").documents
    assert orla.attributes == {"occupation": "miller"}
    assert orla.texts == (SourceText("She poisons wells.", hidden=True, page="GM notes"),)
