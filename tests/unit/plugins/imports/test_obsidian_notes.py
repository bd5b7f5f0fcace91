"""Notes of Obsidian as people publish them: plugin code, forms and panels are no text; types are exact words."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.dm.source_world import SourceLink
from glyphoxa.plugins.imports.labels import type_named
from glyphoxa.plugins.imports.markdown_text import note_text
from tests.support.source_worlds import named, texts
from tests.unit.plugins.imports.test_markdown_folder import only, vault

PROSE = "Orla Finch mends nets by the weir and counts aloud."
FORM = """---
tags: ["#Character", "#NPC"]
art: pics/orla.png
occupation: [Net mender, Singer]
pronouns: she/her
age: 61
location: ["[[Weir House]]"]
cssclasses: [wide, npc-page]
obsidianUIMode: preview
NoteIcon: npc
created: 2024-03-01
hp: 14 (3d8)
whichparty:
---
<!-- QueryToSerialize: LIST FROM #npc -->
<!-- SerializedQuery: LIST FROM #npc -->
- [[Tam Ferry]]
<!-- SerializedQuery END -->

> [!metadata|metadata]- Panel
>> [!metadata|metadataoption]+ Entry
>> #### Entry
>>  |
>> ---|---|
> **Mood** | `INPUT[textArea:mood]` |

> [!infobox]+
> # `=this.file.name`
> ![[orla.png|cover hsmall]]
> ###### Bio
>  |
> ---|---|
> **Pronounced** | `VIEW[{pronounced}][text]` |
> **AC** | 12 |

# **`=this.file.name`** <span style="font-size: medium">"`VIEW[{pronounced}]`"</span>

#npc #weir

Orla Finch mends nets by the weir[^1] and ==counts aloud==. ^intro

## Mannerisms
`$= dv.current().mannerisms`

`BUTTON[roll-rumour]`

## Map
```leaflet
id: weir
```

## Relations
| Name | Since |
| --- | --- |

- **Voice:**
- **Hopes**:: `=this.hopes`

## Actions
***Net.*** *Ranged Weapon Attack:* +4 to hit.

