"""The figures of the barge-in benchmark."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.barge_in import CutOff, figures
from glyphoxa.domain.turn import Outcome, Stage
from tests.support.builders import a_turn_record

RECORD = a_turn_record(Outcome.INTERRUPTED, stages={Stage.BARGE_IN: 1_000, Stage.SILENCED: 1_004})


def test_silence_is_counted_from_the_voice_and_beside_it_as_the_turn_has_it() -> None:
    cuts = [CutOff(1_000.0, 1_000.0 + ms, RECORD) for ms in (40, 50, 60)]
    made = figures(cuts)
    assert (made["silenced_p50_ms"], made["recorded_p50_ms"]) == (50.0, 4.0)
    assert made["outcomes"] == {"interrupted": 3}


def test_an_answer_that_was_never_cut_off_counts_as_what_became_of_it() -> None:
    answered = replace(RECORD, outcome=Outcome.ANSWERED, stages={})
    made = figures([CutOff(1_000.0, 6_000.0, answered), CutOff(1_000.0, None, None)])
    assert made["outcomes"] == {"answered": 1, "none": 1}
    assert made["silenced_p50_ms"] == 5_000.0
    assert made["recorded_p50_ms"] is None
