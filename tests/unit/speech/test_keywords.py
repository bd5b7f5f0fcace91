from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer
from glyphoxa.speech.names.keywords import KeywordSpotter, Spotted

ENTRIES = (
    Entry("Eldrinax", EntityId("mage")),
    Entry("Ironhold", EntityId("town"), aliases=("the old hold",)),
    Entry("Art", EntityId("art")),
)
SPOTTER = KeywordSpotter(Gazetteer.build(ENTRIES))
GERMAN = KeywordSpotter(Gazetteer.build(ENTRIES, language="de"))


def test_named_entities_come_once_in_the_order_of_speech() -> None:
    spotted = SPOTTER.spot("ironhold! Did Eldrinax's men leave Iron Hold, the old hold")
    assert spotted.entity_ids == ("town", "mage")


def test_letters_inside_a_word_are_no_name() -> None:
    assert SPOTTER.spot("the party started") == Spotted((), temporal=False)


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
    assert SPOTTER.spot(text).temporal


@pytest.mark.parametrize(
    "text", ["", "Good evening", "the last door on the left", "what time is it", "a pagoda", "agony"]
)
def test_the_present_is_no_reference_to_the_past(text: str) -> None:
    assert not SPOTTER.spot(text).temporal


@pytest.mark.parametrize("text", ["Erinnerst du dich?", "Weißt du noch, damals?", "das war vor einer Woche", "gestern"])
def test_german_references_to_the_past_are_heard_at_a_german_table(text: str) -> None:
    assert GERMAN.spot(text).temporal
    assert not SPOTTER.spot(text).temporal


def test_a_partial_that_grows_keeps_what_was_found() -> None:
    said = "do you remember what Eldrinax said in Ironhold"
    found = [SPOTTER.spot(said[:end]) for end in range(len(said) + 1) if said[end : end + 1] in ("", " ")]
    for before, after in pairwise(found):
        assert after.entity_ids[: len(before.entity_ids)] == before.entity_ids
        assert after.temporal >= before.temporal
    assert found[-1] == Spotted((EntityId("mage"), EntityId("town")), temporal=True)


@given(st.text())
def test_any_text_can_be_spotted(text: str) -> None:
    spotted = SPOTTER.spot(text)
    assert len(set(spotted.entity_ids)) == len(spotted.entity_ids)
