"""CSV tables become documents to review."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from glyphoxa.dm.source_world import SourceLink, SourceWorld
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.plugins.imports.readers import read_source

ENTITIES = "name,type,aliases,hidden,known_by,occupation\nOrla,npc,Orl;the miller,,,miller\nThe Mill,Location,,,,\n"
PLAIN = "name,type,aliases,occupation\nOrla,npc,the miller; Orl,miller\nThe Mill,location,,\n"


def read(folder: Path, **tables: str | bytes) -> SourceWorld:
    for name, content in tables.items():
        (folder / f"{name}.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    return read_source("csv", folder)


def mistakes(folder: Path, **tables: str | bytes) -> list[str]:
    """Each as `file:line: what`."""
    with pytest.raises(InvalidInput) as caught:
        read(folder, **tables)
    return [line.removeprefix(f"{folder}/") for line in str(caught.value).splitlines()]


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


def test_name_that_only_relations_have_is_a_concept(tmp_path: Path) -> None:
    world = read(tmp_path, relationships="source,type,target\nOrla,KNOWS,Odo\nodo,KNOWS,Orla\n")
    orla, odo = world.documents
    assert [(each.name, each.type, each.hidden) for each in world.documents] == [
        ("Orla", "concept", False),
        ("Odo", "concept", False),
    ]
    assert (orla.links, odo.links) == ((SourceLink("odo", "KNOWS"),), (SourceLink("orla", "KNOWS"),))
    assert "Orla, Odo: no row says what they are; each becomes part of what has its name" in world.remarks[0]


@pytest.mark.parametrize("hidden", ["Orla,KNOWS,Odo,yes\n", "Bo,KNOWS,Odo,\n", "Orla,HAS,GM notes,\n"])
def test_name_that_only_hidden_relations_have_is_hidden(tmp_path: Path, hidden: str) -> None:
    entities = "name,type,hidden\nOrla,npc,\nBo,npc,yes\n"
    world = read(tmp_path, entities=entities, relationships=f"source,type,target,hidden\n{hidden}")
    assert [each.hidden for each in world.documents] == [False, True, True]
    both = f"source,type,target,hidden\n{hidden}Orla,OWNS,Odo,\n"
    shown = {each.name for each in read(tmp_path, entities=entities, relationships=both).documents if not each.hidden}
    assert shown == {"Orla", "Odo"}


@pytest.mark.parametrize("name", ["The Stranger", "stranger", "Lord Väne", "lord vane", "the-stranger"])
def test_name_or_alias_of_a_hidden_row_means_that_row(tmp_path: Path, name: str) -> None:
    entities = "name,type,aliases,hidden\nOrla,npc,,\nThe Stranger,npc,Lord Vane,yes\n"
    world = read(tmp_path, entities=entities, relationships=f"source,type,target\nOrla,KNOWS,{name}\n")
    assert [each.hidden for each in world.documents] == [False, True]
    assert world.documents[0].links == (SourceLink("the-stranger", "KNOWS", hidden=True),)


def test_columns_of_a_relation_are_its_attributes(tmp_path: Path) -> None:
    rows = 'source,type,target,since,GM notes\nOrla,KNOWS,Odo,childhood,\nOrla,FEARS,Odo,"a ||lie||",He lied.\n'
    orla, _ = read(tmp_path, relationships=rows).documents
    assert orla.links == (
        SourceLink("odo", "KNOWS", attributes={"since": "childhood"}),
        SourceLink("odo", "FEARS", hidden=True, attributes={"since": "a"}),
    )
    assert [text.text for text in orla.texts] == ["lie", "He lied."]


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


@pytest.mark.parametrize(
    "content",
    [
        b'name;type;aliases;occupation\r\nOrla;npc;"the miller; Orl";miller\r\n;;;\r\nThe Mill;location;;\r\n',
        b'"name","type","aliases","occupation",\n Orla ,npc,the miller;Orl,"miller",\nThe Mill,location,,,\n\n',
    ],
    ids=["semicolons", "quotes and an empty column"],
)
def test_spreadsheet_output_is_read(tmp_path: Path, content: bytes) -> None:
    plain = read(tmp_path, entities=PLAIN)
    assert read(tmp_path, entities=content) == plain


def test_quoted_csv_text_may_span_lines_and_lines_are_counted(tmp_path: Path) -> None:
    quoted = 'name,type,lore\nOrla,npc,"She said:\n""No, never."""\nBo,ncp,\n'
    assert mistakes(tmp_path, entities=quoted)[0].startswith("entities.csv:4: unknown entity type 'ncp'")
    good = read(tmp_path, entities=quoted.replace("ncp", "npc"))
    assert good.documents[0].attributes == {"lore": 'She said:\n"No, never."'}


