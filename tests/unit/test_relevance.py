"""What is worth its place in a prompt."""

from __future__ import annotations

import pytest

from glyphoxa.context.relevance import bears_on, without_call
from glyphoxa.domain.ids import SpeakerId
from glyphoxa.domain.turn import Recalled
from tests.support.builders import SMITH

BROTHER = "My brother Thomas was lost near Graumsted."


def said(text: str = BROTHER, *, similarity: float | None = None, speaker: str = "tamsin") -> Recalled:
    return Recalled(f"Tamsin said: {text}", "said", speaker_id=SpeakerId(speaker), similarity=similarity)


@pytest.mark.parametrize(
    ("question", "similarity"),
    [("Where is Joren?", 0.5), ("What of my brothers?", 0.3), ("Do you remember my brother?", None)],
)
def test_near_in_meaning_or_words_is_kept(question: str, similarity: float | None) -> None:
    assert bears_on(question, said(similarity=similarity), npc=SMITH)


@pytest.mark.parametrize(
    ("question", "similarity"),
    [("Where is Joren?", 0.4), ("What of my brother?", 0.1), ("What do you know?", None)],
)
def test_what_only_happens_to_be_found_is_left_out(question: str, similarity: float | None) -> None:
    assert not bears_on(question, said(similarity=similarity), npc=SMITH)


@pytest.mark.parametrize("empty", ["Good evening, Korvald.", "Please tell me everything you know.", "Wait!"])
def test_a_line_that_tells_nothing_is_left_out_however_near(empty: str) -> None:
    assert not bears_on("Good evening, what do you know?", said(empty, similarity=0.9), npc=SMITH)


def test_an_earlier_question_tells_nothing_unless_the_past_is_asked_about() -> None:
    asked = said("Where was my brother Thomas lost?", similarity=0.9)
    assert not bears_on("Where is Thomas?", asked, npc=SMITH)
    assert bears_on("What did I ask about Thomas?", asked, npc=SMITH, asks_of_the_past=True)


def test_an_npcs_own_words_must_really_be_about_it() -> None:
    own = said("I do not know Thomas of Graumsted.", similarity=0.9, speaker=SMITH)
    assert not bears_on("Where is Graumsted?", own, npc=SMITH)
    assert bears_on("Where in Graumsted is Thomas?", own, npc=SMITH)


def test_the_name_that_is_called_is_no_part_of_the_question() -> None:
    assert without_call("Grimjaw, do you know Mirelle?", "Grimjaw") == "do you know Mirelle?"
    assert without_call("How is my blade, Grimjaw?", "Grimjaw") == "How is my blade,"
