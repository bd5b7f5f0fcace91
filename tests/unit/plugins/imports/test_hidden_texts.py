"""Hidden texts of any source stay hidden, whatever word their author used, and the review says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.dm.source_world import SourceDocument, SourceWorld
from glyphoxa.plugins.imports.html_text import PageLink
from glyphoxa.plugins.imports.markdown_text import note_text, page_text
from glyphoxa.plugins.imports.readers import read_source

SECRET = "zzquicksilver"  # in no other word of the notes
OPEN = "Orla Fenn grinds corn."

PARTS = """
## Storyteller only

{}

## Keeper's Notes

### More

{}

**Referee Notes**

{}

- {}

**DM Notes**
{}

**Goals:** {}

GM NOTES
--------

{}

- MC:
  - {}
    - {}

- GM
  - {}

- SL: {}
  - {}

- Players do not know
  - {}

- What the players do not yet know about her
  - {}

Players do not know:

- {}

- Was die Helden noch nicht über sie wissen
  - {}

1. **Keeper information**
   {}

- [ ] DM: {}

> [!dm]-
> {}

> [!spoiler] Act two
> {}

> [!note]- For the DM
> {}

> [!multi-column]
>
>> [!info]
>> Corn.
>
>> [!secret|wide]
>> {}

> **DM only**
>
> {}

> GM: {}

:::gm
{}
:::

:::note GM only
{}
:::

```ad-gm
{}
```

```ad-note
title: GM only
{}
```

!!! secret "GM"
    {}

<div class="gm-only">{}</div>

<details><summary>GM</summary>{}</details>

Corn <span class="secret">{}</span> grows.

<h2>GM Notes</h2>
<p>{}</p>

<div>
<b>GM notes</b><br>
{}
</div>

<spoiler>{}</spoiler>

<div data-visibility="dm-only">{}</div>

<p title="GM only">{}</p>

<ul><li>GM<ul><li>{}</li></ul></li></ul>

||{}||

Corn ||{}
and {}|| grows

>! {} !<

| Name | GM notes |
| - | - |
| Orla | {} |

| | |
| - | - |
| GM notes | {} |

| GM notes | {} |
| - | - |
| Trade | Miller |

| Name | Text | Visibility |
| - | - | - |
| Orla | {} | gm |

[gm:: {}]

(secret:: {})

## What the players don't know

{}

### For your eyes only
{}

Not for players: {}

(GM only) {}

{} is a lie (DM only).

G.M.: {}

==GM only== {}

**GM** {}

Corn grows. **GM:** {}

***GM Notes***

{}

<!-- GM ONLY -->
{}

%% DM %%

{}

<!-- gm -->
{}

{}

<!-- /gm -->

Note text ||{}|| here

[spoiler]
{}
[/spoiler]

## Nur für die Spielleitung

{}

**Meisterwissen**

{}

## Was die Helden nicht wissen

