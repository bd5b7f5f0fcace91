"""The latency gate compares ratios with a baseline."""

from __future__ import annotations

import json

import pytest

from benchmarks import gate
from benchmarks.gate import Limit, Verdict, fastest_ratio, read_limits, stalled_share, verdicts, write_limits
from glyphoxa.domain.errors import Corrupt, NotFound

LIMIT = Limit(ratio=1.05, tolerance=0.1, meaning="ours to bare")


@pytest.mark.parametrize(("measured", "is_regression"), [(0.8, False), (1.05, False), (1.149, False), (1.2, True)])
def test_a_ratio_above_the_accepted_one_and_its_tolerance_is_a_regression(measured: float, is_regression: bool) -> None:
    assert Verdict("first_audio", measured, LIMIT).is_regression is is_regression


def test_the_line_of_a_regression_says_what_by_how_much_and_how_to_accept_it() -> None:
    line = str(Verdict("first_audio", 1.26, LIMIT))

    assert line.startswith("REGRESSION first_audio: 1.260")
    assert "+20 %" in line
    assert "python -m benchmarks.gate --update" in line


@pytest.mark.parametrize(
    ("ours", "bare", "ratio"),
    [
        ([660, 700, 680], [630, 670, 650], 1.05),
        ([1_980, 2_100, 2_040], [1_890, 2_010, 1_950], 1.05),
        ([1_660, 662, 2_400, 1_658], [1_630, 1_631, 632, 1_900], 1.05),
        ([596, 593, 597, 601, 585, 595, 598], [646, 626, 627, 606, 627, 523, 622], 0.98),
        ([780, 782, 2_400], [630, 1_631, 632], 1.24),
        ([660, None, 660], [600, 10, 600], 1.1),
    ],
    ids=["quiet", "busy", "stalls of either arm", "a turn ended too early", "a delay in every turn", "no sound"],
)
def test_ratio_is_that_of_the_fastest_turns(ours: list[float | None], bare: list[float | None], ratio: float) -> None:
    assert fastest_ratio(ours, bare) == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize(
    ("runs", "regressions"), [([1.3, 1.3, 1.3], {"first_audio"}), ([1.3, 1.06], set()), ([1.06], set())]
)
def test_a_part_is_measured_until_it_passes_at_most_three_times(
    runs: list[float], regressions: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    left = iter(runs)
    assert gate.judge([lambda: {"first_audio": next(left)}], {"first_audio": LIMIT}) == regressions
    assert next(left, None) is None
    assert capsys.readouterr().err.count("above the limit") == runs.count(1.3)


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


def test_too_few_answers_are_no_measurement() -> None:
    assert fastest_ratio([660, None, None], [600, 600, 600]) is None


def test_an_updated_baseline_keeps_its_tolerances_and_accepts_what_was_measured(tmp_path) -> None:
    path = tmp_path / "baseline.json"

    write_limits(path, {"first_audio": 1.2345}, {"first_audio": LIMIT})

    limits = read_limits(path)
    assert limits == {"first_audio": Limit(1.234, 0.1, "ours to bare")}
    assert not any(verdict.is_regression for verdict in verdicts({"first_audio": 1.2345}, limits))


def test_a_missing_or_broken_baseline_says_how_to_make_one(tmp_path) -> None:
    with pytest.raises(NotFound, match="--update"):
        read_limits(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps({"first_audio": 1.0}))
    with pytest.raises(Corrupt, match="--update"):
        read_limits(broken)


def test_the_committed_baseline_limits_everything_the_gate_measures() -> None:
    assert set(read_limits(gate.BASELINE)) == set(gate.KNOWN)


def test_the_gate_refuses_a_baseline_about_other_things_before_it_measures(tmp_path, capsys) -> None:
    path = tmp_path / "baseline.json"
    write_limits(path, {"first_audio": 1.05}, {"first_audio": LIMIT})

    assert gate.main(["--baseline", str(path)]) == 2
    assert "names_growth" in capsys.readouterr().err
