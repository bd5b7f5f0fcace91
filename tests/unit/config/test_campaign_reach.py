"""Who knows what is public at a place: the cases of the rule, and what a campaign file makes of it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.context.by_name import ByName
from glyphoxa.domain.campaign import Npc, Relationship
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.paths import reached_from
from tests.support.proof import n_examples

MIRA, GRIM = Npc(NpcId("mira"), EntityId("mira"), "Mira", ""), Npc(NpcId("grim"), EntityId("grim"), "Grim", "")


def edges(*lines: str) -> list[Relationship]:
    """Each "source TYPE target", and perhaps who knows it."""
    made = []
    for line in lines:
        source, kind, target, *known_by = line.split()
        ends = EntityId(source), EntityId(target)
        made.append(Relationship(*ends, kind, known_by=tuple(NpcId(npc) for npc in known_by)))
    return made


@pytest.mark.parametrize(
    ("ties", "reaches"),
    [
        ((), False),
        (("mira LOCATED_AT town",), True),
        (("mira LOCATED_AT inn", "inn LOCATED_AT quay", "quay LOCATED_AT town"), True),
        (("town LOCATED_AT land", "mira LOCATED_AT land"), False),
        (("town LOCATED_AT land", "other LOCATED_AT land", "mira LOCATED_AT other"), False),
        (("mira KNOWS tom", "tom LOCATED_AT inn", "inn LOCATED_AT town"), True),
        (("tom KNOWS mira", "tom LOCATED_AT town"), True),
        (("mira KNOWS tom", "tom KNOWS tim", "tim LOCATED_AT town"), False),
        (("mira MEMBER_OF guild", "guild LOCATED_AT town"), True),
        (("guild MEMBER_OF mira", "guild LOCATED_AT town"), False),
        (("mira MEMBER_OF town",), True),
        (("guild ALLIED_WITH mira", "guild LOCATED_AT town"), True),
        (("mira HOSTILE_TO tom", "tom LOCATED_AT town"), False),
        (("mira LOCATED_AT inn grim", "inn LOCATED_AT town"), False),
        (("mira LOCATED_AT inn mira", "inn LOCATED_AT town"), True),
        (("mira LOCATED_AT inn", "inn LOCATED_AT mill", "mill LOCATED_AT inn"), False),
    ],
)
def test_whom_a_place_reaches(ties: tuple[str, ...], reaches: bool) -> None:
    assert (reached_from({EntityId("town")}, [MIRA], edges(*ties)) == [MIRA.id]) is reaches


def test_a_path_leads_over_nothing_that_is_hidden_or_waits_for_the_dm() -> None:
    ends = EntityId("mira"), EntityId("town"), "LOCATED_AT"
    for tie in (Relationship(*ends, hidden=True), Relationship(*ends, confidence=0.5, dm_confirmed=False)):
        assert reached_from({EntityId("town")}, [MIRA], [tie]) == []


def test_more_ties_take_nobody_away() -> None:
    random, named = Random(7), ["mira", "grim", "tom", "inn", "quay", "town", "land"]
    for _ in range(n_examples(500)):
        kinds = ("LOCATED_AT", "KNOWS", "MEMBER_OF", "ALLIED_WITH", "OWNS")
        ties = [" ".join((random.choice(named), random.choice(kinds), random.choice(named))) for _ in range(9)]
        places = {EntityId("town")}
        few, many = (reached_from(places, [MIRA, GRIM], edges(*some)) for some in (ties[:5], ties))
        assert set(few) <= set(many)
        assert reached_from({EntityId("nowhere")}, [MIRA, GRIM], edges(*ties)) == []


TWO_TOWNS = """\
campaign: {name: Two towns}
entities:
  - {name: Mira, type: npc}
  - {name: Grim, type: npc}
  - {name: Tamsin, type: player}
  - {name: Saltmere, type: location}
  - {name: Drumkeld, type: location}
  - {name: The Tithe, type: event, known_in: [Saltmere], attributes: {description: The Tithe was doubled.}}
relationships:
  - {source: Mira, type: LOCATED_AT, target: Saltmere}
  - {source: Grim, type: LOCATED_AT, target: Drumkeld}
npcs:
  - {entity: Mira, persona: You are Mira.}
  - {entity: Grim, persona: You are Grim.}
players: [{name: Tamsin}]
scenes: [{location: Saltmere, npcs: [Mira, Grim]}]
"""


def read(tmp_path: Path, text: str) -> dict[str, tuple[str, ...]]:
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    return {entity.name: entity.known_by for entity in read_campaign(path).campaign.entities}


def test_what_is_public_in_one_town_is_not_known_in_the_other(tmp_path: Path) -> None:
    known_by = read(tmp_path, TWO_TOWNS)
    assert known_by["The Tithe"] == ("mira",)
    assert {known_by[name] for name in ("Mira", "Grim", "Saltmere", "Drumkeld", "Tamsin")} == {()}
    by_name = ByName(read_campaign(tmp_path / "campaign.yaml").campaign, None)
    asked = "What do you know of The Tithe?"
    assert [one.text for one in by_name.facts(NpcId("mira"), asked)] == ["The Tithe was doubled."]
    assert by_name.facts(NpcId("grim"), asked) == []


def test_a_campaign_says_what_everybody_means_and_an_entity_says_otherwise(tmp_path: Path) -> None:
    text = TWO_TOWNS.replace("{name: Two towns}", "{name: Two towns, known_in: [Saltmere]}")
    text = text.replace("{name: Drumkeld, type: location}", "{name: Drumkeld, type: location, known_in: []}")
    text = text.replace("known_in: [Saltmere], attr", "known_by: [Grim], attr")
    assert read(tmp_path, text) == {
        "Mira": ("mira",),
        "Grim": (),
        "Tamsin": (),
        "Saltmere": ("mira",),
        "Drumkeld": (),
        "The Tithe": ("grim",),
    }


def test_known_by_adds_to_known_in(tmp_path: Path) -> None:
    text = TWO_TOWNS.replace("known_in: [Saltmere], attr", "known_in: [Saltmere], known_by: [Grim], attr")
    assert read(tmp_path, text)["The Tithe"] == ()  # all there are


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ("known_in: [Saltmere]", "known_in: [Saltmare]", "8: unknown entity 'Saltmare', did you mean 'Saltmere'?"),
        ("known_in: [Saltmere]", "known_in: [Tamsin]", "8: nobody under `npcs:` has a path to Tamsin"),
        ("{name: Two towns}", "{name: Two towns, known_in: [Salt]}", "1: unknown entity 'Salt'"),
        ("{description: The", "{known_in: Saltmere, description: The", "8: 'known_in' says nothing as an attribute"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, was: str, now: str, told: str) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(TWO_TOWNS.replace(was, now))
    with pytest.raises(InvalidFile) as caught:
        read_campaign(path)
    assert f"{path}:{told}" in str(caught.value)
