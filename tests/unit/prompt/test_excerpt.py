"""Where few words fit, long talk is told by the sentences that bear on the question."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.budgets import Budgets
from glyphoxa.language.sentences import tokens_of
from glyphoxa.prompt.select import LONGEST_TOKENS, Candidates, excerpted, select
from tests.support.recalled import heard

LONG = (
    "Good evening to you, my friend, and a very good evening it is. My brother lost the silver bell in the old mine. "
    "It was the third day of the harvest. Will you drink something with me? The ale is fresh, and the bread is too."
)
QUESTION = "Where did your brother lose the bell?"


def test_a_long_line_is_cut_to_what_bears_on_the_question_and_what_stands_beside_it() -> None:
    told = excerpted(heard(LONG), QUESTION)
    assert "My brother lost the silver bell in the old mine. It was the third day of the harvest." in told.text
    assert "ale" not in told.text
    assert tokens_of(told.text) <= LONGEST_TOKENS


def test_a_short_line_and_a_single_long_sentence_stay_whole() -> None:
    short = heard("The bell is in the mine. Ask my brother.")
    endless = heard("We walked " + "and walked " * 30 + "to the mine.")
    assert excerpted(short, QUESTION) is short
    assert excerpted(endless, QUESTION) == endless


@given(st.lists(st.text(st.sampled_from("ab .!?…\"'\n"), max_size=40), max_size=12), st.text(max_size=20))
def test_an_excerpt_is_always_a_stretch_of_what_was_said(pieces: list[str], question: str) -> None:
    text = ". ".join(pieces)
    told = excerpted(heard(text), question)
    assert told.text in text or told.text in " ".join(text.split())
    assert bool(told.text.strip()) == bool(text.strip())


def test_a_tight_budget_holds_more_of_what_was_said_and_a_wide_one_holds_it_whole() -> None:
    talk = [replace(heard(LONG, utterance=f"u{n}"), similarity=0.6, score=1.0 - n / 100) for n in range(3)]
    talk = [replace(one, text=one.text.replace("silver", f"{n}th")) for n, one in enumerate(talk)]
    candidates = Candidates(QUESTION, "en", talk=talk)
    tight = select(candidates, Budgets(facts_tokens=90))
    assert len(tight.talk) >= 2
    assert all(one.text != whole.text for one in tight.talk for whole in talk)
    assert {one.text for one in select(candidates, Budgets(facts_tokens=900)).talk} == {one.text for one in talk}
