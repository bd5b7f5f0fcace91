"""An NPC's own words are no facts: when it is told of them at all."""

from __future__ import annotations

import pytest

from glyphoxa.context.conversation import of_others
from glyphoxa.language.asking import asks_what_it_said, looks_for_own_words
from tests.support.builders import SMITH
from tests.support.recalled import heard, said_itself

ENGLISH = (
    "What did you promise me?",
    "You said six crowns for a dagger!",
    "Smith, didn't you tell me about a tower?",
    "Have you told the guard?",
    "You've never mentioned a brother.",
    "You once swore that you would help.",
    "What have you sworn to me?",
    "Do you remember what you told Hanna?",
    "How much did you say it costs?",
    "Keep your promise.",
    "I have your word on it.",
    "What did we agree on?",
    "When we last spoke, what did I ask?",
    "We had a bargain, did we not? What was our bargain?",
    "What was said about the bell?",
    "I was promised a blade.",
    "What did you actually say about Liora?",
    "Who was it, you said, that stole the tithe box?",
)
NOT_ENGLISH = (
    "",
    "Who stole the tithe box?",
    "What did Liora tell you?",
    "Who told you that?",
    "Did anyone tell you about the theft?",
    "Were you told of the theft?",
    "Weren't you told?",
    "Can you tell me who stole the box?",
    "Would you say that Liora did it?",
    "Tell me about the tower.",
    "What do you say to that?",
    "Do you remember what I told you about my brother?",
    "I told you about my ring. Where is it?",
    "What did Tobin say about the bell?",
    "Do you promise to help?",
    "What are you called?",
    "Did you see Liora?",
    "Did you hear what she said?",
    "They say that you know the way.",
)
GERMAN = (
    "Was hast du mir versprochen?",
    "Du hast gesagt, der Dolch kostet sechs Kronen!",
    "Weißt du noch, was du Hanna erzählt hast?",
    "Ihr habt mir gestern euer Wort gegeben und etwas versprochen.",
    "Habt Ihr das nicht selbst gesagt?",
    "Was sagtest du über die Glocke?",
    "Ihr verspracht mir eine Klinge.",
    "Halte dein Versprechen.",
    "Was ist mit Eurem Wort?",
    "Was haben wir vereinbart?",
    "Worüber haben wir letztes Mal gesprochen?",
    "Was war unsere Abmachung?",
    "Was wurde über die Glocke gesagt?",
)
NOT_GERMAN = (
    "Wer hat die Opferkiste gestohlen?",
    "Hat dir jemand davon erzählt?",
    "Wer hat dir das gesagt?",
    "Hast du gehört, was Tobin gesagt hat?",
    "Wurde dir etwas gesagt?",
    "Was hat Liora versprochen?",
    "Kannst du mir sagen, wer es war?",
    "Erinnerst du dich, was ich dir über meinen Bruder erzählt habe?",
    "Was sagst du dazu?",
    "Hast du Liora gesehen?",
    "Haben wir uns schon getroffen?",
)


@pytest.mark.parametrize(("language", "question"), [*(("en", q) for q in ENGLISH), *(("de-DE", q) for q in GERMAN)])
def test_it_is_asked_what_it_said(language: str, question: str) -> None:
    assert asks_what_it_said(question, language=language)


@pytest.mark.parametrize(
    ("language", "question"), [*(("en-GB", q) for q in NOT_ENGLISH), *(("de", q) for q in NOT_GERMAN)]
)
def test_it_is_asked_something_else(language: str, question: str) -> None:
    assert not asks_what_it_said(question, language=language)


def test_in_a_language_without_words_for_it_its_own_words_stay_away() -> None:
    assert not asks_what_it_said("What did you promise?", language="fr")
    assert not looks_for_own_words("What did you promise?", name="Korvald", language="fr")


@pytest.mark.parametrize(
    ("language", "query", "is_so"),
    [
        ("en", "what I promised Hanna", True),
        ("en", "Korvald said about the blade", True),
        ("en", "did I tell Hanna of the tower", True),
        ("en", "promise to Hanna", True),
        ("en", "my word", True),
        ("en", "tithe box thief", False),
        ("en", "what Hanna said about her brother", False),
        ("en", "what was I told about the theft", False),
        ("de", "was ich Hanna versprochen habe", True),
        ("de", "habe ich Hanna vom Turm erzählt", True),
        ("de", "Was hat Korvald gesagt", True),
        ("de", "Dieb der Opferkiste", False),
        ("de", "was Hanna erzählt hat", False),
    ],
)
def test_its_model_looks_for_what_it_said(language: str, query: str, is_so: bool) -> None:
    assert looks_for_own_words(query, name="Korvald", language=language) is is_so


def test_what_others_said_stays() -> None:
    own = said_itself("It was Liora.", npc=SMITH)
    hers = heard("It was Liora.", by="mirelle")
    assert of_others([own, hers], SMITH) == [hers]
