from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from demo.console import Programme
from demo.evening import LOCAL, Run, say_how_to_open_the_desk
from glyphoxa.config.campaign_file import read_campaign

DEMO = Path(__file__).parents[3] / "demo"


def test_the_demo_ends_with_a_command_that_opens_the_desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = read_campaign(DEMO / "campaign.yaml").campaign
    run = Run(DEMO / "evening.yaml", tmp_path / "my out", DEMO / "settings.yaml", LOCAL)
    say_how_to_open_the_desk(run, tmp_path / "my out" / "campaign.yaml", Programme(campaign))
    told = capsys.readouterr().out
    assert "/desk" in told
    command = shlex.split(told.strip().splitlines()[-1])
    assert command[1:3] == ["serve", "--open"]
    assert command[-1] == str(tmp_path / "my out" / "campaign.yaml"), "a path with a space is one word"
