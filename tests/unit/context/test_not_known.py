"""What a prompt says where memory is silent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from glyphoxa.context.repairs import InMind, not_known
from glyphoxa.domain.ids import FactId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import RecalledFact, RecalledUtterance

UNTOLD = "Nobody has told Mirelle anything about that."


def a_mind(
    *facts: str,
    remembered: Sequence[str] = (),
    own: Sequence[str] = (),
    talk: Sequence[str] = (),
    known: Sequence[str] = (),
    path: str = "",
) -> InMind:
    return InMind(
        "Mirelle",
        facts=[RecalledFact(text, FactId("f"), path=path) for text in facts],
        remembered=[*(said(text) for text in remembered), *(said(text, by="Mirelle") for text in own)],
        talk=talk,
        beside=("Mirelle keeps the Salted Eel, where a room costs four pennies.",),
        is_known=lambda name: name in known,
        asker="Wenna",
    )


def said(text: str, *, by: str = "Wenna", similarity: float | None = None) -> RecalledUtterance:
    by, text = text.split(" said: ") if " said: " in text else (by, text)
    return RecalledUtterance(
        UtteranceId("u"),
        SessionId("s"),
        SpeakerId(by),
        by,
        text,
        at_ms=None,
        is_own=by == "Mirelle",
        similarity=similarity,
    )


def sentences(question: str, mind: InMind | None = None, *, language: str = "en") -> tuple[str, ...]:
    return not_known(question, mind or a_mind(), language=language).facts


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
    assert sentences(question, language=language) == (line,)


@pytest.mark.parametrize("question", ["How much is a room?", "Good evening!", "Where can I sleep?", "Are you well?"])
def test_what_asks_for_no_memory_is_left_alone(question: str) -> None:
    assert sentences(question, a_mind(), language="en") == ()


def test_who_tells_of_somebody_asks_nothing() -> None:
    assert sentences("My brother Tarquin was lost last winter.", a_mind(), language="en") == ()
    assert sentences("Mein Bruder Korbinian ist verschollen.", a_mind(), language="de") == ()


@pytest.mark.parametrize(("question", "language"), [("Tell me about Hesper.", "en"), ("Erzähl mir von Hesper.", "de")])
def test_who_wants_to_be_told_of_somebody_does_not_ask_about_himself(question: str, language: str) -> None:
    assert sentences(question, a_mind("Hesper carries wool.", known=["Hesper"]), language=language) == ()
    assert sentences(question, a_mind(), language=language) != ()


def test_what_bears_on_the_question_speaks_for_itself() -> None:
    asked = "What did I tell you about my brother?"
    assert sentences(asked, a_mind(remembered=["My brother is on Gull Rock."]), language="en") == ()
    assert sentences(asked, a_mind(talk=["My brother is lost."]), language="en") == ()
    assert sentences("Do you know Hesper?", a_mind("Hesper carries wool.", known=["Hesper"]), language="en") == ()


def test_who_is_known_may_be_asked_for_more_than_is_known() -> None:
    mind = a_mind("Captain Hesper carries wool.", known=["Captain Hesper"])
    assert sentences("Why did Captain Hesper murder the mayor?", mind, language="en") == (
        "Mirelle knows nothing more about it.",
    )
    assert sentences("What did Captain Hesper say about me?", mind, language="en") == (UNTOLD,)


def test_what_answers_a_relation_bears_on_it_whatever_its_words() -> None:
    mind = a_mind("Hesper owns the Marigold.", known=["Marigold"], path="Marigold, asks for OWNS")
    assert sentences("Is the Marigold hers, or whose?", mind, language="en") == ()


def test_a_name_that_was_heard_in_talk_is_no_unknown_name() -> None:
    mind = a_mind(remembered=["Wenna said: My brother Aldric is lost."])
    assert sentences("Do you remember Aldric?", mind, language="en") == ()


def test_a_name_is_called_unknown_whatever_it_is_so_nobody_learns_that_there_is_one() -> None:
    told = [sentences(f"Who is {name}?", a_mind(), language="en") for name in ("Velkoreth", "Nobodeth")]
    assert [line[0].split()[-1] for line in told] == ["Velkoreth.", "Nobodeth."]


@pytest.mark.parametrize(
    ("question", "remembered", "language"),
    [
        ("Wo lebt unsere Mutter?", "Ich habe Angst vor Feuer.", "de"),
        ("Was hast du gestern Nacht gesehen?", "Ich träume jede Nacht von einem Hirsch.", "de"),
        ("Warum hat dich der König besucht?", "Ich habe Angst vor Feuer.", "de"),
        ("What do you know of the Crimson Hand?", "My hand hurts since Tuesday.", "en"),
        ("Was weißt du über die Rote Hand?", "Meine Hand tut weh.", "de"),
    ],
)
def test_what_was_said_of_something_else_does_not_bear_on_it(question: str, remembered: str, language: str) -> None:
    assert sentences(question, a_mind(remembered=[remembered]), language=language) != ()


@pytest.mark.parametrize(
    ("question", "remembered", "language"),
    [
        ("What bit me?", "A cat bit me.", "en"),
        ("How much do I owe you?", "I owe you nine pennies.", "en"),
        ("Was ist mit meinem Kessel?", "Der Henkel von meinem Kupferkessel ist ab.", "de"),
        ("Woran erkennt man meinen Bruder Jost?", "Jost hat eine Narbe am Kinn.", "de"),
    ],
)
def test_a_word_in_common_is_enough_whatever_its_form(question: str, remembered: str, language: str) -> None:
    assert sentences(question, a_mind(remembered=[remembered]), language=language) == ()


def test_what_means_the_same_bears_on_it_in_the_language_of_the_embeddings() -> None:
    mare = said("Her name is Juniper.", similarity=0.6)
    mind = replace(a_mind(), remembered=[mare])
    assert sentences("What is my horse called?", mind) == ()
    assert sentences("Wie heißt mein Pferd?", mind, language="de") != ()


def test_what_others_said_of_themselves_is_nothing_about_who_asks() -> None:
    bitten = "Tobin said: A cat bit me on Tuesday."
    assert sentences("What bit me on Tuesday?", a_mind(remembered=[bitten])) == (UNTOLD,)
    assert sentences("What bit me on Tuesday?", a_mind(remembered=["Tobin said: I saw a cat that bit Wenna."])) == ()
    assert sentences("Where does our mother live?", a_mind(remembered=["Tobin said: My mother lives in Lorn."])) == ()


def test_what_it_said_is_told_by_its_own_words_and_by_nothing_else() -> None:
    asked = "You promised me a free room, remember?"
    assert sentences(asked) == ("Mirelle never said that.",)  # that it lets rooms is no promise
    assert sentences(asked, a_mind(remembered=["I want a room."])) == ("Mirelle never said that.",)
    assert sentences(asked, a_mind(own=["You shall have the room for nothing."])) == ()
    assert sentences(asked, a_mind(talk=["The room is yours."])) == ()


@pytest.mark.parametrize(
    ("question", "language"),
    [("Did Korvald tell you about my brother?", "en"), ("Hat dir Korvald von meinem Bruder erzählt?", "de")],
)
def test_a_yes_is_not_asked_of_a_model_where_nothing_is_known(question: str, language: str) -> None:
    assert not_known(question, a_mind(), language=language).replies
    assert not_known(question, a_mind(known=["Korvald"]), language=language).replies


def test_what_is_said_without_thinking_fits_what_is_missing() -> None:
    replies = {asked: not_known(asked, a_mind(), language="en").replies for asked in ("Who is Tarquin?", "You lied!")}
    assert all("Tarquin" in reply for reply in replies["Who is Tarquin?"])
    assert "I never said that." in replies["You lied!"]


@pytest.mark.parametrize(
    "question", ["I will keep your secret.", "Is Captain Hesper kind?", "I remember my first voyage."]
)
def test_what_does_not_ask_of_the_past_is_left_to_the_model(question: str) -> None:
    mind = a_mind("Captain Hesper carries wool.", known=["Captain Hesper"])
    assert not_known(question, mind, language="en").replies == ()


def test_a_word_of_the_npcs_own_name_may_be_what_is_asked_for() -> None:
    mind = replace(a_mind(remembered=["Your father fell at the ford."]), name="Father Ulric")
    assert sentences("Where did my father fall?", mind) == ()
    assert sentences("Where did my sister drown, Ulric?", mind) == (
        "Nobody has told Father Ulric anything about that.",
    )


@pytest.mark.parametrize(
    ("question", "language", "lines"),
    [
        ("Wie viel kostet ein Bett für die Nacht?", "en", ()),
        ("Was hat mir der König gestern erzählt?", "en", ()),
        ("Hast du Joren hier gesehen?", "en", ("Mirelle has never heard of Joren.",)),
        ("How much is a bed for the night?", "de", ()),
    ],
)
def test_a_question_in_another_language_has_its_own_nouns_and_is_not_judged_by_words(
    question: str, language: str, lines: tuple[str, ...]
) -> None:
    assert sentences(question, language=language) == lines
