"""Relations of kin, work and friendship: known from both ends, however the campaign spells them."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.ids import NpcId
from glyphoxa.prompt.known_world import KnownWorld

FILE = """
campaign: {{name: Deep Six, language: {language}}}
entities:
  - {{name: Rusk, type: npc}}
  - {{name: Pilar, type: npc}}
  - {{name: Odalys, type: npc}}
relationships:
  - {{source: Rusk, type: {type}, target: Pilar}}
npcs:
  - {{entity: Rusk, persona: You are Rusk.}}
  - {{entity: Pilar, persona: You are Pilar.}}
  - {{entity: Odalys, persona: You are Odalys.}}
players: [{{name: Juno}}]
scenes: [{{location: Deck, npcs: [Rusk, Pilar, Odalys]}}]
"""


def facts(folder: Path, npc: str, question: str, *, type_: str, language: str = "en") -> list[str]:
    path = folder / "campaign.yaml"
    text = FILE.format(type=type_, language=language)
    path.write_text(text.replace("entities:\n", "entities:\n  - {name: Deck, type: location}\n"), "utf-8")
    return [one.text for one in KnownWorld(read_campaign(path).campaign, None).facts(NpcId(npc), question)]


@pytest.mark.parametrize(
    ("type_", "npc", "question", "fact"),
    [
        ("BROTHER_OF", "rusk", "Rusk, who is your sister?", "Pilar is the sister of Rusk."),
        ("brother of", "rusk", "Do you have any siblings?", "Rusk is the brother of Pilar."),
        ("BrotherOf", "pilar", "Who is your brother?", "Rusk is the brother of Pilar."),
        ("BROTHER_OF", "pilar", "Tell me about your family.", "Rusk is the brother of Pilar."),
        ("BROTHER_OF", "odalys", "Who is Rusk's sister?", "Pilar is the sister of Rusk."),
        ("BROTHER_OF", "rusk", "Who is Pilar?", "Pilar is a sibling of Rusk."),
        ("SIBLING_OF", "rusk", "Who is your sister?", "Pilar is the sister of Rusk."),
        ("HAS_SISTER", "rusk", "Who is your sister?", "Pilar is the sister of Rusk."),
        ("twin of", "pilar", "Who is your brother?", "Rusk is the twin of Pilar."),
        ("FATHER_OF", "rusk", "Who is your daughter?", "Pilar is the daughter of Rusk."),
        ("FATHER_OF", "pilar", "Who are your parents?", "Rusk is the father of Pilar."),
        ("CHILD_OF", "pilar", "Who is your son?", "Rusk is a child of Pilar."),
        ("UNCLE_OF", "rusk", "Who is your niece?", "Pilar is the niece of Rusk."),
        ("NEPHEW_OF", "rusk", "Who is your aunt?", "Pilar is the aunt of Rusk."),
        ("GRANDSON_OF", "odalys", "Who is Rusk's grandmother?", "Pilar is the grandmother of Rusk."),
        ("COUSIN_OF", "pilar", "Who is your cousin?", "Rusk and Pilar are cousins."),
        ("married to", "rusk", "Who is your wife?", "Pilar is the wife of Rusk."),
        ("HUSBAND_OF", "pilar", "Are you married?", "Rusk is the husband of Pilar."),
        ("BETROTHED_TO", "pilar", "Who are you engaged to?", "Rusk is engaged to Pilar."),
        ("FRIEND_OF", "pilar", "Who is your best friend?", "Rusk and Pilar are friends."),
        ("RIVAL", "odalys", "Who is Pilar's rival?", "Rusk and Pilar are rivals."),
        ("WORKS_FOR", "pilar", "Who works for you?", "Rusk works for Pilar."),
        ("EMPLOYEE_OF", "rusk", "Who is your boss?", "Rusk works for Pilar."),
        ("SERVANT_OF", "rusk", "Who is your master?", "Rusk serves Pilar."),
        ("APPRENTICE_OF", "pilar", "Who is your apprentice?", "Rusk is an apprentice of Pilar."),
        ("STUDENT_OF", "rusk", "Who is your teacher?", "Rusk is the student of Pilar."),
        ("SUPPLIES", "pilar", "Who is your supplier?", "Rusk supplies Pilar."),
        ("OWNED_BY", "odalys", "Who is the owner of Rusk?", "Pilar owns Rusk."),
    ],
)
def test_relation_is_found_from_both_ends(tmp_path: Path, type_: str, npc: str, question: str, fact: str) -> None:
    assert fact in facts(tmp_path, npc, question, type_=type_)


@pytest.mark.parametrize(
    ("type_", "npc", "question", "fact"),
    [
        ("BRUDER_VON", "rusk", "Wer ist deine Schwester?", "Pilar ist Schwester von Rusk."),
        ("BROTHER_OF", "pilar", "Wer ist dein Bruder?", "Rusk ist Bruder von Pilar."),
        ("verheiratet mit", "pilar", "Wer ist dein Mann?", "Rusk und Pilar sind verheiratet."),
        ("Vater von", "rusk", "Wie heißt deine Tochter?", "Pilar ist Tochter von Rusk."),
        ("arbeitet für", "rusk", "Wer ist dein Chef?", "Rusk arbeitet für Pilar."),
    ],
)
def test_relation_is_found_in_german(tmp_path: Path, type_: str, npc: str, question: str, fact: str) -> None:
    assert fact in facts(tmp_path, npc, question, type_=type_, language="de")


@pytest.mark.parametrize("question", ["Do you know my sister?", "Who is my sister?", "I have a sister, you know."])
def test_sister_of_the_asker_is_not_that_of_the_npc(tmp_path: Path, question: str) -> None:
    assert facts(tmp_path, "rusk", question, type_="BROTHER_OF") == []


def test_brother_is_not_named_as_a_sister(tmp_path: Path) -> None:
    """The question asks for one of several siblings."""
    path = tmp_path / "campaign.yaml"
    more = "  - {source: Odalys, type: SISTER_OF, target: Pilar}\nnpcs:\n"
    text = FILE.format(type="BROTHER_OF", language="en").replace("npcs:\n", more)
    path.write_text(text.replace("entities:\n", "entities:\n  - {name: Deck, type: location}\n"), "utf-8")
    names = KnownWorld(read_campaign(path).campaign, None)
    asked = [one.text for one in names.facts(NpcId("pilar"), "Who is your sister?")]
    assert asked == ["Odalys is the sister of Pilar."]
