"""Which of the things an NPC recalls get a place in its prompt."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.ids import EntityId, FactId, SessionId
from glyphoxa.domain.knowledge import Recalled, RecalledFact, RecalledSummary, RecalledUtterance
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.language.sentences import tokens_of
from glyphoxa.prompt.select import chosen, written
from tests.support.proof import n_examples
from tests.support.recalled import a_fact, heard


def said(text: str, *, score: float = 1.0, at_ms: int = 0) -> RecalledUtterance:
    """Return an utterance by nobody: a line is no longer than its words."""
    return heard(text, by="", score=score, at_ms=at_ms)


def texts(candidates: Sequence[Recalled], *, tokens: int = 1_000, most: int = 10) -> str:
    return " ".join(one.text for one in chosen(candidates, tokens=tokens, most=most))


def test_what_bears_on_the_question_most_is_told_however_short_the_rest_is() -> None:
    best = said("Tamsin said: My brother Joren was lost in the fen beyond Graumsted, three winters ago.")
    short = [said(f"Bran said: No {n}.", score=0.8) for n in range(5)]
    assert chosen([best, *short], tokens=tokens_of(best.text), most=3) == [best]


def test_sentence_of_the_bible_nearer_to_the_question_is_told_first() -> None:
    far, near = (written(text, "bible", EntityId("inn"), nearness) for text, nearness in (("far", 0.3), ("near", 0.4)))
    assert texts([far, near], most=1) == "near"


def test_of_two_that_bear_on_it_as_much_the_shorter_leaves_room() -> None:
    long, short = said("word " * 40), said("word " * 15)
    assert chosen([long, short], tokens=tokens_of(long.text), most=3) == [short]


def test_what_does_not_fit_leaves_its_place_to_what_does() -> None:
    assert texts([said("word " * 100), said("A lantern.", score=0.5)], tokens=20) == "A lantern."


def test_talk_is_told_in_the_order_in_which_it_was_said_and_not_of_its_worth() -> None:
    candidates = [said("third", at_ms=3), said("first", score=0.9, at_ms=1), said("second", score=0.95, at_ms=2)]
    assert texts(candidates) == "first second third"


def test_kinds_stand_in_the_order_in_which_they_are_given() -> None:
    talk, fact = said("talk", score=0.7), a_fact("fact")
    assert texts([fact, talk]) == "fact talk"
    assert texts([talk, fact]) == "talk fact"


def test_a_budget_that_only_names_tokens_has_lines_for_them() -> None:
    assert (Budgets().most_facts, Budgets().max_recalled) == (4, 15)
    assert (Budgets(facts_tokens=1_500).most_facts, Budgets(facts_tokens=1_500).max_recalled) == (68, 125)
    assert Budgets(facts_tokens=1_500, max_facts=4).most_facts == 4


TEXTS, SCORES, TIMES = st.text("ab ", min_size=1, max_size=60), st.floats(0, 1), st.none() | st.integers(0, 9)
LINES = st.lists(
    st.one_of(
        st.builds(RecalledFact, st.just(FactId("f")), TEXTS, score=SCORES),
        st.builds(RecalledSummary, st.just(SessionId("s")), TEXTS, TIMES, SCORES),
        st.builds(heard, TEXTS, by=st.sampled_from(["", "bran"]), score=SCORES, at_ms=TIMES),
    ),
    max_size=12,
)


@settings(max_examples=n_examples(200), derandomize=True, deadline=None)
@given(LINES, st.integers(0, 60), st.integers(0, 6))
def test_whatever_is_chosen_fits_and_is_one_of_the_candidates(
    candidates: list[Recalled], tokens: int, most: int
) -> None:
    found = chosen(candidates, tokens=tokens, most=most)
    assert len(found) <= most
    lines = [recalled_line(one) for one in found]
    assert len(set(lines)) == len(found)
    assert all(one in candidates for one in found)
    assert sum(map(tokens_of, lines)) <= tokens
