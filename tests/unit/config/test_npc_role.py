"""What an NPC is at work, by its persona and by its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.npc_role import role_in


@pytest.mark.parametrize(
    ("persona", "name", "role"),
    [
        ("You are Oskar, the blacksmith of Drumkeld. You are proud.", "Oskar", "blacksmith"),
        ("You are Mira Vance, an old harbour master, and you miss the sea.", "Mira Vance", "old harbour master"),
        ("You are Sella, a calm, careful healer who listens.", "Sella", "careful healer"),
        ("You are Dr. Lindqvist, a dry and exact doctor who sleeps too little.", "Dr. Lindqvist", "exact doctor"),
        ("You are Odo the miller.", "Odo", "miller"),
        ("You are Imre, chief engineer of Kestrel Station.", "Imre", "chief engineer"),
        ("Du bist Berta, die gute Wirtin im Goldenen Hirsch.", "Berta", "Wirtin"),
        ("Du bist Gerold, ein mürrischer, wortkarger Schmied mit gutem Herzen.", "Gerold", "Schmied"),
        ("You are Grimjaw. You are the smith.", "Grimjaw", ""),
        ("You are the mother of Odo, a smith.", "Ina", ""),
        ("", "Ina", ""),
    ],
)
def test_the_role_is_what_the_first_sentence_says_behind_the_name(persona: str, name: str, role: str) -> None:
    assert role_in(persona, name=name) == role


FILE = """
campaign: {id: harbour, name: The harbour}
entities: [{name: Odo, type: npc}, {name: Mill, type: location}]
npcs:
  - entity: Odo
    persona: You are Odo, the miller of the harbour.
    %s
scenes: [{location: Mill, npcs: [Odo]}]
"""


def test_the_file_may_say_another_role_and_that_an_npc_answers_only_who_calls(tmp_path: Path) -> None:
    path = tmp_path / "harbour.yaml"
    path.write_text(FILE % "speaks: [English]", "utf-8")
    (odo,) = read_campaign(path).campaign.npcs
    assert (odo.role, odo.address_only) == ("miller", False)
    path.write_text(FILE % "role: town guard\n    address_only: true", "utf-8")
    (odo,) = read_campaign(path).campaign.npcs
    assert (odo.role, odo.address_only) == ("town guard", True)


@pytest.mark.parametrize("key", ["role: [guard]", "address_only: perhaps", "role: ''"])
def test_a_wrong_role_is_told_with_its_line(tmp_path: Path, key: str) -> None:
    path = tmp_path / "harbour.yaml"
    path.write_text(FILE % key, "utf-8")
    with pytest.raises(InvalidFile) as raised:
        read_campaign(path)
    assert "7" in str(raised.value) and key.partition(":")[0] in str(raised.value)
