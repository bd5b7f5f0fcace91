"""Rules between the blocks of a campaign file, and remarks on what plays badly."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from glyphoxa.cli.main import main
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.campaign_schema import SecretBlock, hint_for, remark_on_secret, role_in
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.domain.campaign import Npc, Relationship
from glyphoxa.domain.events import reached_from
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.language.relations import IN_ENGLISH, RelationWords
from glyphoxa.prompt.known_world import KnownWorld
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
def test_place_reaches_npcs_with_a_path_to_it(ties: tuple[str, ...], reaches: bool) -> None:
    assert (reached_from({EntityId("town")}, [MIRA], edges(*ties)) == [MIRA.id]) is reaches


def test_path_skips_hidden_and_unreviewed_relations() -> None:
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


def knowers(tmp_path: Path, text: str) -> dict[str, tuple[str, ...]]:
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    return {entity.name: entity.known_by for entity in read_campaign(path).campaign.entities}


def test_public_fact_of_one_town_is_unknown_in_another(tmp_path: Path) -> None:
    known_by = knowers(tmp_path, TWO_TOWNS)
    assert known_by["The Tithe"] == ("mira",)
    assert {known_by[name] for name in ("Mira", "Grim", "Saltmere", "Drumkeld", "Tamsin")} == {()}
    by_name = KnownWorld(read_campaign(tmp_path / "campaign.yaml").campaign, None)
    asked = "What do you know of The Tithe?"
    assert [one.text for one in by_name.facts(NpcId("mira"), asked)] == ["The Tithe was doubled."]
    assert by_name.facts(NpcId("grim"), asked) == []


def test_a_campaign_says_what_everybody_means_and_an_entity_says_otherwise(tmp_path: Path) -> None:
    text = TWO_TOWNS.replace("{name: Two towns}", "{name: Two towns, known_in: [Saltmere]}")
    text = text.replace("{name: Drumkeld, type: location}", "{name: Drumkeld, type: location, known_in: []}")
    text = text.replace("known_in: [Saltmere], attr", "known_by: [Grim], attr")
    assert knowers(tmp_path, text) == {
        "Mira": ("mira",),
        "Grim": (),
        "Tamsin": (),
        "Saltmere": ("mira",),
        "Drumkeld": (),
        "The Tithe": ("grim",),
    }


def test_known_by_adds_to_known_in(tmp_path: Path) -> None:
    text = TWO_TOWNS.replace("known_in: [Saltmere], attr", "known_in: [Saltmere], known_by: [Grim], attr")
    assert knowers(tmp_path, text)["The Tithe"] == ()  # all there are


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ("known_in: [Saltmere]", "known_in: [Saltmare]", "8: unknown entity 'Saltmare', did you mean 'Saltmere'?"),
        ("known_in: [Saltmere]", "known_in: [Tamsin]", "8: no NPC has a path to Tamsin"),
        ("{name: Two towns}", "{name: Two towns, known_in: [Salt]}", "1: unknown entity 'Salt'"),
        ("{description: The", "{known_in: Saltmere, description: The", "8: 'known_in' has no effect as an attribute"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, was: str, now: str, told: str) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(TWO_TOWNS.replace(was, now))
    with pytest.raises(InvalidFile) as caught:
        read_campaign(path)
    assert f"{path}:{told}" in str(caught.value)


# The warnings of `campaign check` about an NPC that would play badly

GOOD = {"persona": "You are Oskar, a tired harbourmaster.", "examples": [{"said": "Hello.", "reply": "Good day."}]}


def written(path: Path, npc: dict[str, Any], *, language: str = "en") -> Path:
    document = {
        "campaign": {"name": "Quay", "language": language},
        "entities": [
            {"name": "Oskar", "type": "npc", "aliases": ["the harbourmaster"]},
            {"name": "The Wharf", "type": "location"},
        ],
        "npcs": [{"entity": "Oskar", **npc}],
        "players": [{"name": "Tamsin"}],
        "scenes": [{"location": "The Wharf", "npcs": ["Oskar"]}],
        "secrets": [{"text": "You take bribes.", "known_by": ["Oskar"]}],
    }
    file = path / "quay.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000), "utf-8")
    return file


def remarks(path: Path, language: str = "en", **changes: Any) -> list[tuple[str, str]]:
    """Each with the text of its line."""
    file = written(path, {**GOOD, **changes}, language=language)
    lines = file.read_text("utf-8").splitlines()
    found = [warning.removeprefix(f"{file}:").partition(": ") for warning in read_campaign(file).warnings]
    return [(lines[int(line) - 1].strip(" -"), text) for line, _, text in found]


def test_npc_without_problems_gets_no_warning(tmp_path: Path) -> None:
    assert remarks(tmp_path) == []
    assert remarks(tmp_path, "de", persona="Du bist Oskar, ein müder Hafenmeister.") == []
    assert remarks(tmp_path, "fr", persona="Tu es Oskar.") == []


@pytest.mark.parametrize(
    ("changes", "line", "text"),
    [
        ({"persona": ""}, "entity: Oskar", "'Oskar' has no `persona`: say who it is and how it speaks"),
        (
            {"persona": "Oskar is a harbourmaster who cares about fees and tides."},
            "persona: Oskar is a harbourmaster",
            "is not in the second person ('Oskar is a harbourmaster who cares about...'): write 'You are Oskar, ...'",
        ),
        ({"persona": "You are Oskar. " * 100}, "persona: ", "more than 1,200 leave too little room"),
        ({"examples": []}, "entity: Oskar", "'Oskar' has no `examples`: default ones"),
        (
            {"examples": [{"said": "Peter says: Hello.", "reply": "Good day."}]},
            "said: 'Peter says: Hello.'",
            "`said` already names the speaker ('Peter says:'): write only the words",
        ),
        (
            {"examples": [{"said": "Hello.", "facts": "Facts: It rains.", "reply": "Good day."}]},
            "facts: 'Facts: It rains.'",
            "`facts` begins with its label",
        ),
        (
            {"examples": [{"said": "Hello.", "remembered": "Remembered: Peter said: Hm.", "reply": "Good day."}]},
            "remembered: 'Remembered: Peter said: Hm.'",
            "`remembered` begins with its label",
        ),
        (
            {"examples": [{"said": "Hello.", "reply": "*nods* Good day."}]},
            "reply: '*nods* Good day.'",
            "'*nods* Good day.' is not what 'Oskar' would say aloud",
        ),
        ({"examples": [{"said": "Hello.", "reply": "Oskar: Aye."}]}, "reply: 'Oskar: Aye.'", "a name before the words"),
        ({"examples": [{"said": "Hello.", "reply": "Oskar nods."}]}, "reply: Oskar nods.", "without stage directions"),
    ],
)
def test_npc_problem_is_reported_with_its_line(tmp_path: Path, changes: dict[str, Any], line: str, text: str) -> None:
    [(at, told)] = remarks(tmp_path, **changes)
    assert at.startswith(line)
    assert text in told


def test_a_persona_in_german_is_told_in_german_how_it_begins(tmp_path: Path) -> None:
    [(_, told)] = remarks(tmp_path, "de", persona="Oskar ist Hafenmeister.")
    assert "write 'Du bist Oskar, ...'" in told


def test_the_check_warns_and_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, {"persona": "Oskar is old."})
    assert main(["campaign", "check", str(file)]) == 0
    assert capsys.readouterr().err.count("warning:") == 2


def test_start_of_an_npcs_prompts_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, {"persona": GOOD["persona"]})
    assert main(["campaign", "prompt", str(file), "--npc", "The Harbourmaster"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("[system]\nYou are Oskar, a tired harbourmaster.\nYou speak aloud, as Oskar,")
    assert "[user]\nSomebody says: Hello, Oskar. How are you?\n\n[assistant]\n" in shown
    assert "write `examples:` under 'Oskar'" in shown
    assert shown.endswith("included only if the conversation is about them:\n  You take bribes.\n")


def test_an_npc_that_is_not_in_the_file_has_no_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "prompt", str(written(tmp_path, GOOD)), "--npc", "Oscar"]) == 1
    assert "no NPC 'Oscar' in campaign 'quay': did you mean 'Oskar'?" in capsys.readouterr().err


# What an NPC is at work, by its persona and by its file


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
def test_role_comes_from_the_first_sentence_after_the_name(persona: str, name: str, role: str) -> None:
    assert role_in(persona, name=name) == role


HARBOUR = """
campaign: {id: harbour, name: The harbour}
entities: [{name: Odo, type: npc}, {name: Mill, type: location}]
npcs:
  - entity: Odo
    persona: You are Odo, the miller of the harbour.
    %s
