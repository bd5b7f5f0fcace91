"""Markdown notes become documents; what a mark hides stays hidden."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.dm.entities import NameResolver
from glyphoxa.dm.handouts import VaultContent, notes_of
from glyphoxa.dm.source_world import SourceDocument, SourceLink, SourceWorld
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.plugins.imports.markdown_text import note_text
from glyphoxa.plugins.imports.readers import read_source
from tests.support.secret_campaigns import SecretCampaign, words_in
from tests.support.source_worlds import named, texts

SECRET = "zzquicksilver"  # in no other word of the notes


def vault(folder: Path, notes: Mapping[str, str | bytes]) -> SourceWorld:
    for name, content in notes.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_source("markdown", folder)


def only(world: SourceWorld) -> SourceDocument:
    (document,) = world.documents
    return document


def test_note_has_the_name_of_its_file_and_all_its_front_matter(tmp_path: Path) -> None:
    note = (
        "---\ntype: NPC\naliases: [The Smith, Grim]\nrace: Dwarf\nage: 90\nlanguages:\n  - Common\n  - Dwarvish\n---\n"
        "He **forges**.\n"
    )
    document = only(vault(tmp_path / "My vault", {"People/Grimjaw.md": note}))
    assert (document.key, document.name, document.type) == ("People/Grimjaw.md", "Grimjaw", "npc")
    assert (document.aliases, document.folders) == (("The Smith", "Grim"), ("People",))
    assert document.attributes == {"race": "Dwarf", "age": "90", "languages": "Common, Dwarvish"}
    assert not document.hidden
    assert texts(document, hidden=False) == "He **forges**."


@pytest.mark.parametrize(
    ("name", "text", "type_"),
    [
        ("Ironhold.md", "---\ntype: Locations\n---\n", "location"),
        ("Ironhold.md", "---\ntags: [location/city, ruined]\n---\n", "location"),
        ("Places/Ironhold.md", "", "location"),
        ("Ironhold.md", "A #location of dwarves.", "location"),
        ("Player Characters/Lyra.md", "", "player"),
        ("Places/Rusk.md", "---\ntype: npc\n---\n", "npc"),
        ("Moradin.md", "---\ntype: Deity\n---\n", "deity"),
        ("Lore/The war.md", "", "concept"),
        ("Hadwin.md", "---\ntype: NSC\n---\n", "npc"),
    ],
)
def test_type_is_what_the_note_or_else_its_folder_says(tmp_path: Path, name: str, text: str, type_: str) -> None:
    assert only(vault(tmp_path, {name: text})).type == type_


def test_links_between_notes_are_relations_of_the_type_of_their_key(tmp_path: Path) -> None:
    world = vault(
        tmp_path,
        {
            "NPCs/Rusk.md": (
                "---\nlocation: '[[Ironhold]]'\nguild: '[[Miners]]'\nfather: [[Odo]]\nsworn_enemy: '[[Pilar]]'\n---\n"
                "ally:: [[Bela|his friend]]\n\nHe met [[Bela]], [Odo](Odo.md) and [[Iron hold#Gate|the gate]].\n\n"
                "He fears [[Cora]].\n"
            ),
            "NPCs/Odo.md": "",
            "NPCs/Pilar.md": "",
            "NPCs/Bela.md": "",
            "NPCs/Cora.md": "",
            "Places/Ironhold.md": "---\naliases: Iron hold\n---\n",
            "Factions/Miners.md": "",
        },
    )
    assert set(named(world, "Rusk").links) == {
        SourceLink("Places/Ironhold.md", "LOCATED_AT"),
        SourceLink("Factions/Miners.md", "MEMBER_OF"),
        SourceLink("NPCs/Odo.md", "HAS_FATHER"),
        SourceLink("NPCs/Pilar.md", "SWORN_ENEMY"),
        SourceLink("NPCs/Bela.md", "ALLIED_WITH"),
        SourceLink("NPCs/Cora.md", "LINKED_TO"),
    }
    assert texts(named(world, "Rusk"), hidden=False).splitlines()[-1] == "He fears Cora."


@pytest.mark.parametrize(
    ("key", "relation"),
    [
        ("OWNS", "OWNS"),
        ("LOCATED_AT", "LOCATED_AT"),
        ("place", "LOCATED_AT"),
        ("city", "LOCATED_AT"),
        ("parent", "HAS_PARENT"),
        ("friends", "HAS_FRIEND"),
        ("serves", "SERVES"),
        ("related notes", "LINKED_TO"),
        ("owes a favour to", "OWES_A_FAVOUR_TO"),
        ("this is a whole sentence", "LINKED_TO"),
    ],
)
def test_key_of_a_link_names_the_relation(tmp_path: Path, key: str, relation: str) -> None:
    world = vault(tmp_path, {"NPCs/Rusk.md": f"---\n{key}: '[[Odo]]'\n---\n", "NPCs/Odo.md": ""})
    assert named(world, "Rusk").links == (SourceLink("NPCs/Odo.md", relation),)


def test_places_in_a_folder_of_a_place_lie_in_it(tmp_path: Path) -> None:
    world = vault(
        tmp_path,
        {
            "Places/Ironhold/Ironhold.md": "---\nparent: '[[North]]'\n---\n",
            "Places/Ironhold/Docks/Inn.md": "",
            "Places/North.md": "",
        },
    )
    assert named(world, "Inn").links == (SourceLink("Places/Ironhold/Ironhold.md", "LOCATED_AT"),)
    assert named(world, "Ironhold").links == (SourceLink("Places/North.md", "LOCATED_AT"),)


def test_thing_that_names_several_places_is_in_the_first_one(tmp_path: Path) -> None:
    world = vault(
        tmp_path,
        {"Rusk.md": "---\nlocation: ['[[A]]', '[[B]]']\n---\n", "Places/A.md": "", "Places/B.md": ""},
    )
    links = (SourceLink("Places/A.md", "LOCATED_AT"), SourceLink("Places/B.md", "LINKED_TO"))
    assert named(world, "Rusk").links == links


def test_link_means_the_note_beside_it_before_one_further_away(tmp_path: Path) -> None:
    notes = {"A/Rusk.md": "See [[Inn]] and [there](../B/Inn.md).", "A/Inn.md": "", "B/Inn.md": "", "Inn.md": ""}
    world = vault(tmp_path, notes)
    assert [link.target for link in named(world, "Rusk").links] == ["A/Inn.md", "B/Inn.md"]
    assert {each.name for each in world.documents} == {"Rusk", "Inn (A)", "Inn (B)", "Inn"}


def test_note_in_a_folder_for_the_dm_is_hidden(tmp_path: Path) -> None:
    world = vault(tmp_path, {"DM notes/Plot.md": "x", "Admins/Dmitri.md": "See [[Plot]]."})
    assert named(world, "Plot").hidden
    assert not named(world, "Dmitri").hidden
    assert named(world, "Dmitri").links == (SourceLink("DM notes/Plot.md", "LINKED_TO", hidden=True),)


def test_vault_with_a_name_for_the_dm_is_hidden_and_says_so(tmp_path: Path) -> None:
    world = vault(tmp_path / "DM notes", {"Rusk.md": "x"})
    assert only(world).hidden
    assert world.remarks[0] == "'DM notes' is a name for what only the DM reads: all its notes are hidden"


def test_paragraph_that_links_to_a_hidden_note_is_hidden(tmp_path: Path) -> None:
    text = "He is [[Odo|kind]].\n\n- Serves [[Mog]].\n- Sings.\n\n| a | [[Mog]] |\n| - | - |\n| x | y |\n"
    front = "---\nmaster: '[[Mog]]'\nlord: Mog\n---\n"
    world = vault(tmp_path, {"Rusk.md": front + text, "Odo.md": "", "Mog.md": "---\nhidden: true\n---\n"})
    rusk = named(world, "Rusk")
    assert "Mog" not in f"{texts(rusk, hidden=False)} {rusk.attributes}"
    assert texts(rusk, hidden=True).split() == ["Serves", "Mog.", "Mog"]
    assert {(link.target, link.hidden) for link in rusk.links} == {("Odo.md", False), ("Mog.md", True)}
    assert all(word in texts(rusk, hidden=False) for word in ("He is kind.", "Sings.", "x"))


def test_value_for_the_dm_is_a_hidden_text_and_no_attribute(tmp_path: Path) -> None:
    front = f"---\nrace: Elf\ngm_notes: Serves [[Mog]], the {SECRET}\nsecrets:\n  plan: {SECRET} again\n---\n"
    world = vault(tmp_path, {"Rusk.md": front, "Mog.md": ""})
    rusk = named(world, "Rusk")
    assert rusk.attributes == {"race": "Elf"}
    assert texts(rusk, hidden=True) == f"gm_notes: Serves Mog, the {SECRET}\n\nplan: {SECRET} again"
    assert rusk.links == (SourceLink("Mog.md", "LINKED_TO", hidden=True),)


@pytest.mark.parametrize(
    "hidden",
    [
        "> [!secret] Title\n> {}",
        "> [!GM-only]-\n> {}\n> > [!info]\n> > {} again",
        "> [!info] open\n>\n> > [!dm]\n> > {}",
        "- item\n\n  > [!secret]\n  > {}",
        "%% {} %%",
        "%%\n{}\n\n# x\n\n- {}\n%%",
        "<!-- {} -->",
        "```secret\n{} **x**\n```",
        ":::secret\n{}\n\n:::note\n{}\n:::\n{}\n:::",
        "::: {{.secret}}\n{}\n:::",
        '<section class="secret"><p>{}</p></section>',
        "> [!secret]\n> </blockquote></section> {}",
        "## GM notes\n\n{}\n\n### More\n\n{}\n\n## Public",
        "| a | b |\n| - | - |\n| %% {} %% | x |",
        "> ## GM notes\n>\n> {}\n>\n> ### More\n>\n> {}",
        "**GM notes:** {}",
        "secret:: {}",
        "| a | b |\n| - | - |\n| Secret | {} |\n| x | y |",
        "> [!geheim]\n> {}",
        "```\n> [!secret]\n> {}\n```",
        "<div>\n> [!secret]\n> {}\n</div>",
    ],
)
def test_hidden_part_of_a_note_never_becomes_public(hidden: str) -> None:
    read = note_text(f"Before it.\n\n{hidden.replace('{}', SECRET).replace('{{', '{').replace('}}', '}')}\n\nAfter it.")
    assert SECRET not in read.visible
    assert SECRET in read.hidden
    assert "Before it." in read.visible
    assert "After it." in read.visible


@pytest.mark.parametrize("unclosed", ["%% {}", "<!-- {}", ":::secret\n{}"])
def test_hidden_part_that_is_never_closed_reaches_to_the_end(unclosed: str) -> None:
    read = note_text(f"Before it. {unclosed.format(SECRET)}" if ":" not in unclosed else unclosed.format(SECRET))
    assert SECRET not in read.visible
    assert SECRET in read.hidden


OPEN = ["Some *prose* with `code`.", "- a\n- b", "> quote", "> [!info] Hint\n> open", "| a | b |\n| - | - |\n| 1 | 2 |"]
HIDDEN = ["> [!secret]\n> {}", "%% {} %%", "<!-- {} -->", "```gm\n{}\n```", ":::dm\n{}\n:::", "> > [!gm] x\n> > {}"]
AS_PROSE = st.text("ab[]!#>*_`<&-|\n ", max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OPEN), st.sampled_from(HIDDEN), AS_PROSE), min_size=1, max_size=4))
def test_no_order_of_parts_makes_a_hidden_one_public(parts: list[tuple[str, str, str]]) -> None:
    text = "\n\n".join(f"{shown}\n\n{hidden.format(f'{SECRET} [[Mog]]')}\n\n{prose}" for shown, hidden, prose in parts)
    read = note_text(text)
    assert SECRET not in read.visible
    assert all(link.hidden for link in read.links if link.target == "Mog")


def test_templates_settings_and_attachments_are_not_read(tmp_path: Path) -> None:
    world = vault(
        tmp_path,
        {
            ".obsidian/templates.json": '{"folder": "Meta/Templates"}',
            ".obsidian/plugins/x/README.md": "x",
            ".trash/Old.md": "x",
            "Meta/Templates/NPC.md": "---\ntype: npc\n---\n",
            "Map.excalidraw.md": "x",
            "map.png": b"png",
            "Rusk.md": "![[map.png]]",
        },
    )
    assert [each.name for each in world.documents] == ["Rusk"]
    assert named(world, "Rusk").portrait == "map.png"


def test_title_that_repeats_the_name_is_no_part_of_the_text(tmp_path: Path) -> None:
    assert (
        texts(only(vault(tmp_path, {"Rusk.md": "---\nrace: Elf\n---\n\n# Rusk\n\nA king."})), hidden=False) == "A king."
    )


def test_note_of_notion_has_its_title_without_the_id(tmp_path: Path) -> None:
    one, two = "0123456789abcdef" * 2, "fedcba9876543210" * 2
    world = vault(tmp_path, {f"Rusk {one}.md": f"In [Ironhold](Ironhold%20{two}.md).", f"Ironhold {two}.md": ""})
    assert named(world, "Rusk").links == (SourceLink(f"Ironhold {two}.md", "LINKED_TO"),)


def test_zip_of_a_vault_is_the_vault_that_is_in_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "download.zip", "w") as archive:
        archive.writestr("Eldermoor/NPCs/Rusk.md", "![x](../pics/a%20b.png)")
        archive.writestr("Eldermoor/pics/a b.png", b"png")
    world = read_source("markdown", tmp_path / "download.zip")
    assert (world.id, only(world).key) == ("Eldermoor", "NPCs/Rusk.md")
    assert (only(world).file, only(world).portrait) == ("Eldermoor/NPCs/Rusk.md", "Eldermoor/pics/a b.png")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_note_in_any_usual_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    text = "Die Größe der Höhle"
    assert texts(only(vault(tmp_path, {"Ort.md": text.encode(encoding)})), hidden=False) == text


def test_text_in_cyrillic_and_japanese_encodings_is_read(tmp_path: Path) -> None:
    for text, encoding in (
        ("Старый маг живёт в деревне на реке.", "cp1251"),
        ("魔法使いが住んでいます。静かな村です。", "cp932"),
    ):
        assert texts(only(vault(tmp_path / encoding, {"a.md": text.encode(encoding)})), hidden=False) == text


def test_folder_without_notes_says_what_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(InvalidInput, match="no Markdown notes in it; name a vault"):
        read_source("markdown", tmp_path)


def test_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'a\.md' is no text file"):
        vault(tmp_path, {"a.md": b"abc\0\0\0\1def"})


def test_invalid_front_matter_is_reported_with_its_line(tmp_path: Path) -> None:
    world = vault(tmp_path, {"Rusk.md": "---\nrace: Elf\nage: [\n---\nx"})
    assert only(world).hidden
    assert any(each.startswith("Rusk.md:") and "the note is hidden" in each for each in world.remarks)


def test_long_value_becomes_a_text_and_loses_nothing(tmp_path: Path) -> None:
    story = "word " * 100
    document = only(vault(tmp_path, {"Rusk.md": f"---\nstory: {story}\n---\nx"}))
    assert document.attributes == {}
    assert story.strip() in texts(document, hidden=False)


@pytest.mark.parametrize("seed", range(6))
def test_vault_that_a_campaign_was_written_to_comes_back_with_its_secrets(tmp_path: Path, seed: int) -> None:
    town = SecretCampaign.of(seed)
    names = NameResolver.of(town.campaign, (entity for entity, _ in town.graph.scoped))
    told_of = town.graph.scoped, town.graph.of_world
    notes = notes_of(VaultContent(town.campaign.name, town.campaign.language, names, *told_of, (), False))
    found = {each.name: each for each in vault(tmp_path, notes).documents}
    for entity, scope in town.graph.scoped:
        document = found[entity.name]
        assert (document.type, document.aliases) == (entity.type, entity.aliases)
        assert document.hidden is (scope.scope != "public")
    hidden = {word for entity, scope in town.graph.scoped if scope.scope != "public" for word in words_in(entity.name)}
    told = " ".join(texts(each, hidden=False) for each in found.values() if not each.hidden)
    assert not words_in(told) & hidden


def test_callout_with_a_title_for_the_dm_is_hidden(tmp_path: Path) -> None:
    text = "Seen.\n\n> [!note] GM only\n> He lies.\n\n> [!note]\n> GM screens are seen.\n\n> [!note]- Rumours\n> Heard."
    [document] = vault(tmp_path, {"Bob.md": text}).documents
    hidden = " ".join(each.text for each in document.texts if each.hidden)
    visible = " ".join(each.text for each in document.texts if not each.hidden)
    assert "He lies." in hidden and "He lies." not in visible
    assert all(each in visible for each in ("Seen.", "GM screens are seen.", "Heard."))


@pytest.mark.parametrize("value", ["[Vey, Ann]", "Vey", "'[Ann](Ann.md) and [him](Vey.md)'"])
def test_value_that_names_a_hidden_note_is_a_hidden_relation(tmp_path: Path, value: str) -> None:
    notes = {
        "Bob.md": f"---\nfriends: {value}\n---\nA smith.",
        "Vey.md": "---\nhidden: true\n---\nEvil.",
        "Ann.md": "A",
    }
    [bob] = [each for each in vault(tmp_path, notes).documents if each.name == "Bob"]
    visible = [each.text for each in bob.texts if not each.hidden]
    assert "Vey" not in str((bob.attributes, visible)) and "him" not in str(visible)
    assert [each.hidden for each in bob.links if each.target == "Vey.md"] == [True]


def test_field_whose_value_is_a_mark_hides_the_note() -> None:
    assert note_text("The guild has a banner.\n\nstatus:: hidden").mark == "field 'status: hidden'"
