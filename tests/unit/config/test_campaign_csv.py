from __future__ import annotations

import re
from pathlib import Path

import pytest

from glyphoxa.config.campaign_csv import is_tables, read_tables
from glyphoxa.dm.campaign_diff import Tables
from glyphoxa.domain.campaign import Entity, Relationship
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import EntityId
from tests.support.builders import SMITH, a_campaign

GRIMJAW, ORLA, MILL = EntityId("e-grimjaw"), EntityId("orla"), EntityId("the-mill")
ENTITIES = "name,type,aliases,occupation\nOrla,npc,the miller; Orl,miller\nThe Mill,location,,\n"
RELATIONSHIPS = "source,type,target,since\nOrla,OWNS,The Mill,\nGrimjaw,KNOWS,Orla,childhood\n"


def tables(directory: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        (directory / f"{name}.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    return directory


def read(path: Path) -> Tables:
    return read_tables(path, into=a_campaign()).tables


def mistakes(path: Path) -> list[str]:
    """Each as `file:line: what`."""
    with pytest.raises(InvalidInput) as caught:
        read_tables(path, into=a_campaign())
    folder = path if path.is_dir() else path.parent
    return [line.removeprefix(f"{folder}/") for line in str(caught.value).splitlines()]


def test_two_tables_make_entities_and_relationships(tmp_path: Path) -> None:
    assert read(tables(tmp_path, entities=ENTITIES, relationships=RELATIONSHIPS)) == Tables(
        (
            Entity(ORLA, "npc", "Orla", ("the miller", "Orl"), {"occupation": "miller"}),
            Entity(MILL, "location", "The Mill"),
        ),
        (Relationship(ORLA, MILL, "OWNS"), Relationship(GRIMJAW, ORLA, "KNOWS", {"since": "childhood"})),
    )


def test_a_table_alone_says_by_its_columns_which_it_is(tmp_path: Path) -> None:
    tables(tmp_path, people=ENTITIES, bonds="Target,TYPE,Source\nGrimjaw,KNOWS,Mirelle\n")
    assert [e.name for e in read(tmp_path / "people.csv").entities] == ["Orla", "The Mill"]
    assert [r.source for r in read(tmp_path / "bonds.csv").relationships] == ["e-mirelle"]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + ENTITIES.encode(),
        ENTITIES.replace("\n", "\r\n").encode(),
        b'name;type;aliases;occupation\r\nOrla;npc;"the miller; Orl";miller\r\n;;;\r\nThe Mill;location;;\r\n',
        b'"name","type","aliases","occupation",\n Orla ,npc,the miller;Orl,"miller",\nThe Mill,location,,,\n\n',
    ],
    ids=["byte order mark", "carriage returns", "semicolons", "quotes and an empty column"],
)
def test_spreadsheet_output_is_read(tmp_path: Path, content: bytes) -> None:
    assert (
        read(tables(tmp_path, entities=content))
        == read_tables(tables(tmp_path, plain=ENTITIES) / "plain.csv", into=a_campaign()).tables
    )


def test_quoted_csv_text_may_span_lines_and_lines_are_counted(tmp_path: Path) -> None:
    quoted = 'name,type,lore\nOrla,npc,"She said:\n""No, never."""\nBo,ncp,\n'
    assert mistakes(tables(tmp_path, entities=quoted))[0].startswith("entities.csv:4: unknown entity type 'ncp'")
    good = read(tables(tmp_path, entities=quoted.replace("ncp", "npc")))
    assert good.entities[0].attributes == {"lore": 'She said:\n"No, never."'}


def test_an_entity_that_is_there_is_added_to_under_its_own_name_and_id(tmp_path: Path) -> None:
    read_again = read(tables(tmp_path, entities="name,type,hat\ngrimjaw,npc,red\n"))
    assert read_again.entities == (Entity(GRIMJAW, "npc", "Grimjaw", (), {"hat": "red"}),)


def test_contradiction_with_the_campaign_file_is_reported(tmp_path: Path) -> None:
    path = tables(tmp_path, entities="name,type,description\nGrimjaw,npc,An elf.\n")
    warnings = read_tables(path, into=a_campaign()).warnings
    assert warnings == (f"{path}/entities.csv:2: Grimjaw: the campaign file has its own 'description', which is kept",)


def test_known_by_column_is_not_an_attribute(tmp_path: Path) -> None:
    path = tables(
        tmp_path,
        entities="name,type,known_by,hidden\nOrla,npc,Grimjaw,\nThe Mill,location,,yes\n",
        relationships="source,type,target,hidden\nOrla,OWNS,The Mill,X\n",
    )
    found = read(path)
    assert [(e.known_by, e.hidden, e.attributes) for e in found.entities] == [((SMITH,), False, {}), ((), True, {})]
    assert found.relationships[0].hidden