## Rumours
- TBD
"""


def test_note_made_of_plugin_panels_has_its_prose_alone(tmp_path: Path) -> None:
    notes = {"NPCs/Orla Finch.md": FORM, "Places/Weir House.md": "", "pics/orla.png": b"png", "NPCs/Tam Ferry.md": ""}
    orla = named(vault(tmp_path, notes), "Orla Finch")
    assert (orla.type, orla.portrait) == ("npc", "pics/orla.png")
    assert [(text.text, text.hidden) for text in orla.texts] == [(PROSE, False)]
    assert orla.attributes == {"occupation": "Net mender, Singer", "pronouns": "she/her", "age": "61"}
    assert orla.links == (SourceLink("Places/Weir House.md", "LOCATED_AT"),)


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("She throws `dice: 1d6` stones and leaves.", "She throws stones and leaves."),
        ("Population: `=this.population`\n\nA port.", "A port."),
        ("| Race | `INPUT[text:race]` |\n| --- | --- |\n| Age | |\n\nA port.", "A port."),
        ("```dataviewjs\ndv.list()\n```\nA port.", "A port."),
        ("> [!info]- Overview\n> `INPUT[text:a]`\n\nA port.", "A port."),
        ("> [!infobox]\n>  |\n> ---|---|\n> Age | |\n> Race | Elf |", "> | Race | Elf |\n> | --- | --- |"),
        ("> [!info] Overview\n> A port.", "> Overview\n> A port."),
        (
            "![[a.png|cover]]\n[[a.png|Show To Players]]\n\nA port: see the [[a.png|map]].",
            "A port: see the map.",
        ),
        ("**Looks:** tall\n**Voice:**\n\n**Goals:**\n\n- Salt", "**Looks:** tall\n\n**Goals:**\n\n- Salt"),
        ("> [!info]- \n> A port.", "> A port."),
        ("> [!info] A port in the fog.", "> A port in the fog."),
        ("## Empty\n\n### Also empty\n\n## Port\n\nA port.", "## Port\n\nA port."),
        ("<% tp.file.title %>\n\n<%*\nlet x = 1\n\nlet y\n-%>\nA port.", "A port."),
        ("%% Begin Waypoint %%\n- [[Inn]]\n\n%% End Waypoint %%\nA port.", "A port."),
        ("%% Waypoint %%\nA port.\n<!-- markdownlint-disable -->", "A port."),
        ("A port[^a].\n\n[^a]: It burned twice.", "A port.\n\nIt burned twice."),
        ("**Armor Class** 15\n**Hit Points** 40\n\nA port.\n\n**Speed** 30 ft.", "A port."),
        ("| STR | DEX |\n| --- | --- |\n| 10 | 12 |\n\nA port.", "A port."),
        (
            "A port.\n\n## Open Game License\n\nText.\n\n### More\n\nText.\n\n## Trade\n\nSalt.",
            "A port.\n\n## Trade\n\nSalt.",
        ),
        ("> [!statblock]- Orla\n> Fast as a cat\n\nA port.\n\n> [!info] Stats\n> Fast", "A port."),
        ("**Rüstungsklasse** 12\n\nEin Hafen.\n\n## Zauber\n\n- Licht", "Ein Hafen."),
        ("```ad-note\ntitle: Fog\ncollapse: open\nA port.\n```", "> Fog\n> A port."),
        ("````ad-info\n```ad-quote\nA port.\n```\n````", "> > A port."),
        ("## Map\n```leaflet\nid: x\n```\n\nA port.\n\n---\n\n***", "A port."),
        (
            "## Rumours\n| 1d4 | Rumour |\n| --- | --- |\n| 1 | It burned |",
            "## Rumours\n\n| 1d4 | Rumour |\n| --- | --- |\n| 1 | It burned |",
        ),
        ("Will: she waits.\n\nSpeed: she runs.", "Will: she waits.\n\nSpeed: she runs."),
    ],
)
def test_code_forms_and_rules_are_left_out_of_the_text(text: str, visible: str) -> None:
    read = note_text(text)
    assert (read.visible, read.hidden) == (visible, "")


@pytest.mark.parametrize(
    "hidden",
    [
        "```ad-secret\ntitle: x\nzzlead\n```",
        "```ad-note\ntitle: GM only\nzzlead\n```",
        "- item\n\n  ````ad-note\n  ```ad-secret\n  zzlead\n  ```\n  ````",
        "> [!infobox]\n> |\n> ---|---|\n> Secret | zzlead |",
        "%% <!-- QueryToSerialize: a --> zzlead %%",
        "%% <% %% %% zzlead %% %>",
        "## Actions\n\n<section class='secret'>\n\nx\n\n## Next\n\nzzlead\n\n</section>",
    ],
)
def test_panels_make_nothing_hidden_public(hidden: str) -> None:
    read = note_text(f"Before it.\n\n{hidden}\n\nAfter it.")
    assert "zzlead" not in read.visible
    assert "zzlead" in read.hidden


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("Actions", "concept"),
        ("Layers", None),
        ("Vocations", None),
        ("01 - NPCs", "npc"),
        ("2. Locations", "location"),
        ("1-Characters", "npc"),
        ("npc/villain", "npc"),
        ("Category/NPC", "npc"),
        ("Non-Player Characters", "npc"),
        ("PCs", "player"),
        ("Party", "player"),
        ("Player Handouts", None),
        ("Items of the Party", "item"),
        ("Cities", "location"),
        ("Places of Interest", "location"),
        ("AssociatedGroup", "faction"),
        ("House Rules", "concept"),
        ("Spells", "concept"),
        ("Orte", "location"),
        ("Gruppen", "faction"),
        ("Personen", "npc"),
        ("02 Schauplätze", "location"),
        ("Nicht-Spieler-Charaktere", "npc"),
        ("Talente", "concept"),
    ],
)
def test_type_is_named_by_exact_words_and_their_plurals(name: str, type_: str | None) -> None:
    assert type_named(name) == type_


@pytest.mark.parametrize(
    ("name", "text", "type_"),
    [
        ("Ilse.md", "---\ntags: ['#Character', '#Player']\n---\n", "player"),
        ("Ilse.md", "---\ntags: ['#Character', '#NPC']\n---\n", "npc"),
        ("Ilse.md", "#Character #Player", "player"),
        ("Ilse.md", "---\ntags: '#Character #Player'\n---\n", "player"),
        ("Ilse.md", "---\nplayedBy: Guest\ntags: [elf]\n---\n", "player"),
        ("Ilse.md", "---\nspieler: Gast\n---\n", "player"),
        ("Ilse.md", "---\nNoteIcon: location\n---\n", "location"),
        ("Ilse.md", "---\ntags: [session, party]\n---\n", "event"),
        ("Party/Ilse.md", "", "player"),
        ("Heldengruppe/Ilse.md", "", "player"),
        ("Items/Spells/Light.md", "", "concept"),
        ("Sword.md", "---\ntags: [compendium/src/phb, item/weapon]\n---\n", "concept"),
    ],
)
def test_party_notes_are_players_and_rules_are_no_items(tmp_path: Path, name: str, text: str, type_: str) -> None:
    ilse = only(vault(tmp_path, {name: text}))
    assert ilse.type == type_
    assert "Guest" not in str((ilse.attributes, texts(ilse, hidden=False), texts(ilse, hidden=True)))


def test_licence_in_a_vault_is_no_description(tmp_path: Path) -> None:
    world = vault(tmp_path, {"Open Game License.md": "# Open Game License\n\nTerms of the game."})
    assert only(world).texts == ()
    assert "notes about rules or a licence, without their texts (1): Open Game License.md" in world.remarks


GERMAN = """---
tags: [Charakter, NSC]
bild: marga.png
beruf: [Seilerin]
alter: 48
gruppe: "[[Hansebund]]"
erstellt: 2024-01-01
---
# marga tross

