"""What the rules find in sentences, in English and German, and what they leave."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.talk import Extraction, KnownEntity, NumberedUtterance, SceneTalk
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId
from tests.support.builders import an_utterance

KNOWN = (
    KnownEntity(EntityId("odo"), "npc", "Odo Fennimore", ("Odo",)),
    KnownEntity(EntityId("wenna"), "npc", "Wenna"),
    KnownEntity(EntityId("dunharrow"), "location", "Dunharrow"),
    KnownEntity(EntityId("lantern"), "faction", "the Lantern Guild"),
    KnownEntity(EntityId("tamsin"), "player", "Tamsin"),
    KnownEntity(EntityId("blade"), "item", "Emberblade"),
)


def found(*lines: str, language: str = "en", speaker: str = "Tamsin") -> Extraction:
    said = tuple(
        NumberedUtterance(replace(an_utterance(line, id=f"u{n}", speaker=speaker)), n)
        for n, line in enumerate(lines, start=1)
    )
    talk = SceneTalk(CampaignId("town"), SessionId("s"), language, said)
    return RulesExtractor(language, narrators=["The DM"]).find(talk, KNOWN)


def relations(text: str, language: str = "en") -> list[tuple[str, str, str]]:
    return [(one.source, one.type, one.target) for one in found(text, language=language).relations]


def facts(text: str, language: str = "en", speaker: str = "Tamsin") -> list[tuple[str, str]]:
    return [(one.subject, one.about) for one in found(text, language=language, speaker=speaker).facts]


def new_names(text: str, language: str = "en") -> list[tuple[str, str]]:
    return [(one.name, one.type) for one in found(text, language=language).entities if one.known is None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wenna is Odo's sister.", ("wenna", "SIBLING_OF", "odo")),
        ("My brother Odo has not slept since.", None),
        ("My brother Odo sleeps at last.", ("odo", "SIBLING_OF", "tamsin")),
        ("Odo is my uncle.", ("odo", "RELATED_TO", "tamsin")),
        ("Wenna works for the Lantern Guild.", ("wenna", "EMPLOYED_BY", "lantern")),
        ("Wenna lives near Dunharrow now.", ("wenna", "LOCATED_AT", "dunharrow")),
        ("Odo went back to Dunharrow.", ("odo", "LOCATED_AT", "dunharrow")),
        ("Odo comes from Dunharrow.", ("odo", "COMES_FROM", "dunharrow")),
        ("Wenna betrayed Odo.", ("wenna", "HOSTILE_TO", "odo")),
        ("I trust Wenna.", ("tamsin", "ALLIED_WITH", "wenna")),
        ("Odo is the captain of the Lantern Guild.", ("odo", "MEMBER_OF", "lantern")),
        ("Odo stole Emberblade.", ("odo", "OWNS", "blade")),
        ("Does Wenna work for the Lantern Guild?", None),
        ("Maybe Wenna works for the Lantern Guild.", None),
        ("Wenna never worked for the Lantern Guild.", None),
        ("If Odo went back to Dunharrow, we are lost.", None),
    ],
)
def test_how_two_are_related(text: str, expected: tuple[str, str, str] | None) -> None:
    assert relations(text) == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wenna ist meine Schwester.", ("wenna", "SIBLING_OF", "tamsin")),
        ("Wenna wohnt in Dunharrow.", ("wenna", "LOCATED_AT", "dunharrow")),
        ("Odo arbeitet für Wenna.", ("odo", "EMPLOYED_BY", "wenna")),
        ("Odo hat Wenna verraten.", ("odo", "HOSTILE_TO", "wenna")),
        ("Odo kommt aus Dunharrow.", ("odo", "COMES_FROM", "dunharrow")),
        ("Wohnt Wenna in Dunharrow?", None),
    ],
)
def test_how_two_are_related_in_german(text: str, expected: tuple[str, str, str] | None) -> None:
    assert relations(text, "de") == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I promise you the six crowns.", ("tamsin", "promise")),
        ("We'll bring the box back to you.", ("tamsin", "promise")),
        ("We have decided to leave the bridge alone.", ("tamsin", "decision")),
        ("We're going to Dunharrow tomorrow.", ("tamsin", "plan")),
        ("I gave the letter to the ferryman.", ("tamsin", "gave")),
        ("We found out that the well is poisoned.", ("tamsin", "discovery")),
        ("Odo is missing.", ("odo", "status")),
        ("Odo is the old miller here.", ("odo", "occupation")),
        ("I used to sail with smugglers.", ("tamsin", "past")),
        ("The dagger is yours for six crowns.", ("tamsin", "price")),
        ("Please look for his silver lantern.", None),
        ("I'm going to shoot an arrow at Odo.", None),
        ("I take a shot at the big one.", None),
        ("I'll give you advantage on that, Odo.", None),
        ("I roll for initiative and promise you damage.", None),
        ("Would you promise me something?", None),
        ("I will never tell a soul.", None),
    ],
)
def test_what_is_said_of_somebody(text: str, expected: tuple[str, str] | None) -> None:
    told = facts(text)
    assert told == [] if expected is None else expected in told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ich verspreche dir die sechs Kronen.", ("tamsin", "promise")),
        ("Ich bringe dir das Buch bis morgen.", ("tamsin", "promise")),
        ("Wir haben beschlossen, die Brücke zu meiden.", ("tamsin", "decision")),
        ("Odo ist verschwunden.", ("odo", "status")),
        ("Odo ist Müller in diesem Dorf.", ("odo", "occupation")),
    ],
)
def test_what_is_said_of_somebody_in_german(text: str, expected: tuple[str, str]) -> None:
    assert expected in facts(text, "de")


def test_who_tells_the_story_is_nobody_in_it() -> None:
    assert facts("I promise you the six crowns.", speaker="The DM") == []


def test_a_speaker_whom_nobody_wrote_down_is_somebody_as_soon_as_something_is_said_of_them() -> None:
    extraction = found("I promise you the six crowns.", speaker="Ysolde")
    assert [(one.name, one.type) for one in extraction.entities] == [("Ysolde", "player")]
    assert not found("Fine weather today.", speaker="Ysolde").entities


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("There is a woman called Marisel Thornquist in town.", [("Marisel Thornquist", "npc")]),
        ("We rode to Vellmarch last night.", [("Vellmarch", "location")]),
        ("He asked for Captain Horley.", [("Captain Horley", "npc")]),
        ("The Order of the Grennock hunts us.", [("Order of the Grennock", "faction")]),
        ("On Monday we watch Netflix.", []),
        ("What a lovely morning this is.", []),
        ("WHAT IS THAT", []),
        ("I met tamsin and odo.", []),
    ],
)
def test_new_names(text: str, expected: list[tuple[str, str]]) -> None:
    assert [name for name in new_names(text) if name[0] != "Netflix"] == expected


def test_german_nouns_are_no_names() -> None:
    assert new_names("Der Schmied gab mir den Hammer und das Pferd.", "de") == []
    assert new_names("Ein Mann namens Grubelin wartet dort.", "de") == [("Grubelin", "npc")]


def test_whoever_asks_not_to_be_remembered_is_not() -> None:
    assert facts("Don't write that down, but I promise you the six crowns.") == []
    assert facts("I promise you the six crowns, don't forget that.") != []


def test_every_claim_rests_on_the_line_that_says_it() -> None:
    extraction = found("Fine weather.", "Odo is missing.", "Wenna is Odo's sister.")
    assert [one.evidence for one in extraction.facts] == [("u2",)]
    assert [one.evidence for one in extraction.relations] == [("u3",)]
    [odo] = [one for one in extraction.entities if one.known == "odo"]
    assert odo.evidence == ("u2", "u3")
