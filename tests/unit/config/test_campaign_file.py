"""A campaign file is read with every mistake at its line; a portrait is redrawn."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from glyphoxa.config.campaign_file import MOST_BYTES, read_campaign, read_portrait, redrawn
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.domain.campaign import DEFAULT_TYPES, TYPE_TEMPLATES, Compression, Exchange, VoiceSpec
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import EntityId, slug
from glyphoxa.language.relations import RelationWords
from tests.support.live_table import write_campaign
from tests.support.pictures import AUTHOR, a_picture

ROOT = Path(__file__).parents[3]
SALTMERE = ROOT / "tests" / "support" / "campaign.yaml"

TOWN = "campaign: {name: Town}\nentities:\n"
TWO = """\
campaign: {name: Town}
entities:
  - {name: Grimjaw, type: npc}
  - {name: The Forge, type: location}
npcs:
  - {entity: Grimjaw, persona: You are Grimjaw.}
"""


def mistakes(tmp_path: Path, text: str) -> list[str]:
    """Each as `line: what`."""
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    with pytest.raises(InvalidFile) as caught:
        read_campaign(path)
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


@pytest.mark.parametrize(("language", "name"), [("en", "somebody at the table"), ("de-AT", "jemand am Tisch")])
def test_seat_of_a_shared_microphone_needs_no_name_and_is_no_entity(tmp_path: Path, language: str, name: str) -> None:
    players = [{"name": "Tamsin"}, {"table": True}, {"table": True, "name": "the sofa", "id": "sofa"}]
    campaign = read_campaign(write_campaign(tmp_path, language=language, players=players)).campaign
    assert [(p.id, p.name, p.table) for p in campaign.players[1:]] == [
        ("table", name, True),
        ("sofa", "the sofa", True),
    ]
    assert [p.name for p in campaign.known_players] == ["Tamsin"]
    assert [e.name for e in campaign.entities if e.type == "player"] == ["Tamsin"]


def test_seat_of_a_shared_microphone_cannot_be_the_game_masters(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="a seat is `dm` or `table`"):
        read_campaign(write_campaign(tmp_path, players=[{"table": True, "dm": True}]))
    with pytest.raises(InvalidFile, match="a player needs a `name`"):
        read_campaign(write_campaign(tmp_path, players=[{"dm": True}]))


def test_a_campaign_is_read_with_all_its_parts() -> None:
    campaign = read_campaign(SALTMERE).campaign
    assert (campaign.id, campaign.name, campaign.language) == ("saltmere", "The Bell of Saltmere", "en")
    grimjaw, elowen = campaign.npcs
    assert grimjaw.aliases == ("the smith", "master smith")
    assert grimjaw.examples == (Exchange("Can you mend this?", "Aye. Leave it here till dusk."),)
    assert elowen.voice == VoiceSpec("young_woman", "aura-2-thalia-en")
    owned = next(r for r in campaign.relationships if r.type == "OWNS")
    assert (owned.source, owned.target) == ("grimjaw", "vaelith")
    assert campaign.entity(owned.target).attributes["magical"] is True
    assert [(s.id, s.location, s.npcs) for s in campaign.scenes] == [
        ("smithy", "the-anvil", ("grimjaw",)),
        ("the-drowned-lantern", "the-drowned-lantern", ("elowen",)),
    ]
    assert campaign.secrets[0].known_by == {"grimjaw"}


def test_a_relationship_type_of_ones_own_is_taken_and_pointed_out() -> None:
    file = read_campaign(SALTMERE)
    assert "OWES_MONEY_TO" in {r.type for r in file.campaign.relationships}
    assert [w.removeprefix(f"{SALTMERE}:") for w in file.warnings] == [
        "60: relationship type 'OWES_MONEY_TO' is a custom type, shown as 'A owes money to B'; that is fine",
        "71: 'Elowen' has no `examples`: default ones for any time and place are used, with its name, occupation and "
        "place (show them: glyphoxa campaign prompt FILE --npc 'Elowen')",
        "91: only 'Grimjaw' knows this secret: write it to the NPC ('You ...'), without 'Grimjaw'",
    ]


@pytest.mark.parametrize(
    ("added", "mistake"),
    [
        ("secrets: [{text: x, known_by: [Grimjor]}]", "'Grimjor' is not listed under `npcs:`, did you mean 'Grimjaw'?"),
        ("scenes: [{location: Forge, npcs: []}]", "unknown entity 'Forge', did you mean 'The Forge'?"),
        ("scenes: [{location: The Forge, npcs: [], tiem_of_day: x}]", "did you mean 'time_of_day'?"),
        ("relationships: [{source: Grimjaw, type: OWNS, target: Sword}]", "unknown entity 'Sword', valid: "),
        ("relationships: [{source: Grimjaw, type: KNOWS, target: Grimjaw}]", "cannot be related to itself"),
        ("players: [{name: Grimjaw}]", "'Grimjaw' is an entity of type 'npc', not 'player'"),
        ("players: [{name: A}, {name: a}]", "player 'a' is here twice, first on line 7"),
        ("secrets: [{text: x, known_by: []}]", "known_by"),
        ("players: [{name: 12}]", "must be text, not 12; put it in quotes"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_the_nearest_name(tmp_path: Path, added: str, mistake: str) -> None:
    found = mistakes(tmp_path, f"{TWO}{added}\n")
    assert found[0].startswith("7: ") and mistake in found[0]


def test_declared_types_complete_their_default_or_template(tmp_path: Path) -> None:
    (tmp_path / "town.yaml").write_text(
        "campaign: {name: Town}\n"
        "entity_types:\n"
        "  magic_system: {every: 3, instructions: At most one in a line.}\n"
        "  location_state: {always_inject: true}\n"
        "  event: {compression: {threshold: 8, by: curator}}\n"
        "  spell:\n"
    )
    schema = read_campaign(tmp_path / "town.yaml").campaign.schema
    magic = schema.of_entity("magic_system")
    assert (magic.fields, magic.every) == (TYPE_TEMPLATES["magic_system"].fields, 3)
    assert magic.instructions == "At most one in a line."
    assert schema.of_entity("location").always_inject and schema.of_entity("location").fields[0] == "controller"
    assert schema.always_injected() == {"location"}
    assert schema.of_entity("event").compression == Compression(threshold=8, by="curator")
    assert schema.of_entity("npc") == DEFAULT_TYPES["character_sheet"]
    assert schema.entity_types[-2:] == ("magic_system", "spell")


@pytest.mark.parametrize(
    ("types", "mistake"),
    [
        ("{spell: {every: 0}}", "entity_types.spell.every must be at least 1, not 0"),
        ("{spell: {evry: 2}}", "unknown key 'evry', did you mean 'every'?"),
        ("{spell: {fields: power}}", "entity_types.spell.fields must be a list: [power]"),
        ("{event: {compression: {by: currator}}}", "did you mean 'curator'?"),
        ("{spell: {compression: {}}}", "'spell' must also have `appends: true`"),
        ("[1]", "entity types are a list of names, or names with their settings"),
        ("spell", "entity_types must be a block of names"),
    ],
)
def test_a_mistake_in_a_type_is_reported_with_its_place(tmp_path: Path, types: str, mistake: str) -> None:
    found = mistakes(tmp_path, f"campaign: {{name: Town}}\nentity_types: {types}\n")
    assert len(found) == 1 and found[0].startswith("2: ") and mistake in found[0]


def test_unknown_entity_types_must_be_declared(tmp_path: Path) -> None:
    text = "campaign: {name: Town}\nentities:\n  - {name: Glow, type: spel}\n"
    assert "3: unknown entity type 'spel'" in mistakes(tmp_path, text)[0]
    (tmp_path / "fine.yaml").write_text(f"entity_types: [spel]\n{text}")
    assert read_campaign(tmp_path / "fine.yaml").campaign.entities[0].type == "spel"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (
            f"{TOWN}  - {{name: Glow, type: item}}\n  - {{name: glow, type: npc}}\n",
            "4: entity 'glow' is here twice, first on line 3",
        ),
        (
            f"{TOWN}  - {{name: Old Mill, type: item}}\n  - {{name: Old-Mill, type: item}}\n",
            "4: entity id 'old-mill' is here twice, first on line 3",
        ),
        (
            TWO.replace("entity: Grimjaw", "entity: The Forge"),
            "6: 'The Forge' is an entity of type 'location', not 'npc'",
        ),
    ],
    ids=["one name twice", "one id of two names", "no NPC"],
)
def test_a_name_that_cannot_be_used_is_reported(tmp_path: Path, text: str, mistake: str) -> None:
    assert mistakes(tmp_path, text)[0] == mistake


def test_a_name_two_entities_answer_to_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "campaign: {name: T}\nentities:\n  - {name: Ada, type: npc, aliases: [the smith]}\n"
        "  - {name: Bo, type: npc, aliases: [The Smith]}\n"
    )
    assert "'The Smith' may mean 'Ada' or 'Bo'" in read_campaign(tmp_path / "c.yaml").warnings[0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Tower of Whispers", "tower-of-whispers"), ("D'Artagnan", "dartagnan"), ("Ægir  Örn", "ægir-orn"), ("!!", "")],
)
def test_an_id_is_made_of_a_name(name: str, expected: str) -> None:
    assert slug(name) == expected


def test_the_documented_example_is_a_valid_campaign(tmp_path: Path) -> None:
    documented = re.search(
        r"```yaml\n(campaign:\n.*?)```", (ROOT / "docs" / "writing-a-campaign.md").read_text(), re.DOTALL
    )
    assert documented is not None
    (tmp_path / "c.yaml").write_text(documented[1])
    (tmp_path / "grimjaw.png").write_bytes(a_picture("PNG"))
    assert read_campaign(tmp_path / "c.yaml").warnings == ()


# Who may know it


SCOPED = """\
campaign: {name: Town}
slots: {SWORN_TO: functional}
entities:
  - {name: Grimjaw, type: npc, known_by: [Elowen]}
  - {name: Elowen, type: npc}
  - {name: The Crypt, type: location, hidden: true, known_by: [Elowen]}