scenes: [{location: Mill, npcs: [Odo]}]
"""


def test_file_overrides_the_role_and_sets_address_only(tmp_path: Path) -> None:
    path = tmp_path / "harbour.yaml"
    path.write_text(HARBOUR % "speaks: [English]", "utf-8")
    (odo,) = read_campaign(path).campaign.npcs
    assert (odo.role, odo.address_only) == ("miller", False)
    path.write_text(HARBOUR % "role: town guard\n    address_only: true", "utf-8")
    (odo,) = read_campaign(path).campaign.npcs
    assert (odo.role, odo.address_only) == ("town guard", True)


@pytest.mark.parametrize(
    ("relation", "hint"),
    [
        ("BROTHER_OF", None),
        ("brother of", None),
        (
            "ENVOY_OF",
            "relationship type 'ENVOY_OF' is a custom type, shown as 'A is envoy of B'; that is fine",
        ),
        (
            "BROHTER_OF",
            "relationship type 'BROHTER_OF' is a custom type, shown as 'A is brohter of B'; did you mean 'BROTHER_OF'?",
        ),
        (
            "LOCATED_IN",
            "relationship type 'LOCATED_IN' is a custom type, shown as 'A: located in: B'; did you mean 'LOCATED_AT'?",
        ),
        ("KNOWS", None),
    ],
)
def test_only_a_close_relationship_type_is_suggested(relation: str, hint: str | None) -> None:
    assert hint_for(relation, IN_ENGLISH) == hint


@pytest.mark.parametrize(
    ("text", "known_by", "is_fine"),
    [
        ("You sold the chain.", ("Grimjaw",), True),
        ("Grimjaw sold the chain.", ("Grimjaw", "Elowen"), True),
        ("You sold the chain.", ("Grimjaw", "Elowen"), False),
        ("You sold the chain.", (), False),
        ("Grimjaw sold the chain.", ("Grimjaw",), False),
        ("The chain was sold by Grimjaw.", ("Grimjaw",), False),
        ("The smith sold the chain.", ("Grimjaw",), True),
        ("the smith's chain is gone.", ("Grimjaw",), False),
        ("The chain is gone.", ("Grimjaw",), True),
        ("Grimjaws are birds.", ("Grimjaw",), True),
        ("Elowen sold the chain.", ("Grimjaw",), True),
    ],
)
def test_secret_says_you_to_one_npc_and_a_name_to_several(text: str, known_by: tuple[str, ...], is_fine: bool) -> None:
    block = SecretBlock(text=text, known_by=known_by, hidden=not known_by)
    called = ("Grimjaw", "the smith") if known_by == ("Grimjaw",) else ()
    assert (remark_on_secret(block, called=called, language="en") == "") is is_fine


@pytest.mark.parametrize("text", ["Du hast die Kette verkauft.", "Ich weiß, dass du es warst.", "Deine Kette brach."])
def test_german_secret_may_begin_with_you(text: str) -> None:
    assert remark_on_secret(SecretBlock(text=text, known_by=("Grimm",)), called=("Kette",), language="de") == ""
    assert remark_on_secret(SecretBlock(text=text, known_by=("Grimm", "Elo")), language="de") != ""


def test_a_type_with_a_sentence_of_the_campaign_gets_no_hint() -> None:
    assert hint_for("BROTHER_OF", RelationWords("en", {"BROTHER_OF": "{source} is the brother of {target}"})) is None
