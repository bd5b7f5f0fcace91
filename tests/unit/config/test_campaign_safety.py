"""The lines and veils of a campaign file: what is read, what is wrong, and texts of the file that touch a line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.world.campaigns import Described, _described, document_of
from glyphoxa.config.campaign_file import CampaignFile, read_campaign
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.domain.campaign import Safety

CAMPAIGN = """\
campaign: {name: The Town}
entities:
  - {name: Mira, type: npc, attributes: {job: She keeps a spider in a jar.}}
  - {name: The Inn, type: location}
npcs:
  - {entity: Mira, persona: You are Mira., examples: [{said: Hello., reply: Good day.}]}
players: [{name: Tamsin}]
scenes: [{location: The Inn, npcs: [Mira]}]
"""


def read(folder: Path, safety: str) -> CampaignFile:
    path = folder / "town.yaml"
    path.write_text(f"{CAMPAIGN}{safety}", "utf-8")
    return read_campaign(path)


def test_lines_and_veils_are_read(tmp_path: Path) -> None:
    campaign = read(tmp_path, "safety: {lines: [clowns, harm to children], veils: [torture]}").campaign
    assert campaign.safety == Safety(("clowns", "harm to children"), ("torture",))


def test_file_without_safety_declares_nothing_and_warns_of_nothing(tmp_path: Path) -> None:
    file = read(tmp_path, "")
    assert file.campaign.safety == Safety()
    assert file.warnings == ()


@pytest.mark.parametrize(
    ("safety", "line", "told"),
    [
        ("safety: {line: [clowns]}", 9, "line"),
        ("safety: clowns", 9, "safety"),
        ("safety: {lines: clowns}", 9, "lines"),
        ("safety: {lines: ['']}", 9, "lines"),
        ("safety:\n  lines: [clowns]\n  veils: [Clowns]", 11, "topic 'Clowns' is here twice, first on line 10"),
    ],
)
def test_wrong_safety_is_reported_at_its_line(tmp_path: Path, safety: str, line: int, told: str) -> None:
    with pytest.raises(InvalidFile) as raised:
        read(tmp_path, safety)
    assert f"town.yaml:{line}:" in str(raised.value) and told in str(raised.value)


def test_text_about_a_line_is_reported_and_one_about_a_veil_is_not(tmp_path: Path) -> None:
    (warning,) = read(tmp_path, "safety: {lines: [spiders]}").warnings
    assert "town.yaml:3: 'She keeps a spider in a jar.' touches line:spiders" in warning
    assert read(tmp_path, "safety: {veils: [spiders]}").warnings == ()


def test_stored_campaign_keeps_its_safety_and_an_older_one_has_none(tmp_path: Path) -> None:
    described = Described(read(tmp_path, "safety: {lines: [clowns], veils: [torture]}").campaign, is_told=True)
    document = document_of(described)
    assert _described(document, is_told=True) == described
    del document["safety"]
    assert _described(document, is_told=True).file == replace(described.file, safety=Safety())