relationships:
  - {source: Elowen, type: KNOWS, target: Grimjaw, known_by: [elowen, Elowen]}
  - {source: Elowen, type: OWNS, target: The Crypt, hidden: true}
npcs:
  - {entity: Grimjaw, persona: You are Grimjaw.}
  - {entity: Elowen, persona: You are Elowen.}
secrets:
  - {text: It burns., known_by: [Elowen, Grimjaw]}
  - {text: It floods., known_by: [Grimjaw], about: The Crypt}
  - {text: It sinks., hidden: true, about: The Crypt}
"""


def test_a_file_says_who_may_know_a_thing(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(SCOPED)
    campaign = read_campaign(tmp_path / "c.yaml").campaign
    assert campaign.entity(EntityId("grimjaw")).known_by == ("grimjaw", "elowen")  # who knows himself
    assert campaign.entity(EntityId("the-crypt")).hidden
    assert [(r.known_by, r.hidden) for r in campaign.relationships] == [(("elowen",), False), ((), True)]
    assert [(s.about, s.hidden, sorted(s.known_by)) for s in campaign.secrets] == [
        ("elowen", False, ["elowen", "grimjaw"]),  # about the entity that is named first
        ("the-crypt", False, ["grimjaw"]),
        ("the-crypt", True, []),
    ]
    assert campaign.slots == {"SWORN_TO": "functional"}


@pytest.mark.parametrize(
    ("was", "wrong", "mistake"),
    [
        (
            "known_by: [Elowen]}",
            "known_by: [Elowyn]}",
            "4: 'Elowyn' is not listed under `npcs:`, did you mean 'Elowen'?",
        ),
        ("known_by: [elowen, Elowen]", "known_by: [The Crypt]", "8: 'The Crypt' is not listed under `npcs:`"),
        (
            "type: npc}",
            "type: npc, hidden: true}",
            "5: 'Elowen' is listed under `npcs:`, and an NPC cannot be hidden from",
        ),
        ("about: The Crypt", "about: The Cript", "15: unknown entity 'The Cript', did you mean 'The Crypt'?"),
        ("hidden: true, about: The Crypt", "hidden: true", "16: a secret needs `known_by:` with the NPCs that know it"),
        ("SWORN_TO: functional", "SWORN_TO: single", "2: slots.SWORN_TO: 'single' is not valid"),
        ("type: npc}", "type: npc, attributes: {secret: x}}", "5: everybody would know an attribute 'secret'"),
        ("type: npc}", f"type: npc, attributes: {{x: {'[' * 22}{']' * 22}}}}}", "5: 'x' is nested more than 20 levels"),
        ("type: npc}", "type: npc, knwon_by: [Elowen]}", "5: unknown key 'knwon_by', did you mean 'known_by'?"),
        ("type: npc}", 'type: npc, aliases: ["a\\nb"]}', "5: aliases.0 of 'Elowen': a name must be one line of text"),
    ],
)
def test_a_mistake_in_who_may_know_it_is_reported(tmp_path: Path, was: str, wrong: str, mistake: str) -> None:
    assert was in SCOPED
    found = mistakes(tmp_path, SCOPED.replace(was, wrong, 1))
    assert found[0].startswith(mistake)


def test_entity_cannot_have_two_places(tmp_path: Path) -> None:
    twice = TWO + (
        "relationships:\n  - {source: Grimjaw, type: LOCATED_AT, target: The Forge}\n"
        "  - {source: grimjaw, type: LOCATED_AT, target: The Mill}\n"
    )
    text = twice.replace("npcs:", "  - {name: The Mill, type: location}\nnpcs:")
    assert mistakes(tmp_path, text) == [
        "10: 'grimjaw' can have only one target of LOCATED_AT, and line 9 has it already "
        "(to allow several, write `slots: {LOCATED_AT: many}`)"
    ]
    (tmp_path / "fine.yaml").write_text(text + "slots: {LOCATED_AT: many}\n")
    assert len(read_campaign(tmp_path / "fine.yaml").campaign.relationships) == 2


def test_a_relation_that_holds_both_ways_is_stated_once(tmp_path: Path) -> None:
    relations = "relationships:\n  - {source: The Forge, type: ALLIED_WITH, target: Grimjaw}\n"
    again = "  - {source: Grimjaw, type: ALLIED_WITH, target: The Forge}\n"
    assert (
        "9: relationship 'Grimjaw ALLIED_WITH The Forge' is here twice"
        in mistakes(tmp_path, TWO + relations + again)[0]
    )


@pytest.mark.parametrize(
    ("content", "mistake"),
    [
        (b"", "1: the file is empty; it needs `campaign:`"),
        (b"# nothing yet\n", "1: the file is empty; it needs `campaign:`"),
        (b"\x7fELF\x02\x01\x01\x00\x00\x00", "1: character U+007F is not allowed in YAML"),
        (b"\x89PNG\r\n\x1a\n", "1: not UTF-8 text"),
        (TWO.encode("utf-16"), "1: not UTF-8 text"),
        (TWO.encode("utf-16-le"), "1: character U+0000 is not allowed in YAML; is this a text file, saved as UTF-8?"),
        (TWO.replace("Town", "Tőwn").encode("latin2"), "1: not UTF-8 text"),
        (b"campaign: {name: Town}\ncampaign: {name: City}\n", "2: key 'campaign' is here twice, first on line 1"),
        (b"campaign: {name: Town\n", "2: not YAML"),
        (b"- a\n- b\n", "1: must be keys with values (campaign, "),
        (b'{"_id": "x", "title": "The Keep", "actors": []}', "1: has no known key (only"),
    ],
)  # fmt: skip
def test_invalid_campaign_file_is_reported_in_words(tmp_path: Path, content: bytes, mistake: str) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_bytes(content)
    with pytest.raises(InvalidFile) as caught:
        read_campaign(path)
    assert mistake in str(caught.value).removeprefix(f"{path}:")


def test_a_file_of_ten_megabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_bytes(TWO.encode() + b"#" * 10_000_000)
    with pytest.raises(InvalidInput, match="larger than 4 MiB"):
        read_campaign(path)


def test_a_file_with_carriage_returns_is_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "unix.yaml").write_text(TWO)
    (tmp_path / "windows.yaml").write_bytes(b"\xef\xbb\xbf" + TWO.replace("\n", "\r\n").encode())
    assert read_campaign(tmp_path / "unix.yaml").campaign == read_campaign(tmp_path / "windows.yaml").campaign


def test_file_full_of_mistakes_reports_a_limited_number(tmp_path: Path) -> None:
    lines = "".join(f"  - {{source: Nobody {n}, type: KNOWS, target: Grimjaw}}\n" for n in range(3_000))
    found = mistakes(tmp_path, f"{TWO}relationships:\n{lines}")
    assert len(found) == 101 and found[-1].endswith("and 2900 more")


# Portraits: which are taken, and that nothing but the picture is

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_the_picture_is_kept_and_who_made_it_is_not(tmp_path: Path, kind: str) -> None:
    whole = a_picture(kind)
    assert AUTHOR.encode() in whole
    (tmp_path / "korvald.any").write_bytes(whole)
    portrait = read_portrait(tmp_path, "./korvald.any")
    assert portrait.content_type == f"image/{kind.lower()}"
    assert AUTHOR.encode() not in portrait.content
    with Image.open(BytesIO(portrait.content)) as shown, Image.open(BytesIO(whole)) as before:
        assert shown.size == (32, 24)
        assert not shown.getexif()
        pixels = zip(shown.convert("RGB").tobytes(), before.convert("RGB").tobytes(), strict=True)
        assert all(abs(now - then) <= 3 for now, then in pixels)


def test_a_picture_is_served_upright_small_and_with_its_transparency() -> None:
    turned = Image.Exif()
    turned[0x0112] = 6  # a camera that was held upright
    file = BytesIO()
    Image.new("RGBA", (1_024, 768), (180, 40, 40, 128)).save(file, "PNG", exif=turned)
    with Image.open(BytesIO(redrawn("korvald.png", file.getvalue()).content)) as shown:
        assert (shown.size, shown.mode) == ((384, 512), "RGBA")
        assert shown.getpixel((5, 5)) == (179, 39, 39, 128), "half of it shines through, as before"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (SVG, "no PNG, JPEG or WebP"),
        (a_picture("GIF"), "no PNG, JPEG or WebP"),
        (b"", "no PNG, JPEG or WebP"),
        (a_picture("PNG")[:60], "damaged"),
        (a_picture("JPEG")[:60], "damaged"),
        (a_picture("WEBP")[:30], "damaged"),
        (a_picture("PNG", 2_049, 1), "2049 x 1 pixels"),
        (a_picture("WEBP", 1, 2_049), "1 x 2049 pixels"),
        (a_picture("PNG") + bytes(MOST_BYTES), "more than 2,000 kB"),
    ],
)
def test_invalid_or_large_picture_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "korvald.png").write_bytes(content)
    with pytest.raises(InvalidInput, match=why):
        read_portrait(tmp_path, "korvald.png")


@given(st.sampled_from(["PNG", "JPEG", "WEBP"]), st.data())
def test_damage_is_refused_or_harmless_and_never_anything_else(kind: str, data: st.DataObject) -> None:
    content = bytearray(a_picture(kind))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        redrawn("korvald.png", bytes(content))
    except InvalidInput:
        return


def test_only_files_of_the_campaigns_folder_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "campaign"
    folder.mkdir()
    (tmp_path / "outside.png").write_bytes(a_picture("PNG"))
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    for name in ("../outside.png", str(tmp_path / "outside.png"), "link.png", "../not there"):
        with pytest.raises(InvalidInput, match="outside of the campaign file's folder"):
            read_portrait(folder, name)
    for name in ("nothing.png", ".", "a\0b"):
        with pytest.raises(InvalidInput, match=r"there is no file|is no name of a file"):
            read_portrait(folder, name)


def test_a_campaign_file_names_it_and_a_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    path = write_campaign(tmp_path)
    text = path.read_text("utf-8").replace("  engine: cascaded", "  portrait: ./grimjaw.png\n  engine: cascaded", 1)
    path.write_text(text, "utf-8")
    line = 1 + text[: text.index("portrait:")].count("\n")
    with pytest.raises(InvalidFile, match=rf"{line}: .*there is no file './grimjaw.png'"):
        read_campaign(path)
    (tmp_path / "grimjaw.png").write_bytes(a_picture("PNG"))
    portrait = read_campaign(path).campaign.npcs[0].portrait
    assert portrait is not None
    assert portrait.content_type == "image/png"


@pytest.mark.parametrize("sentence", ["{source} is a rival", "{0} fights {target}", "{source} {source} {target}", "{}"])
def test_a_sentence_for_a_relation_names_both_ends_once(tmp_path: Path, sentence: str) -> None:
    (tmp_path / "c.yaml").write_text(f'{SCOPED}relation_types: {{RIVAL: "{sentence}"}}\n')
    with pytest.raises(InvalidInput, match=r"\{source\} and \{target\}, each once"):
        read_campaign(tmp_path / "c.yaml")


def test_a_campaign_gives_its_own_sentences_for_relations(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(f'{SCOPED}relation_types: {{RIVAL: "{{source}} is a rival of {{target}}."}}\n')
    campaign = read_campaign(tmp_path / "c.yaml").campaign
    assert RelationWords.of(campaign).sentence("RIVAL", "Rusk", "Pilar") == "Rusk is a rival of Pilar"


@pytest.mark.parametrize(
    ("was", "wrong", "mistake"),
    [
        ("name: Town", "name: Town, id: Old Town", "campaign.id: must look like old-mill: lower-case words"),
        ("name: Town", "name: ''", "campaign.name must be text, not ''"),
        ("- name: Nora", "- Nora", "players.0 must be a block of keys (name, id, dm, table), not 'Nora'"),
        ("- name: Nora", "- name: Nora\n    dm: maybe", "dm of 'Nora' must be true or false, not 'maybe'"),
        ("entity: Ada", "entity: Ada\n    priority: 1.5", "priority of 'Ada' must be a whole number, not 1.5"),
        ("entity: Ada", "entity: Ada\n    priority: high", "priority of 'Ada' must be a whole number, not 'high'"),
        ("entity: Ada", "entity: Ada\n    priority: 11", "priority of 'Ada' must be at most 10, not 11"),
        ("entity: Ada", "entity: Ada\n    priority: -1", "priority of 'Ada' must be at least 0, not -1"),
        ("entity: Ada", "entity: Ada\n    voice: 3", "voice of 'Ada' must be a block of keys (preset, provider_voice)"),
        ("entity: Ada", "entity: Ada\n    speaks: English", "speaks of 'Ada' must be a list: [English]"),
        ("type: npc", "type: npc\n    hidden: perhaps", "hidden of 'Ada' must be true or false, not 'perhaps'"),
        ("- text: You lied.", "- You lied.", "secrets.0 must be a block of keys (text, known_by, about, hidden)"),
    ],
)
def test_value_of_a_wrong_kind_is_told_with_what_it_must_be(tmp_path: Path, was: str, wrong: str, mistake: str) -> None:
    text = (
        "campaign: {name: Town}\nentities:\n  - name: Ada\n    type: npc\nnpcs:\n  - entity: Ada\nplayers:\n"
        "  - name: Nora\nsecrets:\n  - text: You lied.\n"
    )
    assert was in text
    assert any(mistake in each for each in mistakes(tmp_path, text.replace(was, wrong, 1)))
