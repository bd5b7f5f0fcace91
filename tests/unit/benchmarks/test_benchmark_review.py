from __future__ import annotations

from typing import Any

import pytest

from benchmarks.review import Case, Outcome, cases_of, figures
from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.correction.corrector import Corrector
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer
from glyphoxa.speech.review.doubt import Span

CORRECTOR = Corrector(Gazetteer.build([Entry("Eldrinax", EntityId("e"))]))
GARBLE = Case("ask older knacks now", Span(4, 16), "ask Eldrinax now", is_clean=False)
CLEAN = Case("ask the baker now", Span(8, 13), "ask the baker now", is_clean=True)


def test_only_what_the_stage_by_sound_has_missed_is_asked_about() -> None:
    pairs = [("eldrinaks", "Eldrinax"), ("some bread", "Eldrinax")]
    [case] = cases_of(pairs, [], CORRECTOR, limit=10)
    assert case.text[case.doubtful.start : case.doubtful.end] == "some bread"
    assert "Eldrinax" in case.wanted


def test_in_clean_sentences_one_ordinary_word_is_marked_and_nothing_may_change() -> None:
    first = cases_of([], ["We asked the baker about it.", "It is."], CORRECTOR, limit=10)
    assert first == cases_of([], ["We asked the baker about it.", "It is."], CORRECTOR, limit=10)
    [case] = first
    assert case.is_clean
    assert case.wanted == case.text


@pytest.mark.parametrize(
    ("answer", "result", "verdict"),
    [
        ({"corrected_text": "ask Eldrinax now"}, "ask Eldrinax now", "right"),
        ({"corrected_text": "ask Mirelle now"}, "ask Mirelle now", "wrong"),
        ({"corrected_text": "ask Mirelle now"}, "ask older knacks now", "withheld"),
        ({"corrected_text": "ask Eldrinax now"}, "ask older knacks now", "withheld_right"),
        ({"corrected_text": "ask older knacks now"}, "ask older knacks now", "left"),
        (None, "ask older knacks now", "unanswered"),
    ],
)
def test_every_garble_has_one_verdict(answer: dict[str, Any] | None, result: str, verdict: str) -> None:
    assert Outcome(GARBLE, answer, result, 1.0).verdict == verdict


def test_the_figures_count_garbles_and_clean_sentences_apart() -> None:
    outcomes = [
        Outcome(GARBLE, {"corrected_text": GARBLE.wanted}, GARBLE.wanted, 10.0),
        Outcome(CLEAN, {"corrected_text": CLEAN.text}, CLEAN.text, 20.0),
        Outcome(CLEAN, {"corrected_text": "ask the Baker"}, "ask the Baktar now", 30.0),
    ]
    found = figures(outcomes, model="m")
    assert (found["garbles"], found["right"], found["clean"], found["damaged"]) == (1, 1, 2, 1)
    assert (found["p50_ms"], found["p95_ms"]) == (20, 30)
