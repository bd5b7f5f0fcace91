"""What an NPC tells without knowing it."""

from __future__ import annotations

import pytest

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.sentence_check import SentenceCheck, unfounded

MIRELLE = Character("Mirelle")
UNTOLD = "Nobody has told Mirelle anything about that."
BROTHER = "What did Korvald tell you about my brother?"


def judged(sentence: str, question: str = BROTHER, *, untold: bool = False, **more: tuple[object, ...]) -> Fault | None:
    if untold:
        more |= {"facts": (UNTOLD,), "not_known": (UNTOLD,)}
    return unfounded(sentence, MIRELLE, Asked(question=question, **more))  # type: ignore[arg-type]  # by its name


@pytest.mark.parametrize(
    "sentence",
    [
        "Yes, dear, Korvald told me about your brother.",
        "I saw your brother at the mill.",
        "I remember the wedding well.",
        "You told me that he is lost.",
        "I promised to look for him.",
        "Ich habe dir versprochen, ihn zu suchen.",
        "Ja, er hat mir davon erzählt.",
        "Ich habe deinen Bruder am Tor gesehen.",
        "Du hast mir erzählt, dass er fort ist.",
    ],
)
def test_a_memory_that_nothing_speaks_of_is_no_memory(sentence: str) -> None:
    assert judged(sentence) is Fault.UNFOUNDED
    assert judged(sentence, facts=("Korvald is the smith.",)) is Fault.UNFOUNDED


@pytest.mark.parametrize(
    "sentence",
    [
        "Nobody told me about your brother.",
        "I have never seen him.",
        "What did he tell you?",
        "If I saw your brother, I would say so.",
        "Davon hat mir niemand erzählt.",
        "I hear the rain, and the fire is warm.",
        "A room costs four pennies.",
    ],
)
def test_who_denies_asks_back_or_speaks_of_other_things_claims_no_memory(sentence: str) -> None:
    assert judged(sentence) is None


def test_a_memory_with_something_behind_it_is_one() -> None:
    sentence = "You told me that he went to Gull Rock."
    assert judged(sentence, remembered=("Wenna said: My brother went to Gull Rock.",)) is None
    assert judged(sentence, before=(("He is on Gull Rock.", "Is he?"),)) is None
    assert judged(sentence, "He is on Gull Rock. What did I say?") is None
    fire = "I remember the fire at the old mill."
    assert judged(fire, "Do you remember the mill?", facts=("There was a fire at the old mill.",)) is None


def test_where_the_prompt_says_that_it_knows_nothing_it_may_not_state_anything() -> None:
    assert judged("He went north last week.", untold=True) is Fault.UNFOUNDED
    assert judged("Aye.", untold=True) is Fault.UNFOUNDED
    assert judged("He went north last week.") is None
    assert judged("Your brother?", untold=True) is None
    assert judged("I do not know, dear.", untold=True) is None


def test_once_it_has_said_so_it_may_go_on() -> None:
    asked = Asked(question=BROTHER, facts=(UNTOLD,), not_known=(UNTOLD,))
    check = SentenceCheck(MIRELLE, asked)
    assert check.decide("I know nothing of that.").fault is None
    assert check.decide("Ask at the gate, they see everybody.").fault is None
    assert check.decide("I saw him at the mill.").fault is Fault.UNFOUNDED


def test_what_else_it_knows_may_be_said() -> None:
    facts = ("Captain Hesper carries wool.", "Mirelle knows nothing more about it.")
    asked = Asked(question="Why did Hesper kill him?", facts=facts, not_known=facts[1:])
    assert unfounded("Captain Hesper carries wool.", MIRELLE, asked) is None
