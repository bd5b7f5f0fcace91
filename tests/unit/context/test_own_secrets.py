"""To which of an NPC's own secrets a question comes."""

from __future__ import annotations

import pytest

from glyphoxa.context.facts import OwnSecret, touched, without, words_of
from glyphoxa.domain.ids import FactId
from glyphoxa.domain.knowledge import RecalledFact
from glyphoxa.recall.terms import Terms

TERMS = Terms("en")
TEXT = "Hob lets smugglers through the north gate each night."
STANDING = "Hob guards the north gate. The gate closes at dusk."


@pytest.mark.parametrize(
    ("question", "is_touched"),
    [
        ("When does the gate close?", False),
        ("What lies beyond the north gate?", False),
        ("Who passes the gate at night?", True),
        ("Do you know any smugglers?", True),
    ],
)
def test_a_question_for_ones_place_comes_to_no_secret_of_it(question: str, is_touched: bool) -> None:
    secret = OwnSecret(RecalledFact(FactId("f"), TEXT), words_of(TEXT, TERMS))
    secrets = without([secret], words_of(STANDING, TERMS))
    found = touched(secrets, question, just_heard="", terms=TERMS, own_names=words_of("Hob", TERMS))
    assert [one.text for one in found] == [TEXT] * is_touched


@pytest.mark.parametrize(
    ("question", "goes_on"),
    [
        ("And who paid them?", True),
        ("Why?", True),
        ("Are you sure?", True),
        ("Since when?", True),
        ("Has my brother Joren been here?", False),
        ("What did I say about my horse's leg?", False),
        ("Who are you?", False),
        ("Where did you buy that splendid hat of yours?", False),
    ],
)
def test_only_a_question_that_points_back_goes_on_with_a_secret(question: str, goes_on: bool) -> None:
    secret = OwnSecret(RecalledFact(FactId("f"), TEXT), words_of(TEXT, TERMS))
    just_heard = "Tamsin says: Do you let smugglers in?"
    found = touched([secret], question, just_heard=just_heard, terms=TERMS, own_names=words_of("Hob", TERMS))
    assert [one.text for one in found] == [TEXT] * goes_on


def test_a_secret_that_has_no_words_of_its_own_is_touched_by_those_it_has() -> None:
    secret = OwnSecret(RecalledFact(FactId("f"), "The north gate."), words_of("The north gate.", TERMS))
    assert without([secret], words_of(STANDING, TERMS)) == [secret]
