"""A block enters the text of a campaign file, and every other line stays as it was; a first file can be played."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.config.campaign_edit import (
    KINDS,
    Insertion,
    Setting,
    additions,
    insert,
    template,
    type_form,
)
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.located_yaml import read_yaml
from glyphoxa.domain.campaign import DEFAULT_SCHEMA, DEFAULT_TYPES, TYPE_TEMPLATES, Compression, NodeType
from glyphoxa.domain.errors import InvalidInput
from tests.support.proof import n_examples

TEXTS = {
    "block": "# mine\nnpcs:\n  - entity: Bart   # smith\n    persona: >-\n      You are Bart.\n\n# below\nscenes: []\n",
    "not indented": "npcs:\n- entity: Bart\n- entity: Ann\nscenes:\n",
    "in one line": "npcs: [{entity: Bart}]\nscenes: []\n",
    "empty list": "npcs: []\nscenes: [] # none\n",
    "missing": "campaign: {name: X}",
    "last, without an end of line": "scenes: []\nnpcs:\n    - entity: Bart",
    "nothing": "",
}
WORDS = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_characters="\x7f", exclude_categories=["Cs", "Cc"]),
    min_size=1,
    max_size=60,
).map(lambda text: " ".join(text.split()) or "x")


def value_of(text: str) -> object:
    return read_yaml(Path("campaign.yaml"), text).value or {}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@settings(max_examples=n_examples(100), derandomize=True, deadline=None)
@given(name=WORDS, others=st.lists(WORDS, max_size=3))
def test_added_item_is_read_back_and_nothing_else_changes(text: str, name: str, others: list[str]) -> None:
    added = {"entity": name, "aliases": others} if others else {"entity": name}
    made = insert(text, Insertion(("npcs",), added))
    before, after = value_of(text), value_of(made)
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert after == {**before, "npcs": [*(before.get("npcs") or []), added]}
    if "[" not in text:
        kept = iter(made.splitlines())
        assert all(line in kept for line in text.splitlines()), "all its lines are there, in order"


def test_a_list_inside_an_item_grows_too() -> None:
    text = "scenes:\n  - location: A\n    npcs: [Bart]\n  - location: B\n    npcs:\n      - Ann\n"
    made = insert(insert(text, Insertion(("scenes", 0, "npcs"), "O'Hara, Jr.")), Insertion(("scenes", 1, "npcs"), "no"))
    assert value_of(made) == {
        "scenes": [{"location": "A", "npcs": ["Bart", "O'Hara, Jr."]}, {"location": "B", "npcs": ["Ann", "no"]}]
    }


def test_item_without_the_list_gets_one_after_its_last_key() -> None:
    text = "scenes:\n  - location: A\n    description: >-\n      Cold\n      here.\n\n  # the inn\n  - location: B\n"
    made = insert(insert(text, Insertion(("scenes", 0, "npcs"), "Ann")), Insertion(("scenes", 1, "npcs"), "Bart"))
    assert value_of(made) == {
        "scenes": [
            {"location": "A", "description": "Cold here.", "npcs": ["Ann"]},
            {"location": "B", "npcs": ["Bart"]},
        ]
    }
    kept = iter(made.splitlines())
    assert all(line in kept for line in text.splitlines()), "all its lines are there, in order"


def test_npc_of_an_entity_of_the_file_adds_no_second_entity() -> None:
    text = template("The Road", "en", npc="Marta", player="Tamsin")
    campaign = read_campaign(Path("first.yaml"), text).campaign
    place = campaign.entity(campaign.scenes[0].location)
    form = {"add": "person", "name": "Other", "entity": place.id, "persona": "You are it."}
    assert [each.value for each in additions(form, campaign)] == [{"entity": place.name, "persona": "You are it."}]
    new = additions({**form, "entity": "npc-7", "name": "Bert"}, campaign)
    assert new[0].value == {"name": "Bert", "id": "npc-7", "type": "npc"}


@pytest.mark.parametrize(
    "text",
    ["npcs: &all [{entity: A}]\nothers: *all\n", "base: &b\n  npcs: [A]\n<<: *b\n", "npcs: none\n"],
    ids=["shared", "merged", "no list"],
)
def test_block_is_shown_if_its_position_is_unclear(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"under `npcs:`.*add this there by hand:\n  - entity: Bart"):
        insert(text, Insertion(("npcs",), {"entity": "Bart"}))


def test_nothing_is_added_to_a_text_without_sections() -> None:
    for change in (Insertion(("npcs",), {"entity": "Bart"}), Setting(("entity_types", "relic"), {})):
        with pytest.raises(InvalidInput, match="this text has no sections"):
            insert("- a\n", change)


def test_a_text_with_mistakes_grows_once_they_are_corrected() -> None:
    with pytest.raises(InvalidInput, match="2: key 'npcs' is here twice"):
        insert("npcs: []\nnpcs: []\n", Insertion(("npcs",), {"entity": "Bart"}))


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_without_its_first_field_is_refused(kind: str) -> None:
    with pytest.raises(InvalidInput, match="is empty"):
        additions({"add": kind, "name": " ", "source": "", "text": "\n", "location": ""}, None)


def test_a_scene_at_a_new_place_makes_the_place() -> None:
    made = additions({"add": "scene", "location": "The Rock", "npcs": "Bart, Ann,"}, None)
    assert [each.place for each in made] == [("entities",), ("scenes",)]
    assert made[1].value == {"location": "The Rock", "npcs": ["Bart", "Ann"]}
    assert yaml.safe_load(insert("", made[0])) == {"entities": [{"name": "The Rock", "type": "location"}]}


# Settings of a type of entity

SECTIONS = {
    "a list in one line": "campaign: {name: X}\nentity_types: [spell, relic]   # my own\nentities: []   # none\n",
    "a list": "# before\nentity_types:\n  - spell\n  - relic\n# between\nscenes: []\n",
    "a list that is not indented": "entity_types:\n- spell\n- relic\nscenes: []\n",
    "settings": "entity_types:\n    spell: {every: 5}   # rare\n    relic:\n      fields: [age]   # in years\n"
    "# end\nscenes: []\n",
    "settings in one line": "entity_types: {spell: {every: 5}, relic: {}}\nscenes: []   # none\n",
    "nothing": "",
    "nothing in it": "entity_types:\nscenes: []\n",
    "none": "scenes: []   # none\n",
    "last, without an end of line": "scenes: []\nentity_types:\n  relic:\n    instructions: >-\n      Old\n"
    "      things.",
}


@pytest.mark.parametrize("text", SECTIONS.values(), ids=SECTIONS.keys())
@pytest.mark.parametrize("name", ["deity", "relic", "yes: no", "Göttin #1"])
def test_settings_of_a_type_are_read_back_and_others_stay(text: str, name: str) -> None:
    setting = {"fields": ["domain", "on"], "every": 3, "active": False, "instructions": "Only # gods."}
    made = insert(text, Setting(("entity_types", name), setting))
    before, after = value_of(text), value_of(made)
    assert isinstance(before, dict) and isinstance(after, dict)
    types = before.get("entity_types") or {}
    others = {each: {} for each in types} if isinstance(types, list) else types
    assert after == {**before, "entity_types": {**others, name: setting}}
    assert all(
        comment in made for comment in ("# my own", "# none", "# before", "# between", "# end") if comment in text
    )
    if name != "relic":
        assert "# in years" in made or "# in years" not in text


@pytest.mark.parametrize("text", ["entity_types: none\n", "entity_types: &a [spell]\nother: *a\n"])
def test_settings_are_shown_if_their_position_is_unclear(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"add this there by hand:\n  entity_types.relic:"):
        insert(text, Setting(("entity_types", "relic"), {"every": 2}))


@pytest.mark.parametrize("name", [*DEFAULT_TYPES, *TYPE_TEMPLATES, "npc", "spell"])
def test_a_form_of_a_type_that_was_not_changed_sets_nothing(name: str) -> None:
    form = {key: str(each) if each else "" for key, each in type_form(name, DEFAULT_SCHEMA.named(name)).items()}
    assert [each.value for each in additions({**form, "add": "type"}, None)] == [{}]


def test_a_form_of_a_type_sets_what_it_says_and_the_file_reads_it() -> None:
    form = {"add": "type", "name": "event", "active": "yes", "appends": "yes", "every": "2", "fields": "summary, mood"}
    compressed = {**form, "compress": "yes", "threshold": "9", "by": "curator"}
    text = template("The Road", "en", npc="Marta", player="Tamsin")
    for wanted, limits in ((compressed, Compression(threshold=9, by="curator")), (form, None)):
        text = insert(text, *additions(wanted, None))
        found = read_campaign(Path("first.yaml"), text).campaign.node_types["event"]
        assert found == NodeType(("summary", "mood"), appends=True, every=2, compression=limits)


def test_wrong_numbers_of_a_type_are_errors_of_the_file() -> None:
    text = insert(
        template("The Road", "en", npc="Marta", player="Tamsin"),
        *additions({"add": "type", "name": "spell", "active": "yes", "every": "often"}, None),
    )
    with pytest.raises(InvalidInput, match=r"first.yaml:\d+: .*every"):
        read_campaign(Path("first.yaml"), text)


# A first campaign file


@pytest.mark.parametrize("language", ["en", "de", "de-AT", "fr"])
@pytest.mark.parametrize("name", ["Marta", 'O\'Hara: the "first" # one', "yes", "Ünal, née [X]"])
def test_a_first_campaign_holds_one_npc_with_a_secret_in_one_scene(language: str, name: str) -> None:
    text = template("The Lantern Road", language, npc=name, player="Tamsin")
    found = read_campaign(Path("first.yaml"), text)
    campaign = found.campaign
    assert (campaign.name, campaign.language) == ("The Lantern Road", language)
    assert [npc.name for npc in campaign.npcs] == [name]
    assert campaign.npcs[0].persona.split(",")[0] in (f"You are {name}".split(",")[0], f"Du bist {name}".split(",")[0])
    assert campaign.scenes[0].npcs == (campaign.npcs[0].id,)
    assert campaign.secrets[0].known_by == {campaign.npcs[0].id}
    assert all("examples" in warning for warning in found.warnings), "nothing of it is to be looked at again"
