"""How an evening ends: the checks that decide the exit code, and the four commands."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from demo.evening import LOCAL, Run, print_next_steps, report_checks
from demo.report import DemoCheck

DEMO = Path(__file__).parents[3] / "demo"


def test_exit_code_is_0_when_all_checks_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_checks([DemoCheck("names are recognised", ()), DemoCheck("nothing leaks", ())]) == 0
    assert capsys.readouterr().out.strip() == "All 2 checks passed."


def test_each_failed_check_is_one_line_and_the_exit_code_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    checks = [
        DemoCheck("names are recognised", ()),
        DemoCheck("it is remembered", ("x" * 300,)),
        DemoCheck("nothing leaks", ("one", "two", "three", "four")),
    ]
    assert report_checks(checks) == 1
    lines = capsys.readouterr().out.strip().splitlines()
    assert [line.split(":")[1].strip() for line in lines] == ["it is remembered", "nothing leaks"]
    assert lines[1].endswith("one; two; 2 more in evening.json")


def test_the_demo_ends_with_four_commands_that_can_be_copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(DEMO / "evening.yaml", tmp_path / "my out", DEMO / "settings.yaml", LOCAL)
    print_next_steps(run, tmp_path / "my out" / "campaign.yaml")
    told = capsys.readouterr().out
    assert ":7860/desk/sessions" in told
    play, desk, wrap_up, begin, serve = [shlex.split(line) for line in told.splitlines() if line.startswith("     ")]
    assert play == ["make", "serve"]
    assert desk[1:4] == ["serve", "--open", "--new"]
    assert desk[-1] == str(tmp_path / "my out" / "campaign.yaml"), "a path with a space is one word"
    assert wrap_up[1:] == ["wrap-up", *desk[4:]]
    assert begin[1:3] == ["campaign", "new"]
    assert serve[1:3] == ["serve", "--open"]
    assert begin[-1] == serve[-1]


def test_commands_name_what_is_below_the_working_directory_by_its_short_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    print_next_steps(
        Run(DEMO / "evening.yaml", tmp_path / "out", DEMO / "settings.yaml", LOCAL), tmp_path / "out" / "campaign.yaml"
    )
    assert "--campaign out/campaign.yaml" in capsys.readouterr().out
