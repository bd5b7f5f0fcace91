"""A block enters the text of a campaign file, and every other line stays as it was; a first file can be played."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.config.campaign_edit import KINDS, Beginning, Insertion, additions, insert, template
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.located_yaml import read_yaml
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
    text = template(Beginning("The Road", "en", "Marta", "Tamsin"))
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


# A first campaign file


@pytest.mark.parametrize("language", ["en", "de", "de-AT", "fr"])
@pytest.mark.parametrize("name", ["Marta", 'O\'Hara: the "first" # one', "yes", "Ünal, née [X]"])
def test_a_first_campaign_holds_one_npc_with_a_secret_in_one_scene(language: str, name: str) -> None:
    text = template(Beginning("The Lantern Road", language, name, "Tamsin"))
    found = read_campaign(Path("first.yaml"), text)
    campaign = found.campaign
    assert (campaign.name, campaign.language) == ("The Lantern Road", language)
    assert [npc.name for npc in campaign.npcs] == [name]
    assert campaign.npcs[0].persona.split(",")[0] in (f"You are {name}".split(",")[0], f"Du bist {name}".split(",")[0])
    assert campaign.scenes[0].npcs == (campaign.npcs[0].id,)
    assert campaign.secrets[0].known_by == {campaign.npcs[0].id}
    assert all("examples" in warning for warning in found.warnings), "nothing of it is to be looked at again"
