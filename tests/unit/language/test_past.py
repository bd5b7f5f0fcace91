from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.language.sentence_form import AskKind, question_of


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


@given(st.text())
def test_any_text_can_be_asked(text: str) -> None:
    assert question_of(text, "en").has(AskKind.PAST) in (True, False)
