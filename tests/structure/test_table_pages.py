"""The commands and actions that the guides of the table show are valid."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from glyphoxa.cli.main import parser

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "running-a-table.md").read_text("utf-8")
COMMAND = re.compile(r"^(?:\$ )?glyphoxa ([a-z].*?)(?: +# .*)?$", re.MULTILINE)
ACTION = re.compile(r"`((?:entity|facts|show|transcript|worker|names) ?[a-z]*)(?: [^`]*)?`")


def commands(page: str) -> list[str]:
    """The commands in a page's blocks, without `glyphoxa`."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [command for block in blocks for command in COMMAND.findall(block)]


GUIDES = ("running-a-table.md", "writing-a-campaign.md", "importing.md", "privacy.md")


@pytest.mark.parametrize(
    "command", [command for page in GUIDES for command in commands(page)], ids=lambda command: command[:50]
)
def test_a_command_of_a_block_is_valid(command: str) -> None:
    words = shlex.split(command)
    options, free = parser(words[0]).parse_known_args(words)
    assert (options.verb, free) == (words[0], [])


def test_every_guide_shows_commands() -> None:
    assert len(commands("running-a-table.md")) > 40
    assert len(commands("writing-a-campaign.md")) > 20
    assert len(commands("importing.md")) > 10
    assert len(commands("privacy.md")) == 4


@pytest.mark.parametrize("action", sorted(set(ACTION.findall(GUIDE))))
def test_an_action_of_a_table_exists(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = action.split()
    with pytest.raises(SystemExit) as ended:
        parser(words[0]).parse_args([*words, "--help"])
    assert ended.value.code == 0
    assert f"glyphoxa {action}" in capsys.readouterr().out


def test_every_action_of_the_live_table_is_in_the_guide(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser("table").parse_args(["table", "--help"])
    actions = re.findall(r"^    ([a-z]+) ", capsys.readouterr().out.partition("actions:")[2], re.MULTILINE)
    shown = {command.split()[1] for command in commands("running-a-table.md") if command.startswith("table ")}
    assert set(actions) == shown
