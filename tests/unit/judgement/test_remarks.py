"""Replies to a remark, and the content of examples."""

from __future__ import annotations

import pytest

from glyphoxa.domain.turn import Asked, Character, Fault
from glyphoxa.judgement.reply import ReplyCheck
from glyphoxa.language.asking import question_of

RUSK = Character("Rusk", others=("Odalys",))
GERMAN = Character("Rusk", language="de")
LEMONS = "I will give you a box of fresh lemons."
DIVE = "Rusk, we will dive into Tunnel Six tomorrow at six."


@pytest.mark.parametrize(
    ("question", "sentence", "fault"),
    [
        (LEMONS, "I will give you a box of fresh lemons.", Fault.ECHO),
        (LEMONS, "I will give you lemons, a fresh box.", Fault.ECHO),
        (LEMONS, "You will give me a box of fresh lemons?", None),
        (LEMONS, "Thank you, I like lemons.", None),
        (LEMONS, "I will take the lemons gladly.", None),
        ("I promise to fix your reactor tomorrow.", "I promise to fix the reactor.", Fault.ECHO),
        ("We have to leave the station at once.", "We have to leave the station at once.", Fault.ECHO),
        ("My brother will carry the crates for you.", "I will carry the crates for my brother.", Fault.ECHO),
        ("You sealed Tunnel Six.", "I sealed no tunnel.", None),
        ("Did you seal Tunnel Six?", "I did not.", None),
        (DIVE, "I did not.", Fault.UNFOUNDED),
        (DIVE, "I didn't close anything.", Fault.UNFOUNDED),
        (DIVE, "Not I.", Fault.UNFOUNDED),
        (DIVE, "No, I never did that.", Fault.UNFOUNDED),
        (DIVE, "I did not know that.", None),
        (DIVE, "Be careful down there.", None),
        ("You broke the pump.", "I did not.", None),
    ],
)
def test_reply_to_a_remark_keeps_who_does_what(question: str, sentence: str, fault: Fault | None) -> None:
    assert ReplyCheck(RUSK, Asked(question=question, speaker_name="Juno")).decide(sentence).fault is fault


@pytest.mark.parametrize(
    ("question", "sentence", "fault"),
    [
        ("Ich bringe dir morgen eine Kiste Zitronen.", "Ich bringe dir morgen eine Kiste Zitronen.", Fault.ECHO),
        ("Wir tauchen morgen um sechs in den Stollen.", "Ich war es nicht.", Fault.UNFOUNDED),
        ("Wir tauchen morgen um sechs in den Stollen.", "Dann gebt gut auf euch acht.", None),
    ],
)
def test_reply_to_a_german_remark(question: str, sentence: str, fault: Fault | None) -> None:
    assert ReplyCheck(GERMAN, Asked(question=question, speaker_name="Juno")).decide(sentence).fault is fault


@pytest.mark.parametrize(
    ("text", "is_remark"),
    [
        (DIVE, True),
        ("We brought you new seals for the pump.", True),
        ("I lost my knife in the mill pond.", True),
        ("Somebody sealed Tunnel Six.", True),
        ("You sealed Tunnel Six.", False),
        ("Rusk, who sealed Tunnel Six", False),
        ("Rusk, tell me about Tunnel Six.", False),
        ("Is Tunnel Six closed?", False),
        ("Good morning, captain.", False),
        ("Too dear.", False),
    ],
)
def test_remark_asks_for_nothing(text: str, is_remark: bool) -> None:
    assert question_of(text, "en").is_remark is is_remark


EXAMPLES = (
    "Do you know my cousin Edwin?\nFacts: Nobody has told Rusk anything about that.",
    "What happened at the bridge?\nFacts: At the bridge there was a fire two winters ago.",
    "Who broke the lock?\nYou keep this to yourself and deny it: You broke the lock at night.",
)


@pytest.mark.parametrize(
    ("question", "sentence", "is_said"),
    [
        ("What is new?", "Do you know my cousin Edwin?", False),
        ("What is new?", "Edwin is well.", True),  # a first word may be any
        ("What is new?", "I have seen Edwin.", False),
        ("What happened here?", "There was a fire two winters ago.", False),
        ("What happened at the bridge?", "There was a fire two winters ago.", False),
        ("Was there a fire two winters ago?", "Yes, a fire two winters ago.", True),
        ("Who are you?", "I broke the lock at night.", False),
        ("What is new?", "The bridge is closed, and the pumps are loud.", True),
    ],
)
def test_content_of_an_example_is_not_the_npcs_own(question: str, sentence: str, is_said: bool) -> None:
    asked = Asked(question=question, speaker_name="Juno", examples=EXAMPLES, persona="You are Rusk, who mends pumps.")
    assert bool(ReplyCheck(RUSK, asked).decide(sentence).text) is is_said


def test_words_of_the_persona_are_the_npcs_own() -> None:
    persona = "You are Rusk. A fire at the bridge took your house."
    asked = Asked(question="Where is your house?", persona=persona, examples=EXAMPLES)
    assert ReplyCheck(RUSK, asked).decide("It went in the fire at the bridge.").text
