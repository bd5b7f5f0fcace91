from __future__ import annotations

import re
from pathlib import Path

import pytest

from glyphoxa.config.campaign_file import read_campaign, slug
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.domain.campaign import Exchange, VoiceSpec

ROOT = Path(__file__).parents[2]
SALTMERE = ROOT / "tests" / "support" / "campaign.yaml"

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


def test_a_campaign_is_read_with_all_its_parts() -> None:
    """R-210, R-212, R-213"""
    campaign = read_campaign(SALTMERE).campaign
    assert (campaign.id, campaign.name, campaign.language) == ("saltmere", "The Bell of Saltmere", "en")
    grimjaw, elowen = campaign.npcs
    assert grimjaw.aliases == ("the smith", "master smith")
    assert grimjaw.examples == (Exchange("Can you mend this?", "Aye. Leave it here till dusk."),)
    assert elowen.voice == VoiceSpec("bella", "aura-2-thalia-en")
    owned = next(r for r in campaign.relationships if r.type == "OWNS")
    assert (owned.source, owned.target) == ("grimjaw", "vaelith")
    assert campaign.entity(owned.target).attributes["magical"] is True
    assert [(s.id, s.location, s.npcs) for s in campaign.scenes] == [
        ("smithy", "the-anvil", ("grimjaw",)),
        ("the-drowned-lantern", "the-drowned-lantern", ("elowen",)),
    ]
    assert campaign.secrets[0].known_by == {"grimjaw"}


def test_the_players_characters_are_entities_too() -> None:
    campaign = read_campaign(SALTMERE).campaign
    assert [p.id for p in campaign.players] == ["tamsin", "borin"]
    assert [(e.id, e.name) for e in campaign.entities if e.type == "player"] == [
        ("tamsin", "Tamsin"),
        ("borin-ashfoot", "Borin Ashfoot"),
    ]


def test_a_relationship_type_of_ones_own_is_taken_and_pointed_out() -> None:
    """R-112"""
    file = read_campaign(SALTMERE)
    assert "OWES_MONEY_TO" in {r.type for r in file.campaign.relationships}
    assert [w.removeprefix(f"{SALTMERE}:") for w in file.warnings] == [
        "47: relationship type 'OWES_MONEY_TO' is your own"
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
        ("players: [{name: A}, {name: a}]", "player 'a' stands here twice, first on line 7"),
        ("secrets: [{text: x, known_by: []}]", "known_by"),
        ("players: [{name: 12:30}]", "must be text, not 750; put it in quotes"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_the_nearest_name(tmp_path: Path, added: str, mistake: str) -> None:
    found = mistakes(tmp_path, f"{TWO}{added}\n")
    assert found[0].startswith("7: ") and mistake in found[0]


def test_unknown_entity_types_must_be_declared(tmp_path: Path) -> None:
    """R-092"""
    text = "campaign: {name: Town}\nentities:\n  - {name: Glow, type: spel}\n"
    assert "3: unknown entity type 'spel'" in mistakes(tmp_path, text)[0]
    (tmp_path / "fine.yaml").write_text(f"entity_types: [spel]\n{text}")
    assert read_campaign(tmp_path / "fine.yaml").campaign.entities[0].type == "spel"


def test_two_entities_of_one_name_are_refused(tmp_path: Path) -> None:
    text = "campaign: {name: Town}\nentities:\n  - {name: Glow, type: item}\n  - {name: glow, type: npc}\n"
    assert mistakes(tmp_path, text) == ["4: entity 'glow' stands here twice, first on line 3"]


def test_two_names_that_make_one_id_are_refused(tmp_path: Path) -> None:
    text = "campaign: {name: Town}\nentities:\n  - {name: Old Mill, type: location}\n  - {name: Old-Mill, type: item}\n"
    assert mistakes(tmp_path, text) == ["4: entity id 'old-mill' stands here twice, first on line 3"]


def test_an_npc_must_be_an_npc(tmp_path: Path) -> None:
    text = TWO.replace("entity: Grimjaw", "entity: The Forge")
    assert "6: 'The Forge' is an entity of type 'location', not 'npc'" in mistakes(tmp_path, text)[0]


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
    documented = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "campaign-file.md").read_text(), re.DOTALL)
    assert documented is not None
    (tmp_path / "c.yaml").write_text(documented[1])
    assert read_campaign(tmp_path / "c.yaml").warnings == ()