> [!infobox]
> |   |   |
> |---|---|
> | **Beruf** | `$= dv.current().beruf` |

## Aussehen
`VIEW[{aussehen}][text(renderMarkdown)]`

Marga dreht Seile am Hafen.

> [!abstract]- Werte
> **Rüstungsklasse** 12

```ad-geheim
Sie schmuggelt Salz.
```
"""


def test_german_note_has_its_prose_alone(tmp_path: Path) -> None:
    notes = {"01 - NSCs/Marga Tross.md": GERMAN, "Gruppen/Hansebund.md": "", "marga.png": b"png"}
    marga = named(vault(tmp_path, notes), "Marga Tross")
    assert (marga.type, marga.portrait, texts(marga, hidden=False)) == (
        "npc",
        "marga.png",
        "Marga dreht Seile am Hafen.",
    )
    assert "schmuggelt" in texts(marga, hidden=True)
    assert marga.attributes == {"beruf": "Seilerin", "alter": "48"}
    assert marga.links == (SourceLink("Gruppen/Hansebund.md", "MEMBER_OF"),)


def test_placeholder_is_no_portrait(tmp_path: Path) -> None:
    files = {"Ilse.md": "---\nimage: '[[PlaceholderImage.png]]'\ntoken: '![[ilse.png]]'\n---\n"}
    world = vault(tmp_path, {**files, "z_Assets/PlaceholderImage.png": b"x", "z_Assets/ilse.png": b"x"})
    assert only(world).portrait == "z_Assets/ilse.png"


def test_title_of_a_person_is_no_name_of_the_note(tmp_path: Path) -> None:
    world = vault(
        tmp_path,
        {"Trovus.md": "---\ntitle: Speaker of the Weir\n---\n", "red-door.md": "---\ntitle: The Red Door\n---\n"},
    )
    assert named(world, "Trovus").attributes == {"title": "Speaker of the Weir"}
    assert named(world, "The Red Door").attributes == {}


def test_admonitions_deep_inside_each_other_are_read_in_seconds() -> None:
    depth = 300
    opened = (f"{'`' * (3 + depth - n)}ad-note\n" for n in range(depth))
    closed = (f"{'`' * (4 + n)}\n" for n in range(depth))
    assert "zzlead" not in note_text(f"{''.join(opened)}```ad-secret\nzzlead\n```\n{''.join(closed)}").visible
