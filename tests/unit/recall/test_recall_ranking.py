"""How far words are to be trusted beside meaning, and whom a question names by a short name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.recall.ranking import rank
from glyphoxa.recall.signals import said_at_best, signals_of
from glyphoxa.recall.talk_index import TalkIndex
from glyphoxa.recall.terms import RecallQuestion, Terms, read_question
from glyphoxa.transcript.ports import Embedding
from tests.support.builders import SMITH
from tests.support.proof import n_examples
from tests.support.talk_feed import said as feed_said

EAST: NDArray[float32] = np.array([1, 0], float32)
NORTH: NDArray[float32] = np.array([0, 1], float32)
GATED = ("words", "led_up", "scene", "answers")


def an_index(*texts: str, vectors: Sequence[NDArray[float32]] = (), language: str = "en") -> TalkIndex:
    index = TalkIndex(Terms(language), dimensions=2)
    said = [
        # Each in a session of its own: neighbours have no say here.
        feed_said(f"u{n}", text, session=f"s{n}", at_ms=1_000 * n)
        for n, text in enumerate(texts)
    ]
    index.put(said)
    index.put_meanings(
        Embedding(one.utterance_id, vector[None]) for one, vector in zip(said, vectors, strict=bool(vectors))
    )
    return index


def read(index: TalkIndex, question: str, *speakers: str) -> RecallQuestion:
    return read_question(question, terms=index.terms, speakers=speakers, now_ms=0)


def trust(index: TalkIndex, question: str) -> float:
    asked = read(index, question)
    seen = index.look(SMITH, asked.terms)
    return said_at_best(asked, seen, signals_of(asked, seen, frozenset())["led_up"] * np.float32(20))


def order(index: TalkIndex, question: str, vector: NDArray[float32] | None) -> list[int]:
    asked = read(index, question)
    return [int(at) for at in np.argsort(-rank(asked, index.look(SMITH, asked.terms, vector)).scores, kind="stable")]


def test_a_turn_that_says_all_that_is_asked_is_to_be_trusted() -> None:
    index = an_index("The smith owes the harbour forty crowns.", "It rains.")
    assert trust(index, "What does the smith owe the harbour?") == pytest.approx(1)


def test_what_nobody_spoke_of_is_missed_by_all_that_was_said() -> None:
    index = an_index("The smith sings.", "It rains.")
    half = trust(index, "Which debts burden the smith?")
    assert 0.2 < half < 0.35  # one of three, and the other two are rarer than any
    assert trust(index, "Which debts burden him?") == 0


def test_a_question_of_little_words_takes_nothing_from_words() -> None:
    assert trust(an_index("The smith sings."), "Who was that?") == 1


def test_words_that_meet_by_chance_do_not_stand_above_what_is_meant() -> None:
    # Two common words are the same; what was asked is said in the other turn, in other words.
    index = an_index(
        "My brother took the old coin home.",
        "I still owe the harbour master forty crowns.",
        *("Ale and bread.",) * 8,
        vectors=[EAST, NORTH, *[EAST] * 8],
    )
    question = "Which unpaid liabilities burden my old brother?"
    assert order(index, question, None)[0] == 0
    assert order(index, question, NORTH)[0] == 1


def test_without_a_vector_words_count_in_full() -> None:
    index = an_index("The smith sings.", "It rains.", vectors=[EAST, NORTH])
    asked = read(index, "Which debts burden the smith?")
    alone = signals_of(asked, index.look(SMITH, asked.terms), frozenset())
    beside = signals_of(asked, index.look(SMITH, asked.terms, EAST), frozenset())
    share = trust(index, asked.text)
    for name in GATED:
        assert beside[name] == pytest.approx(alone[name] * np.float32(share), abs=1e-6)


@settings(max_examples=n_examples(100), derandomize=True, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["smith", "harbour", "coin", "the", "rain"]), max_size=6), max_size=6),
    st.lists(st.sampled_from(["smith", "harbour", "debts", "the", "coin", "who"]), max_size=8),
)
def test_trust_is_a_share(talk: list[list[str]], question: list[str]) -> None:
    index = an_index(*(" ".join(said) for said in talk))
    assert 0 <= trust(index, " ".join(question)) <= 1 + 1e-6


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Where did Mel go?", {"Melanie"}),
        ("Where did Melanie go?", {"Melanie"}),
        ("What are Mel's plans?", {"Melanie"}),
        ("Where did mel go?", set()),
        ("Mel went where?", set()),  # any word has a capital letter there
        ("Where did Me go?", set()),
        ("Where did Jo go?", {"Jo Grey"}),
        ("Where did Jor go?", {"Joren"}),
        ("Where did Joren go?", {"Joren"}),
        ("Where did Gar go?", set()),  # Garrick or Gareth
        ("What did Can do?", set()),
    ],
)
def test_a_short_name_means_the_one_whose_name_begins_so(question: str, named: set[str]) -> None:
    speakers = ("Melanie", "Jo Grey", "Joren", "Garrick", "Gareth", "Candice")
    asked = read(an_index(), question, *speakers)
    assert asked.speakers == named


def test_who_has_several_labels_is_meant_by_all_of_them() -> None:
    asked = read(an_index(), "Where did Tal go?", "Taliesin", "Taliesin & Sam", "Sam")
    assert asked.speakers == {"Taliesin", "Taliesin & Sam"}


def test_a_short_name_is_asked_for_as_its_owner_would_tell_it() -> None:
    assert read(an_index(), "When did Mel go to Mel's fair?", "Melanie").meaning == "When did I go to my fair?"


def test_where_every_noun_has_a_capital_letter_no_word_is_a_short_name() -> None:
    assert not read(an_index(language="de"), "Wo war der Wolf?", "Wolfgang").speakers
