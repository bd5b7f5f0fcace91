"""What a prompt says where memory is silent."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from glyphoxa.context.not_known import InMind, not_known
from glyphoxa.domain.ids import FactId
from glyphoxa.domain.recalled import RecalledFact

UNTOLD = "Nobody has told Mirelle anything about that."


def a_mind(
    *facts: str, remembered: Sequence[str] = (), beside: Sequence[str] = (), known: Sequence[str] = (), path: str = ""
) -> InMind:
    return InMind(
        "Mirelle",
        facts=[RecalledFact(text, FactId("f"), path=path) for text in facts],
        remembered=remembered,
        beside=("Mirelle keeps the Salted Eel.", *beside),
        is_known=lambda name: name in known,
    )


@pytest.mark.parametrize(
    ("question", "language", "line"),
    [
        ("What did I tell you about my brother?", "en", UNTOLD),
        ("Where does our mother live?", "en", UNTOLD),
        ("Why did the king visit you?", "en", UNTOLD),
        ("Mirelle, you promised me a room!", "en", "Mirelle never said that."),
        ("Who is Tarquin?", "en", "Mirelle has never heard of Tarquin."),
        ("Wie heißt meine Lehrerin?", "de", "Niemand hat Mirelle etwas davon erzählt."),
        ("Was hat dir Korbinian erzählt?", "de", "Von Korbinian hat Mirelle nie gehört."),
        ("Du hast mir ein Zimmer versprochen!", "de", "Das hat Mirelle nie gesagt."),
    ],
)
def test_who_asks_for_what_is_not_there_is_told_so(question: str, language: str, line: str) -> None:
    assert not_known(question, a_mind(), language=language) == (line,)


@pytest.mark.parametrize("question", ["How much is a room?", "Good evening!", "Where can I sleep?", "Are you well?"])
def test_what_asks_for_no_memory_is_left_alone(question: str) -> None:
    assert not_known(question, a_mind(), language="en") == ()


def test_who_tells_of_somebody_asks_nothing() -> None:
    assert not_known("My brother Tarquin was lost last winter.", a_mind(), language="en") == ()
    assert not_known("Mein Bruder Korbinian ist verschollen.", a_mind(), language="de") == ()


@pytest.mark.parametrize(("question", "language"), [("Tell me about Hesper.", "en"), ("Erzähl mir von Hesper.", "de")])
def test_who_wants_to_be_told_of_somebody_does_not_ask_about_himself(question: str, language: str) -> None:
    assert not_known(question, a_mind("Hesper carries wool.", known=["Hesper"]), language=language) == ()
    assert not_known(question, a_mind(), language=language) != ()


def test_what_bears_on_the_question_speaks_for_itself() -> None:
    asked = "What did I tell you about my brother?"
    assert not_known(asked, a_mind(remembered=["Wenna said: He is on Gull Rock."]), language="en") == ()
    assert not_known(asked, a_mind(beside=["My brother is lost."]), language="en") == ()
    assert not_known("Do you know Hesper?", a_mind("Hesper carries wool.", known=["Hesper"]), language="en") == ()


def test_who_is_known_may_be_asked_for_more_than_is_known() -> None:
    mind = a_mind("Captain Hesper carries wool.", known=["Captain Hesper"])
    assert not_known("Why did Captain Hesper murder the mayor?", mind, language="en") == (
        "Mirelle knows nothing more about it.",
    )
    assert not_known("What did Captain Hesper say about me?", mind, language="en") == (UNTOLD,)


def test_what_answers_a_relation_bears_on_it_whatever_its_words() -> None:
    mind = a_mind("Hesper owns the Marigold.", known=["Marigold"], path="Marigold, asks for OWNS")
    assert not_known("Is the Marigold hers, or whose?", mind, language="en") == ()


def test_a_name_that_was_heard_in_talk_is_no_unknown_name() -> None:
    mind = a_mind(remembered=["Wenna said: My brother Aldric is lost."])
    assert not_known("Do you remember Aldric?", mind, language="en") == ()


def test_a_name_is_called_unknown_whatever_it_is_so_nobody_learns_that_there_is_one() -> None:
    told = [not_known(f"Who is {name}?", a_mind(), language="en") for name in ("Velkoreth", "Nobodeth")]
    assert [line[0].split()[-1] for line in told] == ["Velkoreth.", "Nobodeth."]
