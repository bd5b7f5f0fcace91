"""Whose a thing is: the asker's "my" is no NPC's."""

from __future__ import annotations

import pytest

from glyphoxa.judgement.in_character import with_its_owner
from glyphoxa.judgement.reply import Asked


@pytest.mark.parametrize(
    ("question", "sentence", "said"),
    [
        ("What is my horse called?", "My horse is called Bramble.", "Your horse is called Bramble."),
        ("My horse is called Bramble.", "Bramble is my horse.", "Bramble is your horse."),
        ("Where is my old sword?", "My sword lies by the door.", "Your sword lies by the door."),
        ("Where is my sword?", "My old sword lies by the door.", "Your old sword lies by the door."),
        ("Wie heißt mein Pferd?", "Mein Pferd heißt Bramble.", "Dein Pferd heißt Bramble."),
        ("Wo ist meine Schwester?", "Sie ist meine Schwester.", "Sie ist deine Schwester."),
        ("What did I say about her leg?", "I said that she limps.", "You said that she limps."),
        ("What did I tell you?", "Hm, I told you that she limps.", "Hm, you told me that she limps."),
        ("What have I promised?", "I've promised you nothing.", "You've promised nothing."),
        ("Was habe ich dir gesagt?", "Ich habe dir gesagt, dass sie lahmt.", "Du hast mir gesagt, dass sie lahmt."),
    ],
)
def test_what_the_question_says_is_the_askers_stays_the_askers(question: str, sentence: str, said: str) -> None:
    assert with_its_owner(sentence, Asked(question=question)) == said


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("What is your horse called?", "My horse is called Bramble."),
        ("Is my horse faster than your horse?", "My horse is faster."),
        ("Do you like my sword?", "My sword is better than that."),
        ("My brother is lost.", "My brother is lost, too."),
        ("Where is my horse?", "It stands in my stable."),
        ("What is my name?", "My name is Marta."),
        ("What did you say?", "I said that she limps."),
        ("", "My horse is called Bramble."),
    ],
)
def test_what_may_be_the_npcs_own_stays_so(question: str, sentence: str) -> None:
    assert with_its_owner(sentence, Asked(question=question)) == sentence


def test_an_npc_may_have_such_a_thing_of_its_own() -> None:
    asked = Asked(question="Is that my horse?", identity=("Marta has a grey horse.",))
    assert with_its_owner("No, that is my horse.", asked) == "No, that is my horse."
