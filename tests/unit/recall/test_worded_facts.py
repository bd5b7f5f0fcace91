"""Facts are found by the words of their text, by whoever may know them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.ids import FactId
from glyphoxa.recall.world import WordIndex
from tests.support.proof import n_examples

TOWN = "Pinewatch is a walled town. Its gate closes at sunset."
QUEEN = "Queen Isaura rules the land from Silverhall."
GOLD = "The gate of the treasury closes on the queen's gold."


def of(*texts: str, language: str = "en") -> WordIndex[FactId]:
    made = WordIndex[FactId](language)
    for text in texts:
        made.put(FactId(text), text)
    return made


def anybody(_: FactId) -> bool:
    return True


def found(
    facts: WordIndex[FactId], question: str, may_see: Callable[[FactId], bool] = anybody, most: int = 2
) -> list[str]:
    return [*facts.find(question, may_see=may_see, most=most)]


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("When does the gate close?", [TOWN]),
        ("Who rules this land?", [QUEEN]),
        ("Who ruled the land?", [QUEEN]),
        ("Silverhall?", [QUEEN]),
        ("Who closed the door of the mill yesterday?", []),
        ("Where do you live?", []),
        ("", []),
    ],
)
def test_a_question_finds_the_text_that_has_its_words(question: str, texts: list[str]) -> None:
    assert found(of(TOWN, QUEEN, "a blacksmith"), question) == texts


def test_who_shares_most_stands_first_and_only_so_many_are_told() -> None:
    facts = of(TOWN, GOLD)
    assert found(facts, "When does the gate of the town close?") == [TOWN, GOLD]
    assert found(facts, "When does the gate close?") == sorted([TOWN, GOLD])
    assert len(found(facts, "When does the gate close?", most=1)) == 1


def test_a_word_that_many_texts_have_finds_none_of_them() -> None:
    assert found(of(*(f"The ferry number {n} is old." for n in range(3))), "The ferry?") == []


def test_a_fact_that_changed_is_found_by_its_new_text_alone() -> None:
    facts = of(TOWN)
    facts.put(FactId(TOWN), "The town burned down last year.")
    assert found(facts, "When does the gate close?") == []
    assert found(facts, "When did the town burn?") == [TOWN]
    facts.drop(FactId(TOWN))
    facts.drop(FactId(TOWN))
    assert found(facts, "When did the town burn?") == []


TEXTS = st.lists(
    st.lists(st.sampled_from(["gate", "sunset", "queen", "gold", "ferry", "mill", "burn"]), min_size=3, max_size=6).map(
        " ".join
    ),
    unique=True,
    max_size=12,
)


@settings(max_examples=n_examples(200), derandomize=True, deadline=None)
@given(texts=TEXTS, hidden=st.integers(0, 4095), question=st.sampled_from(["gate sunset", "queen gold ferry", "mill"]))
def test_what_may_not_be_known_changes_nothing_of_what_is_found(texts: list[str], hidden: int, question: str) -> None:
    seen = [text for n, text in enumerate(texts) if not hidden >> n & 1]
    with_hidden = found(of(*texts), question, may_see=lambda fact: fact in seen, most=20)
    assert with_hidden == found(of(*seen), question, most=20)
