"""Answers from what the asker told an NPC itself."""

from __future__ import annotations

import pytest

from glyphoxa.context.repairs import told_before
from glyphoxa.context.wording import StandIns
from glyphoxa.domain.ids import SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import RecalledUtterance
from glyphoxa.domain.turn import Fault

SMOKE = "I saw smoke above the old watchtower at noon."


def said(text: str, *, by: str = "Rhea") -> RecalledUtterance:
    return RecalledUtterance(UtteranceId("u"), SessionId("s"), SpeakerId(by), by, text, at_ms=None)


@pytest.mark.parametrize(
    ("question", "told", "answer"),
    [
        ("Where did I see smoke?", SMOKE, "You told me you saw smoke above the old watchtower at noon."),
        (
            "Who followed me from the bridge?",
            "A man followed me from the bridge.",
            "You told me a man followed you from the bridge.",
        ),
        ("What did I steal?", "I stole an apple and I'm sorry.", "You told me you stole an apple and you're sorry."),
        ("What is my horse called?", "My horse is called Bramble.", "You told me your horse is called Bramble."),
        ("What is my brother's name?", "My brother Joren is lost.", "You told me your brother Joren is lost."),
        ("Where did the spiders bite me?", "The spiders bit my arm.", "You told me the spiders bit your arm."),
        ("Where was I a smith?", "I was a smith. We were poor.", "You told me you were a smith. You were poor."),
        (
            "What did I tell you of the mill?",
            "Bran burned the mill for you.",
            'You said: "Bran burned the mill for you."',
        ),
    ],
)
def test_what_the_asker_said_of_it_is_an_answer_in_the_second_person(question: str, told: str, answer: str) -> None:
    assert told_before(question, [said(told)], "Rhea", language="en") == (answer,)


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("Wo habe ich Rauch gesehen?", "Ich habe mittags Rauch über dem alten Wachturm gesehen."),
        ("Wie viele Pfeilspitzen brauche ich?", "Ich brauche zwanzig Pfeilspitzen bis zum Vollmond."),
        ("Wie heißt mein Enkel?", "Mein Enkel Fiete lernt bei mir lesen."),
    ],
)
def test_german_is_quoted(question: str, line: str) -> None:
    assert told_before(question, [said(line)], "Rhea", language="de") == (f'Du hast gesagt: "{line}"',)


@pytest.mark.parametrize(
    ("question", "told", "by", "asker"),
    [
        ("Where did I see smoke?", SMOKE, "Bran", "Rhea"),
        ("Where did I see smoke?", SMOKE, "Rhea", ""),
        ("Where did I see smoke?", "Did I see smoke?", "Rhea", "Rhea"),
        ("Where did I see smoke?", "I saw smoke.", "Rhea", "Rhea"),
        ("Where is my room?", "I want a room for the night.", "Rhea", "Rhea"),
        ("Where is the mill?", "I saw the mill by the river.", "Rhea", "Rhea"),
        ("What did you promise me?", "I saw you promise me a horse.", "Rhea", "Rhea"),
        ("Wo habe ich Rauch gesehen?", SMOKE, "Rhea", "Rhea"),
    ],
    ids=["another's", "nobody asks", "a question", "nothing new", "a wish", "not of the asker", "own words", "foreign"],
)
def test_nothing_else_is(question: str, told: str, by: str, asker: str) -> None:
    assert told_before(question, [said(told, by=by)], asker, language="en") == ()


def test_it_stands_in_for_a_reply_that_cannot_be_said_but_for_a_secret() -> None:
    lines = StandIns("en")
    assert lines.line("Where did I see smoke?", Fault.FORGOTTEN, ("You told me so.",)) == "You told me so."
    assert lines.line("Where did I see smoke?", Fault.SECRET, ("You told me so.",)) != "You told me so."
