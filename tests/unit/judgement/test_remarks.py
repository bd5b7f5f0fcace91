"""Replies to a remark."""

from __future__ import annotations

import pytest

from glyphoxa.domain.turn_record import Asked, Character, Fault
from glyphoxa.judgement.reply import ReplyCheck
from glyphoxa.language.sentence_form import question_of

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
