"""The latency gate compares ratios with a baseline."""

from __future__ import annotations

import json

import pytest

from benchmarks import gate
from benchmarks.gate import Limit, Verdict, fastest_ratio, read_limits, stalled_share, verdicts, write_limits
from glyphoxa.domain.errors import Corrupt, NotFound

LIMIT = Limit(ratio=1.05, tolerance=0.1, meaning="ours to bare")


def test_a_ratio_above_the_accepted_one_and_its_tolerance_is_a_regression() -> None:
    assert Verdict("first_audio", 1.2, LIMIT).is_regression


@pytest.mark.parametrize("measured", [0.8, 1.05, 1.149])
def test_a_ratio_within_the_tolerance_or_better_passes(measured: float) -> None:
    assert not Verdict("first_audio", measured, LIMIT).is_regression


def test_the_line_of_a_regression_says_what_by_how_much_and_how_to_accept_it() -> None:
    line = str(Verdict("first_audio", 1.26, LIMIT))

    assert line.startswith("REGRESSION first_audio: 1.260")
    assert "+20 %" in line
    assert "python -m benchmarks.gate --update" in line


def test_a_slow_machine_slows_both_arms_and_leaves_the_ratio_as_it_is() -> None:
    ours, bare = [660.0, 700.0, 680.0], [630.0, 670.0, 650.0]

    quiet = fastest_ratio(ours, bare)
    busy = fastest_ratio([ms * 3 for ms in ours], [ms * 3 for ms in bare])

    assert quiet is not None
    assert busy == pytest.approx(quiet)


def test_stalls_of_either_arm_do_not_move_the_ratio() -> None:
    assert fastest_ratio([1_660, 662, 2_400, 1_658], [1_630, 1_631, 632, 1_900]) == pytest.approx(1.05, abs=0.01)


def test_turn_that_ended_too_early_does_not_move_the_ratio() -> None:
    bare = [646.0, 626, 627, 606, 627, 523, 622]
    assert fastest_ratio([596, 593, 597, 601, 585, 595, 598], bare) == pytest.approx(0.98, abs=0.01)


def test_a_delay_in_every_turn_moves_the_ratio() -> None:
    assert fastest_ratio([780, 782, 2_400], [630, 1_631, 632]) == pytest.approx(1.24, abs=0.01)


def test_a_stall_in_some_turns_is_a_regression_that_the_fastest_turn_does_not_show() -> None:
    ours, bare = [660.0, 3_700.0, 660.0, 3_700.0, 660.0, 3_700.0, 660.0], [630.0] * 7
    share = stalled_share(ours, bare, stall_ms=gate.STALL_MS)

    assert fastest_ratio(ours, bare) == pytest.approx(1.05, abs=0.01)
    assert Verdict("stalls", share, gate.KNOWN[gate.STALLS]).is_regression


def test_a_turn_that_is_never_answered_is_a_stall_and_one_stall_of_the_machine_is_none() -> None:
    limit = gate.KNOWN[gate.STALLS]

    once = Verdict("stalls", stalled_share([660, None, *[660] * 5], [630] * 7, stall_ms=1_500), limit)
    twice = Verdict("stalls", stalled_share([None, None, *[660] * 5], [630] * 7, stall_ms=1_500), limit)

    assert not once.is_regression and str(once).startswith("ok stalls: 0.143 (accepted 0.000 + 0.200)")
    assert twice.is_regression
    assert stalled_share([3_000] * 3, [2_000] * 3, stall_ms=1_500) == 0  # the machine is slow


def test_a_turn_without_sound_takes_its_neighbour_out() -> None:
    assert fastest_ratio([660, None, 660], [600, 10, 600]) == pytest.approx(1.1)


def test_too_few_answers_are_no_measurement() -> None:
    assert fastest_ratio([660, None, None], [600, 600, 600]) is None


def test_an_updated_baseline_keeps_its_tolerances_and_accepts_what_was_measured(tmp_path) -> None:
    path = tmp_path / "baseline.json"

    write_limits(path, {"first_audio": 1.2345}, {"first_audio": LIMIT})

    limits = read_limits(path)
    assert limits == {"first_audio": Limit(1.234, 0.1, "ours to bare")}
    assert not any(verdict.is_regression for verdict in verdicts({"first_audio": 1.2345}, limits))


def test_a_baseline_about_other_things_is_refused() -> None:
    with pytest.raises(NotFound, match="names_growth"):
        verdicts({"first_audio": 1.0, "names_growth": 1.1}, {"first_audio": LIMIT})


def test_a_missing_or_broken_baseline_says_how_to_make_one(tmp_path) -> None:
    with pytest.raises(NotFound, match="--update"):
        read_limits(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps({"first_audio": 1.0}))
    with pytest.raises(Corrupt, match="--update"):
        read_limits(broken)


def test_the_committed_baseline_limits_everything_the_gate_measures() -> None:
    assert set(read_limits(gate.BASELINE)) == set(gate.KNOWN)


def test_a_regression_is_there_in_each_run(capsys) -> None:
    assert gate.judge([lambda: {"first_audio": 1.3}], {"first_audio": LIMIT}) == {"first_audio"}
    printed = capsys.readouterr()
    assert printed.out.count("REGRESSION") == 1
    assert printed.err.count("above the limit") == gate.RUNS


def test_what_disturbs_one_run_is_no_regression() -> None:
    runs = iter([1.3, 1.06])

    assert gate.judge([lambda: {"first_audio": next(runs)}], {"first_audio": LIMIT}) == set()
    assert next(runs, None) is None


def test_a_part_that_passes_is_measured_once() -> None:
    runs = iter([1.06])

    assert gate.judge([lambda: {"first_audio": next(runs)}], {"first_audio": LIMIT}) == set()


def test_the_gate_refuses_a_baseline_about_other_things_before_it_measures(tmp_path, capsys) -> None:
    path = tmp_path / "baseline.json"
    write_limits(path, {"first_audio": 1.05}, {"first_audio": LIMIT})

    assert gate.main(["--baseline", str(path)]) == 2
    assert "names_growth" in capsys.readouterr().err
