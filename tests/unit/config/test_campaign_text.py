"""Campaign files as people write and copy them."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.config.campaign_file import CampaignFile, read_campaign
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.settings import read_settings

FILE = """\
campaign: {name: Vale}
entities:
  - name: Holm
    type: npc
  - name: Old Mill
    type: location
npcs:
  - entity: Holm
    persona: You are Holm, a smith.
players:
  - {id: tamsin, name: Tamsin}
scenes:
  - location: Old Mill
    npcs: [Holm]
"""
PERSONA = "You are Holm, a smith."


def read(text: str) -> CampaignFile:
    return read_campaign(Path("vale.yaml"), text)


def remarks(found: CampaignFile) -> list[str]:
    return [each.removeprefix("vale.yaml:") for each in found.warnings if "examples" not in each]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{{char}} mends nets for {{user}}.", "Holm mends nets for the player."),
        ("<p>You are Holm.</p><p>A smith.</p>", "You are Holm. A smith."),
        ("Salt &amp; iron&nbsp;nails", "Salt & iron\u00a0nails"),
        ("You know @UUID[Actor.k2]{Old Rusk}.", "You know Old Rusk."),
        ("You live at [[Old Mill]], by [[Old Mill#yard|the yard]].", "You live at Old Mill, by the yard."),
        ("You are <b>Holm</b>, {{ Char }}.", "You are Holm, Holm."),
    ],
)
def test_known_markup_is_converted_with_a_warning(written: str, meant: str) -> None:
    found = read(FILE.replace(PERSONA, f'"{written}"'))
    assert found.campaign.npcs[0].persona == meant
    assert any(each.startswith("9: markup is read as plain text") for each in remarks(found))


@pytest.mark.parametrize("odd", ["{{random:a,b}}", "<npc-card>", "{% if x %}", "[/b]"])
def test_unknown_markup_is_kept_with_a_warning(odd: str) -> None:
    found = read(FILE.replace(PERSONA, f'"{PERSONA} {odd}"'))
    assert odd in found.campaign.npcs[0].persona
    assert any(each.startswith(f"9: {odd!r} looks like markup") for each in remarks(found))


def test_link_without_quotes_is_text() -> None:
    found = read(FILE.replace("    type: location", "    type: location\n    attributes: {near: [[The Ford]]}"))
    assert found.campaign.entities[1].attributes == {"near": "The Ford"}
    assert remarks(found) == ["7: the link [[The Ford]] is read as text: put it in quotes"]


@pytest.mark.parametrize(
    ("persona", "mistake"),
    [
        ("{{char}} is a smith", "9: a key must be a word; put text that begins with `{{` in quotes"),
        ("@UUID[Actor.k2]{Rusk}", "9: not YAML: a text begins with `@`; put the text in quotes"),
        ("“You are Holm: a smith.”", "9: not YAML: U+201C (left double quotation mark) is not part of YAML"),
    ],
)
def test_value_that_yaml_takes_for_something_else(persona: str, mistake: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        read(FILE.replace(PERSONA, persona))
    assert mistake in str(refused.value)


def test_plain_file_has_no_remarks() -> None:
    told = f"{PERSONA} You say “No” – it’s 5 < 7 & {{three}} [sic] to all."
    found = read(FILE.replace(PERSONA, f'"{told}"'))
    assert remarks(found) == [] and found.campaign.npcs[0].persona == told


@pytest.mark.parametrize(
    ("name", "elsewhere"), [("E\u0301orl", "\u00c9orl"), ("\u00c9orl", "E\u0301orl"), ("Jo\u0308rg", "J\u00f6rg")]
)
def test_names_are_compared_in_nfc(name: str, elsewhere: str) -> None:
    campaign = read(FILE.replace("name: Holm", f"name: {name}").replace("Holm", elsewhere)).campaign
    assert campaign.npcs[0].name == campaign.entities[0].name == min(name, elsewhere, key=len)


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u3000"])
@pytest.mark.parametrize(
    ("line", "odd", "with_odd"),
    [
        (3, "- name: Holm", "- name:{}Holm"),
        (3, "- name: Holm", "-{}name: Holm"),
        (4, "    type: npc", "    type:{}npc"),
        (4, "    type: npc", "    type{}: npc"),
        (4, "    type: npc", "{0}{0}{0}{0}type: npc"),
    ],
)
def test_odd_space_around_a_key_is_named(line: int, odd: str, with_odd: str, space: str) -> None:
    found = read(FILE.replace(odd, with_odd.format(space), 1))
    assert found.campaign == read(FILE).campaign
    assert [each[:9] for each in remarks(found)] == [f"{line}: U+{ord(space):04X}"]


@pytest.mark.parametrize(
    ("line", "odd", "with_odd", "character"),
    [
        (3, "name: Holm", "name: \u200bHolm", "U+200B (zero width space)"),
        (3, "name: Holm", "name: Holm\u200b", "U+200B (zero width space)"),
        (3, "name: Holm", "name:\u200bHolm", "U+200B (zero width space)"),
        (3, "name: Holm", "name: Holm\u00a0", "U+00A0 (no-break space)"),
        (4, "type: npc", "\u200btype: npc", "U+200B (zero width space)"),
        (4, "type: npc", "type\u2060: npc", "U+2060 (word joiner)"),
        (9, "a smith", "a sm\u00adith", "U+00AD (soft hyphen)"),
        (9, "a smith", "a smith\u200e", "U+200E (left-to-right mark)"),
    ],
)
def test_invisible_character_is_named_and_ignored(line: int, odd: str, with_odd: str, character: str) -> None:
    found = read(FILE.replace(odd, with_odd, 1))
    assert found.campaign == read(FILE).campaign
    assert [each for each in remarks(found) if each.startswith(f"{line}: ") and character in each]


@pytest.mark.parametrize(
    ("odd", "with_odd", "mistake"),
    [
        ("    type: npc", "\u200b    type: npc", "4: not YAML: U+200B (zero width space)"),
        ("name: Holm", "name: \ufeffHolm", "3: U+FEFF (byte order mark, invisible) is not allowed"),
        ("    type: npc", "    “type”: npc", "4: unknown key '“type”', did you mean 'type'? (U+201C (left"),
        ("name: Holm", "name: “Holm”", "3: U+201C (left double quotation mark) and U+201D (right"),
        ("name: Holm", "name: „Holm“", "3: U+201E (double low-9 quotation mark) and U+201C (left"),
    ],
)
def test_character_that_breaks_a_file_is_named_with_its_line(odd: str, with_odd: str, mistake: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        read(FILE.replace(odd, with_odd, 1))
    assert f"vale.yaml:{mistake}" in str(refused.value)


@pytest.mark.parametrize("name", ["“Holm”", "‘Holm’", "«Holm»", "'\"Holm\"'"])
def test_quotes_that_became_part_of_a_name_are_warned_about(name: str) -> None:
    text = FILE
    for place in ("name: {}", "entity: {}", "[{}]"):
        text = text.replace(place.format("Holm"), place.format(name))
    found = read(text)
    assert [each[:2] for each in remarks(found) if "part of the name" in each] == ["3:", "8:", "14"]


@pytest.mark.parametrize(("written", "known"), [("NPC", "npc"), ("Npc", "npc")])
def test_entity_type_is_read_in_any_case(written: str, known: str) -> None:
    found = read(FILE.replace("type: npc", f"type: {written}").replace("type: location", "type: Location"))
    assert [entity.type for entity in found.campaign.entities][:2] == [known, "location"]


def test_units_of_a_campaign() -> None:
    found = read(FILE.replace("{name: Vale}", "{name: Vale, units: {kr: [one crown, crowns]}}"))
    assert found.campaign.units == {"kr": ("one crown", "crowns")}


@pytest.mark.parametrize(
    "dsn",
    [
        "' postgresql://db.example/vale '",
        "\"'postgresql://db.example/vale'\"",
        "psql postgresql://db.example/vale",
        "export DATABASE_URL=postgresql://db.example/vale",
        "“postgresql://db.example/vale”",
    ],
)
def test_dsn_of_the_settings_is_read_as_it_is_pasted(tmp_path: Path, dsn: str) -> None:
    file = tmp_path / "glyphoxa.yaml"
    file.write_text(f"memory:\n  postgres_dsn: {dsn}\n", encoding="utf-8")
    assert read_settings(file).memory.postgres_dsn == "postgresql://db.example/vale"


def test_none_with_blanks_turns_memory_off(tmp_path: Path) -> None:
    file = tmp_path / "glyphoxa.yaml"
    file.write_text("memory:\n  postgres_dsn: ' none '\n", encoding="utf-8")
    assert not read_settings(file).has_memory
