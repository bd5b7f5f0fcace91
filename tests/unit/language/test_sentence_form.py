"""The object of a question, and whether it refers to the past, by its words."""

from __future__ import annotations

from itertools import pairwise

import pytest

from glyphoxa.language.new_names import names_in
from glyphoxa.language.sentence_form import AskKind, question_of


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Do you remember my brother?", "en"),
        ("What did I tell you about the mill?", "en"),
        ("Mirelle, what does my brother wear?", "en"),
        ("Have you ever seen the queen?", "en"),
        ("Tell me Dorrick's secret.", "en"),
        ("Weißt du noch, wohin er ging?", "de"),
        ("Was hat dir Korbinian erzählt?", "de"),
        ("Wie heißt meine Lehrerin?", "de"),
        ("You owe me three crowns, don't you?", "en"),
        ("So you sold us the map, remember?", "en"),
        ("Du schuldest mir noch drei Taler, nicht wahr?", "de"),
        ("Du hast unsere Karte, oder?", "de"),
    ],
)
def test_a_question_may_ask_for_what_somebody_remembers_or_was_told(question: str, language: str) -> None:
    assert question_of(question, language).has(AskKind.MEMORY)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("How much is a room?", "en"),
        ("Where can I sleep?", "en"),
        ("How do I get to the mill?", "en"),
        ("Good evening, how are you?", "en"),
        ("Was kostet ein Bett bei dir?", "de"),
        ("Wo kann ich schlafen?", "de"),
        ("Guten Abend, wie geht es dir?", "de"),
        ("A fine day, isn't it?", "en"),
        ("We should go, right?", "en"),
        ("Wir sollten gehen, oder?", "de"),
        ("Ein schöner Tag, nicht wahr?", "de"),
        ("Que dit ma mère ?", "fr"),
    ],
)
def test_ordinary_questions_and_other_languages_ask_for_no_memory(question: str, language: str) -> None:
    assert not question_of(question, language).has(AskKind.MEMORY)


def test_a_question_may_be_about_who_asks() -> None:
    assert question_of("How much do I owe?", "en").has(AskKind.ASKER)
    assert question_of("Was schulde ich?", "de").has(AskKind.ASKER)
    assert not question_of("How much does he owe?", "en").has(AskKind.ASKER)


@pytest.mark.parametrize(
    ("question", "language", "names"),
    [
        ("Who is Tarquin Fell?", "en", ["Tarquin Fell"]),
        ("Have you seen Jorund's dog on Monday?", "en", ["Jorund"]),
        ("Where is the mill?", "en", []),
        ("Silas Thorne knows Edda the Grey, does he not?", "en", ["Silas Thorne", "Edda the Grey"]),
        ("Captain Hesper sails at Christmas.", "en", ["Captain Hesper"]),
        ("Well, did you see the Red Dragon?", "en", ["Red Dragon"]),
        ("Wer ist Tarquin?", "de", ["Tarquin"]),
        ("Was hat die Katze im Garten gefressen?", "de", []),
        ("Hat Bruder Heiko einen Brief dagelassen?", "de", ["Bruder Heiko"]),
        ("Gibt Heiko Brot an die Grauen Brüder?", "de", ["Heiko", "Grauen Brüder"]),
        ("Wo wohnt meine Schwester Ilse?", "de", ["Ilse"]),
        ("Was liegt in meinem Kupferkessel?", "de", []),
    ],
)
def test_names_within_a_question_are_found(question: str, language: str, names: list[str]) -> None:
    assert names_in(question, language=language) == names


@pytest.mark.parametrize(
    "text",
    [
        "What happened last time?",
        "do you remember the tavern",
        "Previously, on the road",
        "that was years ago",
        "when we met you at the gate",
        "Yesterday you were kinder.",
        "You said it was cursed",
    ],
)
def test_references_to_the_past_are_heard(text: str) -> None:
    assert question_of(text, "en").has(AskKind.PAST)


@pytest.mark.parametrize(
    "text",
    ["", "Good evening", "the last door on the left", "what time is it", "a pagoda", "agony", "the party started"],
)
def test_the_present_is_no_reference_to_the_past(text: str) -> None:
    assert not question_of(text, "en").has(AskKind.PAST)


@pytest.mark.parametrize("text", ["Erinnerst du dich?", "Weißt du noch, damals?", "das war vor einer Woche", "gestern"])
def test_german_references_to_the_past_are_heard_at_a_german_table(text: str) -> None:
    assert question_of(text, "de").has(AskKind.PAST)
    assert not question_of(text, "en").has(AskKind.PAST)


def test_a_partial_that_grows_still_refers_to_the_past() -> None:
    said = "do you remember what Eldrinax said in Ironhold"
    partials = [said[:end] for end in range(len(said) + 1) if said[end : end + 1] in ("", " ")]
    heard = [question_of(partial, "en").has(AskKind.PAST) for partial in partials]
    assert all(after >= before for before, after in pairwise(heard))
    assert heard[-1]
