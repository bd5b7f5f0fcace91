"""Only relevant utterances and facts enter a prompt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.knowledge import RecalledSummary, RecalledTalk, RecalledUtterance, Signal
from glyphoxa.prompt.select import Candidates, select, why_unrelated, without_call, worth_telling
from tests.support.builders import SMITH
from tests.support.recalled import a_fact, heard, said_itself

BROTHER = "My brother Thomas was lost near Graumsted."


def said(text: str = BROTHER, *, similarity: float | None = None) -> RecalledUtterance:
    return heard(text, similarity=similarity)


def bears_on(question: str, recalled: RecalledTalk, *, asks_of_the_past: bool = False) -> bool:
    return not why_unrelated(question, recalled, asks_of_the_past=asks_of_the_past)


@pytest.mark.parametrize(
    ("question", "similarity"),
    [("Where is Joren?", 0.5), ("What of my brothers?", 0.3), ("Do you remember my brother?", None)],
)
def test_near_in_meaning_or_words_is_kept(question: str, similarity: float | None) -> None:
    assert bears_on(question, said(similarity=similarity))


@pytest.mark.parametrize(
    ("question", "similarity"),
    [("Where is Joren?", 0.4), ("What of my brother?", 0.1), ("What do you know?", None)],
)
def test_what_only_happens_to_be_found_is_left_out(question: str, similarity: float | None) -> None:
    assert not bears_on(question, said(similarity=similarity))


@pytest.mark.parametrize("empty", ["Good evening, Korvald.", "Please tell me everything you know.", "Wait!"])
def test_a_line_that_tells_nothing_is_left_out_however_near(empty: str) -> None:
    assert not bears_on("Good evening, what do you know?", said(empty, similarity=0.9))


def test_an_earlier_question_tells_nothing_unless_the_past_is_asked_about() -> None:
    asked = said("Where was my brother Thomas lost?", similarity=0.9)
    assert not bears_on("Where is Thomas?", asked)
    assert bears_on("What did I ask about Thomas?", asked, asks_of_the_past=True)
    again = "Do you remember where my brother Thomas was lost?"
    assert not bears_on(again, asked, asks_of_the_past=True)


def test_an_npcs_own_words_must_share_one_with_the_question() -> None:
    own = said_itself("I do not know Thomas of Graumsted.", npc=SMITH, similarity=0.9)
    assert not bears_on("What did you say of the fen?", own)
    assert bears_on("What did you say of Thomas?", own)


def test_the_name_that_is_called_is_no_part_of_the_question() -> None:
    assert without_call("Grimjaw, do you know Mirelle?", "Grimjaw") == "do you know Mirelle?"
    assert without_call("How is my blade, Grimjaw?", "Grimjaw") == "How is my blade?"


QUESTION = "Where was my brother Joren lost?"
ASKED = heard("Do you remember where my brother was lost?", score=0.8)
ANSWER = heard("In the fen.", by="bran", score=0.9, signals={Signal.ANSWERS: 2.0})
FAR = heard("The lantern was lost at the mill.", by="bran", score=0.3)
HERS = heard(BROTHER)
CHATTER = heard("The harvest festival begins tomorrow.", by="bran", score=0.6)
SMALL, LARGE = 90, 1_500


def test_an_answer_that_shares_no_word_with_the_question_is_told_with_what_it_stands_beside() -> None:
    assert worth_telling(QUESTION, [HERS, ANSWER], tokens=SMALL) == [HERS, ANSWER]


def test_what_only_happens_to_rank_first_is_not_told() -> None:
    """Something always does."""
    for tokens in (SMALL, LARGE):
        assert worth_telling("Pass the salt, please.", [HERS, ANSWER, CHATTER], tokens=tokens) == []


def test_what_bears_on_the_question_is_told_even_if_something_else_ranks_before_it() -> None:
    first = heard("The harvest festival begins tomorrow.", by="bran")
    assert worth_telling(QUESTION, [first, FAR], tokens=SMALL) == [FAR]


def test_a_small_budget_is_left_to_the_best_and_a_large_one_is_filled_by_the_ranking() -> None:
    found = [HERS, ANSWER, ASKED, CHATTER, FAR]
    lone = replace(ASKED, text="I dream of the fen. Was he lost there?")
    assert worth_telling(QUESTION, [*found, lone], tokens=SMALL) == [HERS, ANSWER, FAR, lone]
    assert worth_telling(QUESTION, found, tokens=LARGE) == found


def test_a_small_model_does_not_recall_its_own_ignorance() -> None:
    own = said_itself("I never heard of that.", npc=SMITH, score=0.9)
    assert worth_telling(QUESTION, [HERS, own], tokens=SMALL) == [HERS]


def test_what_happened_last_time_is_told_without_a_word_in_common() -> None:
    summary = RecalledSummary(SessionId("s1"), "They crossed the fen by night.")
    happened = heard("The mill is on fire!", by="bran", signals={Signal.RECAP: 1.0})
    then = heard("The miller bought seven lanterns.", by="bran", score=0.9, signals={Signal.TIME: 6.0})
    found = [summary, happened, then]
    asked = "What happened last session?"
    assert worth_telling(asked, found, tokens=SMALL, asks_of_the_past=True) == found
    assert worth_telling("Good evening.", [then], tokens=SMALL) == []
    of_that_day = replace(then, signals={Signal.TIME: 6.0, Signal.THEN: 1.0})
    assert worth_telling("Who came on 12 Hammer?", [of_that_day], tokens=SMALL) == [of_that_day]


def test_what_hardly_asks_brings_nothing_but_what_is_near() -> None:
    salt = replace(said("The salt of the marsh is bitter.", similarity=0.3), score=1.0)
    best = replace(said("We buried him by the old mill.", similarity=0.1), score=0.9)
    for question, told in (("Pass me the salt, please.", [salt]), ("Is the salt of the marsh bitter?", [salt, best])):
        assert worth_telling(question, [salt, best], tokens=1_500) == told


def in_prompt(question: str, *lines: RecalledUtterance, fact: str = "", tokens: int = SMALL) -> list[str]:
    facts = [a_fact(fact, is_named=True)] if fact else []
    return [
        one.text for one in select(Candidates(question, "en", "Rhea", facts, lines), Budgets(facts_tokens=tokens)).talk
    ]


def test_small_model_reads_no_line_that_only_shares_a_word() -> None:
    bell, keeper = said("I dream of a drowned bell.", similarity=0.3), said("Old Brack drowned.", similarity=0.3)
    question = "When did Old Brack drown?"
    assert in_prompt(question, keeper, bell) == [keeper.text]
    assert in_prompt(question, keeper, bell, tokens=LARGE) == [keeper.text, bell.text]
    assert in_prompt(question, keeper, replace(bell, similarity=0.4)) == [keeper.text, bell.text]


def test_small_model_reads_no_line_beside_a_fact_that_answers() -> None:
    sister = heard("My sister wants to marry a baker in Harrow Quay.", by="rhea", similarity=0.4)
    port = "Harrow Quay is a river port."
    assert in_prompt("What is Harrow Quay?", sister, fact=port) == []
    assert in_prompt("Where does my sister live, in Harrow Quay?", sister, fact=port) == [sister.text]
    assert in_prompt("What did I tell you of Harrow Quay?", sister, fact=port) == [sister.text]


def test_small_model_reads_nothing_that_others_said_of_themselves_for_a_question_about_the_asker() -> None:
    his, hers = heard("My teacher is called Quillan.", by="tobin"), heard("My teacher is called Ida.", by="rhea")
    by_name = heard("I know the teacher of Rhea, she is called Ida.", by="tobin")
    assert in_prompt("What is my teacher called?", his, hers, by_name) == [hers.text, by_name.text]
    for question in ("What is the teacher of Tobin called?", "What is our teacher called?"):
        assert in_prompt(question, his) == [his.text]
    assert in_prompt("What is my teacher called?", his, tokens=LARGE) == [his.text]