{}
"""


def note_in(folder: Path, text: str, name: str = "NPCs/Orla Fenn.md") -> SourceDocument:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    (document,) = read_source("markdown", folder).documents
    return document


def seen_by_players(document: SourceDocument) -> str:
    if document.hidden:
        return ""
    texts = [text.text for text in document.texts if not text.hidden]
    return str((document.name, document.aliases, document.attributes, texts))


def whole(document: SourceDocument) -> str:
    return str((document.attributes, [text.text for text in document.texts]))


def parts() -> list[str]:
    """Return the parts of `PARTS`; a part goes on with what belongs to its heading or line."""
    made: list[str] = []
    for part in PARTS.strip().split("\n\n"):
        begins = not part.startswith(("### More", "- {}", "{}\n", "> \n")) and part != "{}" and "**Goals" not in part
        if begins or not made:
            made.append(part)
        else:
            made[-1] += f"\n\n{part}"
    return [part for part in made if "{}" in part]


@pytest.mark.parametrize("part", parts())
def test_part_for_the_dm_is_hidden_with_its_reason_and_the_rest_is_not(tmp_path: Path, part: str) -> None:
    secret = part.replace("{}", f"{SECRET} lies")
    document = note_in(tmp_path, f"---\ntype: npc\n---\n{OPEN}\n\n{secret}\n\n## Appearance\n\n{OPEN}\n")
    assert SECRET not in seen_by_players(document)
    assert seen_by_players(document).count(OPEN) == 2
    assert whole(document).count(SECRET) == secret.count(SECRET)
    assert all(text.why for text in document.texts if text.hidden)


@pytest.mark.parametrize(
    "front",
    [
        "visibility: storyteller",
        "audience: [gm]",
        "gmOnly: true",
        "visibility: {players: none}",
        "meta: {visibility: gm}",
        "meta:\n  - visibility: gm",
        "tags: gm/plot",
        "tags: ['#private']",
        "cssclasses: [dm-only]",
        "nur_sl: true",
        "publish: false",
        "tags: [gm-only]",
    ],
)
def test_note_is_hidden_by_a_property_with_its_reason(tmp_path: Path, front: str) -> None:
    document = note_in(tmp_path, f"---\ntype: npc\n{front}\n---\n{SECRET}\n")
    assert document.hidden
    assert SECRET in whole(document)
    assert document.why.startswith(("property", "tag"))


@pytest.mark.parametrize(
    "front", ["visibility: public", "known to: everyone", "status: alive", "secret: no", "publish: true", "secret:"]
)
def test_note_whose_property_is_open_is_public(tmp_path: Path, front: str) -> None:
    assert OPEN in seen_by_players(note_in(tmp_path, f"---\n{front}\n---\n{OPEN}\n"))


@pytest.mark.parametrize(
    "text",
    [
        "visibility:: gm\n{}",
        "{}\n\n[visibility:: gm]",
        "Visibility: GM only\n\n{}",
        "{} #gm",
        "#dm/secret\n\n{}",
        "- **Visibility**:: dm\n\n{}",
        "secret:: true\n\n{}",
        "# GM Notes\n\n{}",
        "| Visibility | GM |\n| - | - |\n\n{}",
    ],
)
def test_note_is_hidden_by_a_field_or_tag_in_its_text(tmp_path: Path, text: str) -> None:
    document = note_in(tmp_path, text.replace("{}", SECRET))
    assert SECRET not in seen_by_players(document)
    assert SECRET in whole(document)


@pytest.mark.parametrize(
    "name",
    [
        "GM Notes.md",
        "_DM/x.md",
        "zz GM/x.md",
        "Session 4 - DM prep.md",
        "NPCs/Orla (GM).md",
        "DMOnly/x.md",
        "Secrets/x.md",
        "Orla (hidden)/x.md",
    ],
)
def test_note_is_hidden_by_its_name_or_folder(tmp_path: Path, name: str) -> None:
    document = note_in(tmp_path, SECRET, name)
    assert document.hidden
    assert document.why.startswith(("name", "folder"))


ORDINARY = ["Hidden Vale/The Hidden Vale.md", "The Master Smith.md", "Secret Societies/The Keepers.md", "The Spoils.md"]


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_name_hides_nothing(tmp_path: Path, name: str) -> None:
    text = f"# Secret Door\n\n{OPEN}\n\n## The Keeper of the Lighthouse\n\n{OPEN}\n\n**Sekretär**\n\n{OPEN}\n"
    assert seen_by_players(note_in(tmp_path, text, name)).count(OPEN) == 3


HTML = [each.replace("\n", "") for each in parts() if each.startswith("<")]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(parts()), min_size=1, max_size=5))
def test_no_order_of_marks_makes_a_hidden_text_public(chosen: list[str]) -> None:
    text = "\n\n".join(f"## Trade {n}\n\n{OPEN}\n\n{part}" for n, part in enumerate(chosen))
    read = note_text(text.replace("{}", SECRET))
    assert SECRET not in read.visible
    assert read.hidden.count(SECRET) == text.count("{}")
    assert read.visible.count(OPEN) == len(chosen)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(parts()), min_size=1, max_size=3), st.sampled_from(["> ", "- ", "1. "]))
def test_marks_inside_a_quote_or_list_hide(chosen: list[str], outer: str) -> None:
    lines = "\n\n".join(chosen).replace("{}", SECRET).splitlines()
    nested = [f"{outer if outer == '> ' or n == 0 else '   '[: len(outer)]}{line}" for n, line in enumerate(lines)]
    assert SECRET not in note_text("\n".join([f"{OPEN}\n", *nested])).visible


@pytest.mark.parametrize("part", HTML)
def test_page_in_html_hides_the_same(part: str) -> None:
    page = page_text(f"<p>{OPEN}</p>{part.replace('{}', SECRET)}")
    assert SECRET not in page.visible
    assert OPEN in page.visible
    assert SECRET in page.hidden
    assert page.why


def test_links_of_a_page_with_a_hidden_part_are_hidden() -> None:
    page = page_text("<p>x</p><h2>GM notes</h2><p><a href='Actor.boss'>him</a></p>")
    assert page.links == (PageLink("Actor.boss", hidden=True),)


def roll20(folder: Path, **fields: object) -> SourceDocument:
    handout = {"id": "-h", "name": "Mill", "notes": SECRET, "gmnotes": "", "inplayerjournals": "all", **fields}
    path = folder / "game.json"
    path.write_text(json.dumps({"characters": [], "handouts": [handout]}), "utf-8")
    (document,) = read_source("roll20", path).documents
    return document


@pytest.mark.parametrize("fields", [{"archived": True}, {"name": "GM Notes"}, {"tags": '["dm-only"]'}])
def test_entry_of_roll20_that_is_archived_or_marked_is_hidden(tmp_path: Path, fields: dict[str, object]) -> None:
    document = roll20(tmp_path, **fields)
    assert document.hidden
    assert document.why


def test_part_of_a_public_entry_of_roll20_is_hidden_by_its_heading(tmp_path: Path) -> None:
    document = roll20(tmp_path, notes=f"<p>{OPEN}</p><h3>DM info</h3><p>{SECRET}</p>")
    assert OPEN in seen_by_players(document)
    assert SECRET not in seen_by_players(document)
    assert document.marks == "heading 'DM info'"


def foundry(folder: Path, name: str, html: str) -> SourceWorld:
    page = {"_id": "p", "name": name, "type": "text", "text": {"content": html}, "ownership": {"default": -1}}
    entry = {"_id": "e", "name": name, "pages": [page], "ownership": {"default": 2}}
    (folder / "fvtt-JournalEntry-e.json").write_text(json.dumps(entry), "utf-8")
    return read_source("foundry", folder)


def test_page_of_foundry_that_players_see_is_hidden_by_its_name_or_heading(tmp_path: Path) -> None:
    (document,) = foundry(tmp_path, "Mill", f"<p>{OPEN}</p><p><strong>GM only</strong></p><p>{SECRET}</p>").documents
    assert OPEN in seen_by_players(document)
    assert SECRET not in seen_by_players(document)
    (document,) = foundry(tmp_path, "DM prep", f"<p>{SECRET}</p>").documents
    assert document.why == "name 'DM prep'"


@pytest.mark.parametrize(
    ("column", "cell", "why"),
    [
        ("visibility", "gm", "column 'visibility: gm'"),
        ("Visible to players?", "no", "column 'Visible to players?: no'"),
        ("secret?", "x", "column 'secret?: x'"),
        ("audience", "inner circle", "column 'audience: inner circle'"),
    ],
)
def test_row_of_a_table_is_hidden_by_its_column(tmp_path: Path, column: str, cell: str, why: str) -> None:
    rows = f"name,type,{column},trade\nOrla,npc,{cell},{SECRET}\nBerta,npc,,smith\n"
    (tmp_path / "entities.csv").write_text(rows, "utf-8")
    orla, berta = read_source("csv", tmp_path).documents
    assert (orla.hidden, orla.why, berta.hidden) == (True, why, False)


@pytest.mark.parametrize("column", ["GM notes", "Keeper info", "Geheimnis", "dm_only", "Hidden agenda"])
def test_cell_for_the_dm_is_a_hidden_text(tmp_path: Path, column: str) -> None:
    (tmp_path / "entities.csv").write_text(f"name,type,{column}\nOrla,npc,{SECRET} is her real name\n", "utf-8")
    (orla,) = read_source("csv", tmp_path).documents
    assert SECRET not in seen_by_players(orla)
    assert SECRET in whole(orla)
    assert orla.marks == f"column {column!r}"


@pytest.mark.parametrize("cell", ["{} ||lies||", "{} (GM only: lies)", "GM: lies"])
def test_part_of_a_cell_is_hidden_by_its_mark(tmp_path: Path, cell: str) -> None:
    rows = f'name,type,story,visible\nOrla,npc,"{cell.replace("{}", OPEN)}",yes\n'
    (tmp_path / "entities.csv").write_text(rows, "utf-8")
    (orla,) = read_source("csv", tmp_path).documents
    assert "lies" not in seen_by_players(orla)
    assert "lies" in whole(orla)
    assert "visible" not in orla.attributes


def test_column_that_hides_nothing_is_no_attribute(tmp_path: Path) -> None:
    (tmp_path / "entities.csv").write_text("name,type,secret?,public\nOrla,npc,no,yes\n", "utf-8")
    (orla,) = read_source("csv", tmp_path).documents
    assert (orla.hidden, orla.attributes, orla.texts) == (False, {}, ())


def test_relation_is_hidden_by_its_column(tmp_path: Path) -> None:
    (tmp_path / "entities.csv").write_text("name,type\nOrla,npc\nBerta,npc\n", "utf-8")
    (tmp_path / "relationships.csv").write_text("source,type,target,visibility\nOrla,FEARS,Berta,gm\n", "utf-8")
    assert [link.hidden for link in read_source("csv", tmp_path).documents[0].links] == [True]


def test_remarks_list_what_is_hidden_and_why_and_what_may_be_secret(tmp_path: Path) -> None:
    (tmp_path / "Spy.md").write_text("He betrays the duke.", "utf-8")
    (tmp_path / "GM Notes.md").write_text(SECRET, "utf-8")
    remarks = note_remarks(tmp_path, f"{OPEN}\n\n## DM\n\n{SECRET}\n")
    assert "hidden (2): GM Notes (name 'GM Notes'); Orla, in part (heading 'DM')" in remarks
    assert "may be secret, but players may know it: decide (1): Spy (betrays)" in remarks


def note_remarks(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "Orla.md").write_text(text, "utf-8")
    return read_source("markdown", folder).remarks


def test_properties_are_named_as_their_author_wrote_them(tmp_path: Path) -> None:
    vault = {
        "Berta.md": "---\nreveal: false\n---\nShe bakes.\n",
        "Orla.md": "---\nkeeper_notes: She stole the bell.\n---\nShe mills.\n",
    }
    for name, text in vault.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    berta, orla = read_source("markdown", tmp_path).documents
    assert berta.why == "property 'reveal: false'"
    assert [text.why for text in orla.texts if text.hidden] == ["property 'keeper_notes'"]
