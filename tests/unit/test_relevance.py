"""What is worth its place in a prompt."""

from __future__ import annotations

import pytest

from glyphoxa.context.relevance import bears_on_question, without_call
from glyphoxa.domain.ids import SpeakerId
from glyphoxa.domain.turn import Recalled
from tests.support.builders import SMITH


def said(similarity: float | None, shared_words: int, *, speaker: str = "tamsin") -> Recalled:
    return Recalled("...", "said", speaker_id=SpeakerId(speaker), similarity=similarity, shared_words=shared_words)


@pytest.mark.parametrize(("similarity", "shared"), [(0.5, 0), (0.3, 1), (None, 1)])
def test_near_in_meaning_or_words_is_kept(similarity: float | None, shared: int) -> None:
    assert bears_on_question(said(similarity, shared), npc=SMITH)


@pytest.mark.parametrize(("similarity", "shared"), [(0.4, 0), (0.1, 1), (None, 0)])
def test_what_only_happens_to_be_found_is_left_out(similarity: float | None, shared: int) -> None:
    assert not bears_on_question(said(similarity, shared), npc=SMITH)


def test_an_npcs_own_words_must_really_be_about_it() -> None:
    assert not bears_on_question(said(0.9, 1, speaker=SMITH), npc=SMITH)
    assert bears_on_question(said(0.9, 2, speaker=SMITH), npc=SMITH)


def test_the_name_that_is_called_is_no_part_of_the_question() -> None:
    assert without_call("Grimjaw, do you know Mirelle?", "Grimjaw") == "do you know Mirelle?"
    assert without_call("How is my blade, Grimjaw?", "Grimjaw") == "How is my blade,"
