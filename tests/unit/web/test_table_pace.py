"""How fast a table answered, as its page tells it."""

from __future__ import annotations

import pytest

from glyphoxa.domain.events import MemoryHealth
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn_record import Outcome, Stage, TurnRecord
from glyphoxa.web.desk.live import memory_in_words, pace
from tests.support.builders import a_turn_record


def a_turn(n: int, first_audio_ms: int | None) -> TurnRecord:
    stages = {Stage.SPEECH_END: 1_000}
    if first_audio_ms is not None:
        stages[Stage.FIRST_AUDIO] = 1_000 + first_audio_ms
    outcome = Outcome.NOT_ADDRESSED if first_audio_ms is None else Outcome.ANSWERED
    return a_turn_record(outcome, id=TurnId(f"t{n}"), stages=stages)


def test_pace_has_median_and_95th_percentile() -> None:
    shown = pace([a_turn(n, 10 * n) for n in range(1, 101)] + [a_turn(0, None)])
    assert (shown["n"], shown["n_timed"]) == (101, 100)
    assert (shown["median"], shown["most"], shown["longest"]) == ("0.51 s", "0.95 s", "1.00 s")
    assert len(shown["bars"]) == 100
    assert [bar["height"] for bar in shown["bars"]] == sorted(bar["height"] for bar in shown["bars"])
    assert all(bar["y"] + bar["height"] <= shown["height"] + 1 for bar in shown["bars"])
    assert [n for _, n in shown["outcomes"]] == [100, 1]


@pytest.mark.parametrize(("times", "median"), [([], "unknown"), ([300], "0.30 s"), ([0], "0.00 s")])
def test_few_answers_have_a_pace_too(times: list[int], median: str) -> None:
    assert pace([a_turn(n, ms) for n, ms in enumerate(times)])["median"] == median


def test_memory_that_is_away_says_that_nothing_is_lost() -> None:
    told = memory_in_words(MemoryHealth("degraded", since_ms=0, why="connection refused", waiting=7))
    assert "connection refused" in told
    assert "Utterances kept on disk until then: 7" in told
    assert memory_in_words(MemoryHealth("off")) == "This table has no long-term memory."