@pytest.mark.parametrize(
    ("content", "mistake"),
    [
        ("", "entities.csv: is empty"),
        ("\n \n", "entities.csv: is empty"),
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
        ("name,type\nGrimjaw,item\n", "2: 'Grimjaw' is an entity of type 'npc' in this campaign, not 'item'"),
        ("name,type,known_by\nOrla,npc,Grimjor\n", "2: 'Grimjor' is not an NPC of the campaign file, did you"),
        ("name,type,hidden\nOrla,npc,maybe\n", "2: hidden: 'maybe' is not valid, valid: yes, ja, true"),
        ("name,type,hidden\nGrimjaw,npc,yes\n", "2: 'Grimjaw' is an NPC of the campaign file, and an NPC cannot"),
        ('name,type\n"Orla"x,npc\n', "2: not CSV from here on"),
        ('name,type\n"Orla,npc\n', "2: not CSV from here on"),
        ('name,type\n"Or\nla",npc\n', "2: 'Or\\nla': a name must be one line of text"),
        (f"name,type\n{'x' * 300},npc\n", "2: 'xxxxxxxxxx"),
        (b"name,type\nM\xfcller\0,npc\n", "2: not UTF-8 text"),
        (b"\x00\x01\x02", "1: a NUL character: not a CSV table"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, content: str | bytes, mistake: str) -> None:
    found = mistakes(tables(tmp_path, entities=content))
    assert len(found) == 1 and found[0].startswith((mistake, f"entities.csv:{mistake}"))


@pytest.mark.parametrize(
    ("row", "mistake"),
    [
        ("Grimjor,KNOWS,Mirelle", "2: unknown entity 'Grimjor', did you mean 'Grimjaw'?"),
        ("Grimjaw,KNOWS,grimjaw", "2: 'Grimjaw' cannot be related to itself"),
        ("Grimjaw,KNOWS,", "2: 'target' is empty"),
        ("Grimjaw,ALLIED_WITH,Mirelle\nMirelle,ALLIED_WITH,Grimjaw", "3: relationship 'Grimjaw ALLIED_WITH "),
    ],
)  # fmt: skip
def test_a_mistake_in_a_relationship_is_reported_with_its_line(tmp_path: Path, row: str, mistake: str) -> None:
    found = mistakes(tables(tmp_path, relationships=f"source,type,target\n{row}\n"))
    assert len(found) == 1 and mistake in found[0]


def test_the_mistakes_of_both_tables_are_told_at_once(tmp_path: Path) -> None:
    path = tables(tmp_path, entities="name,type\nOrla,nqc\n", relationships="source,type,target\nOrla,KNOWS,Nobody\n")
    assert [line.split(":")[0] for line in mistakes(path)] == ["entities.csv", "relationships.csv"]


def test_thousands_of_mistakes_are_not_all_told(tmp_path: Path) -> None:
    rows = "".join(f"Nobody {n},KNOWS,Grimjaw\n" for n in range(50_000))
    assert len(mistakes(tables(tmp_path, relationships=f"source,type,target\n{rows}"))) <= 101


def test_a_type_of_ones_own_has_to_be_named(tmp_path: Path) -> None:
    path = tables(tmp_path, entities="name,type\nGlow,spell\n")
    assert "unknown entity type 'spell'" in mistakes(path)[0]
    assert read_tables(path, into=a_campaign(), entity_types=["spell"]).tables.entities[0].type == "spell"


def test_a_relationship_may_lead_to_what_is_only_in_the_world(tmp_path: Path) -> None:
    path = tables(tmp_path, relationships="source,type,target\nGrimjaw,KNOWS,Zara\n")
    zara = Entity(EntityId("z"), "npc", "Zara")
    assert read_tables(path, into=a_campaign(), also=[zara]).tables.relationships[0].target == "z"


def test_the_documented_tables_are_valid(tmp_path: Path) -> None:
    documented = (Path(__file__).parents[3] / "docs" / "writing-a-campaign.md").read_text()
    entities, relationships = re.findall(r"```\n((?:name|source),.*?)```", documented, re.DOTALL)
    found = read(tables(tmp_path, entities=entities, relationships=relationships))
    assert (len(found.entities), len(found.relationships)) == (2, 2)


def test_a_folder_without_tables_is_no_folder_of_tables(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"entities\.csv or relationships\.csv, or both"):
        read(tmp_path)
    with pytest.raises(NotFound, match="no such file"):
        read(tmp_path / "x.csv")
    assert is_tables(tmp_path) and is_tables(Path("a.CSV")) and not is_tables(Path("a.yaml"))


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
    (entity,) = read(tables(tmp_path, entities=content)).entities
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
    warnings = read_tables(tables(tmp_path, entities=content), into=None).warnings
    assert any(f"entities.csv:{remark}" in each for each in warnings)


def test_line_after_the_separator_line_counts(tmp_path: Path) -> None:
    found = mistakes(tables(tmp_path, entities="sep=;\nname;type\nMill;location\nFord;Lokation\n"))
    assert found == [
        "entities.csv:4: unknown entity type 'Lokation', did you mean 'location'? (your own: --entity-type)"
    ]