@pytest.mark.parametrize(
    ("content", "mistake"),
    [
        ("", "1: is empty"),
        ("\n \n", "1: is empty"),
        ("nmae,type\nOrla,npc\n", "1: the columns are not those of a table: 'name' missing (there is 'nmae', did you"),
        ("Name/Type\nOrla/npc\n", "1: the columns are not those of a table"),
        ("name,type,aliasses\nOrla,npc,x\n", "1: unknown column 'aliasses', did you mean 'aliases'?"),
        ("name,type,hat,Hat\nOrla,npc,x,y\n", "1: column 'Hat' is here twice"),
        ("name,type,secret\nOrla,npc,x\n", "1: everybody would know an attribute 'secret'"),
        ("name,type,\nOrla,npc,x\n", "2: 'x' is in a column without a name"),
        ("name,type\nOrla\n", "2: a row of 1 cells; the header names 2 columns"),
        ("name,type\nOrla,npc,x\n", "2: a row of 3 cells; the header names 2 columns"),
        ("name,type\n,npc\n", "2: 'name' is empty"),
        ("name,type\nOrla,npc\norla,npc\n", "3: entity 'orla' is here twice, first on line 2"),
        ("name,type\nOld Mill,item\nOld-Mill,item\n", "3: 'Old-Mill' and 'Old Mill' give the same id, 'old-mill'"),
        ("name,type\n!!,npc\n", "2: '!!' has no letter or digit to make an id from"),
        ("name,type,hidden\nOrla,npc,maybe\n", "2: hidden: 'maybe' is not valid, valid: yes, ja, true"),
        ('name,type\n"Orla"x,npc\n', "2: not CSV from here on"),
        ('name,type\n"Orla,npc\n', "2: not CSV from here on"),
        ('name,type\n"Or\nla",npc\n', "2: 'Or\\nla': a name must be one line of text"),
        (f"name,type\n{'x' * 300},npc\n", "2: 'xxxxxxxxxx"),
        (b"name,type\nM\xfcller\0,npc\n", "2: not UTF-8 text"),
        (b"\x00\x01\x02", "1: a NUL character: not a CSV table"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, content: str | bytes, mistake: str) -> None:
    found = mistakes(tmp_path, entities=content)
    assert len(found) == 1 and found[0].startswith((mistake, f"entities.csv:{mistake}"))


@pytest.mark.parametrize(
    ("row", "mistake"),
    [
        ("Grimjaw,KNOWS,grimjaw", "2: 'Grimjaw' cannot be related to itself"),
        ("Old Mill,KNOWS,Old-Mill", "2: 'Old Mill' cannot be related to itself"),
        ("Grimjaw,KNOWS,", "2: 'target' is empty"),
        ("Grimjaw,KNOWS,!!", "2: '!!' has no letter or digit to make an id from"),
        ("Grimjaw,ALLIED_WITH,Mirelle\nMirelle,ALLIED_WITH,Grimjaw", "3: relationship 'Grimjaw ALLIED_WITH "),
    ],
)  # fmt: skip
def test_a_mistake_in_a_relationship_is_reported_with_its_line(tmp_path: Path, row: str, mistake: str) -> None:
    found = mistakes(tmp_path, relationships=f"source,type,target\n{row}\n")
    assert len(found) == 1 and mistake in found[0]


def test_thousands_of_mistakes_are_not_all_told(tmp_path: Path) -> None:
    rows = "".join(f"Nobody {n},KNOWS,Nobody {n}\n" for n in range(50_000))
    assert len(mistakes(tmp_path, relationships=f"source,type,target\n{rows}")) <= 101


def test_the_documented_tables_are_valid(tmp_path: Path) -> None:
    documented = (Path(__file__).parents[4] / "docs" / "importing.md").read_text()
    entities, relationships = re.findall(r"```\n((?:name|source),.*?)```", documented, re.DOTALL)
    found = read(tmp_path, entities=entities, relationships=relationships).documents
    assert [(each.name, each.type, len(each.links)) for each in found] == [
        ("Orla", "npc", 1),
        ("The Mill", "location", 0),
        ("Grimjaw", "concept", 1),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "sep=;\r\nname;type\r\nMühle;location\r\n",
        'SEP=,\n"name","type"\nMühle,Location\n',
        '"sep=\t"\nname\ttype\nMühle\tLOCATION\n',
        "\ufeffsep=;\nName;Type\nMühle;location\n",
        "name\ttype\nMühle\tlocation\n",
        "name|type\nMühle|location\n",
        "name,type\rMühle,location\r",
        "name,type\nMu\u0308hle,location\n",
        "\u00a0name,type\u200b\nMühle\u200b,location\u00a0\n",
        "name,type\r\nMühle,location\r\n".encode("utf-16"),
        "name,type\r\nMühle,location\r\n".encode("utf-16-le"),
        "name,type\r\nMühle,location\r\n".encode("utf-16-be"),
        "name;type\r\nMühle;location\r\n".encode("cp1252"),
    ],
)
def test_table_of_any_spreadsheet_program_is_read(tmp_path: Path, content: str | bytes) -> None:
    (entity,) = read(tmp_path, entities=content).documents
    assert (entity.name, entity.type) == ("Mühle", "location")


@pytest.mark.parametrize(
    ("content", "remark"),
    [
        ("name,type\nMühle,location\n".encode("cp1252"), "2: not UTF-8, read as Windows-1252"),
        ("sep=;\nname;type\n“Mill”;location\n", "3: name: U+201C (left double quotation mark)"),
        ('name,type\n"""Mill""",location\n', "2: name: U+0022 (quotation mark)"),
        ("name,type\nMill\u200b,location\n", "2: name: 'Mill' contains U+200B (zero width space)"),
        (
            "name,type,about\nMill,location,<p>It &amp; {{char}}</p>\n",
            "2: about: markup is read as plain text, 'It & Mill.'",
        ),
    ],
)
def test_odd_table_is_read_with_a_remark(tmp_path: Path, content: str | bytes, remark: str) -> None:
    warnings = read(tmp_path, entities=content).remarks
    assert any(f"entities.csv:{remark}" in each for each in warnings)


def test_line_after_the_separator_line_counts(tmp_path: Path) -> None:
    found = mistakes(tmp_path, entities="sep=;\nname;type\nMill;location\nFord;Lokation\n")
    assert found == ["entities.csv:4: unknown entity type 'Lokation', did you mean 'location'?"]
