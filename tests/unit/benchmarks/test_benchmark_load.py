"""The counts of the load benchmark: dropouts, growth and heard turns."""

from __future__ import annotations

import pytest

from benchmarks.load import Dropouts, Heard, Sample, figures, growth_mb_per_hour
from glyphoxa.domain.ids import NpcId

BRYN, OLAF = NpcId("bryn"), NpcId("olaf")
TWENTY_MS = 960


def test_sound_in_time_has_no_dropout_and_late_sound_has_one() -> None:
    heard = Dropouts()
    for n in range(5):
        heard.sound(BRYN, TWENTY_MS, at_s=n * 0.02)
    heard.sound(BRYN, TWENTY_MS, at_s=0.15)
    assert heard.lasted_ms == [pytest.approx(50)]
    heard.sound(BRYN, TWENTY_MS, at_s=0.17)
    assert len(heard.lasted_ms) == 1


def test_up_to_twenty_milliseconds_are_none_and_do_not_add_up() -> None:
    heard = Dropouts()
    for n in range(10):
        heard.sound(BRYN, TWENTY_MS, at_s=n * 0.035)
    assert heard.lasted_ms == []


def test_the_silence_between_two_answers_is_none_and_each_npc_is_heard_by_itself() -> None:
    heard = Dropouts()
    heard.sound(BRYN, TWENTY_MS, at_s=0)
    heard.ends(BRYN)
    heard.sound(BRYN, TWENTY_MS, at_s=9)
    heard.sound(OLAF, TWENTY_MS, at_s=9.3)
    assert heard.lasted_ms == []


def test_growth_is_that_of_the_time_after_the_beginning() -> None:
    samples = [Sample(float(n), 500 + (n * 10 if n < 20 else 200 + n / 60), 0) for n in range(60)]
    assert growth_mb_per_hour(samples) == pytest.approx(60, abs=1)
    assert growth_mb_per_hour(samples[:3]) is None


def test_without_a_turn_there_are_figures_all_the_same() -> None:
    told = figures(Heard(), [Sample(0, 500, 1), Sample(10, 500, 6)], n_sessions=2, minutes=1)
    assert (told["cpu_percent"], told["cpu_percent_per_session"], told["audio_gaps"]) == (50.0, 25.0, 0)
    assert told["first_audio_p95_ms"] is None
