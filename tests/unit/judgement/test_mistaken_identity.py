"""An NPC that says somebody else's name for its own, or greets itself."""

from __future__ import annotations

import pytest

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.in_character import takes_itself_for_another
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.sentence_check import SentenceCheck

SERAFINA = Character("Serafina Vale", aliases=("the Grey Lady",), others=("Tamsin", "Oskar Fenn", "Peter Vale"))


def fault(sentence: str, *, so_far: str = "", speaker: str = "Ilvy") -> Fault | None:
    return takes_itself_for_another(sentence, SERAFINA, Asked("What is your name?", speaker, so_far=so_far))


@pytest.mark.parametrize(
    "sentence",
    [
        "My name is Tamsin.",
        "My name's Oskar Fenn, traveller.",
        "They call me Fenn.",
        "I am Tamsin.",
        "I'm Oskar, the smith of this town.",
        "Well, I am Ilvy.",
        "Ich heiße Tamsin.",
        "Ich heisse Oskar.",
        "Mein Name ist Tamsin, und ich bin die Wirtin.",
        "Ich bin Tamsin.",
        "Ich bin der Oskar von der Mühle.",
        "Man nennt mich Fenn.",
    ],
)
def test_the_name_of_somebody_else_is_not_its_own(sentence: str) -> None:
    assert fault(sentence) is Fault.IDENTITY


@pytest.mark.parametrize(
    "sentence",
    [
        "Hello, Serafina!",
        "Good evening, dear Serafina.",
        "Welcome back, Serafina Vale, to the inn.",
        "Thank you, Serafina.",
        "Hallo, Serafina!",
        "Guten Abend, liebe Serafina.",
        "Willkommen, Serafina!",
    ],
)
def test_nobody_greets_itself(sentence: str) -> None:
    assert fault(sentence) is Fault.IDENTITY


def test_a_greeting_that_was_said_as_a_first_clause_is_gone_on_with() -> None:
    assert fault("Serafina!", so_far="Hello,") is Fault.IDENTITY
    assert fault("Serafina is my name.", so_far="Hello,") is None
    assert fault("What will you have?", so_far="Hello, Serafina!") is None


@pytest.mark.parametrize(
    "sentence",
    [
        "My name is Serafina.",
        "I am Serafina Vale, and this is my house.",
        "They call me the Grey Lady.",
        "My name is Vale.",
        "Hello, Tamsin!",
        "Hello, I am Serafina.",
        "Hello, Serafina here.",
        "Welcome to Serafina's house.",
        "I am Tamsin's aunt.",
        "I am fond of Tamsin.",
        "My name is not Tamsin.",
        "I am Tamsin?",
        "Is your name Tamsin?",
        "My name is my own.",
        "Ich bin Tamsin begegnet.",
        "Ich bin Oskar dankbar.",
        "Ich bin Serafina.",
        "Ich heiße Serafina, und das ist Oskar.",
        "Guten Abend, Tamsin.",
        "Willkommen in Serafinas Haus.",
    ],
)
def test_its_own_name_and_the_names_of_others_may_be_said(sentence: str) -> None:
    assert fault(sentence) is None


def test_a_name_that_it_shares_is_its_own_as_well() -> None:
    assert fault("My name is Peter.") is Fault.IDENTITY
    assert fault("My name is Vale.") is None


def test_the_check_of_a_reply_rejects_it() -> None:
    check = SentenceCheck(SERAFINA, Asked("Who are you?", "Tamsin"))
    assert check.decide("My name is Tamsin.").fault is Fault.IDENTITY
    assert check.decide("My name is Serafina.").text == "My name is Serafina."
