"""The pages of `docs/reference/` are what their generator writes, and their examples are valid commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from glyphoxa.cli.main import EXAMPLES, GROUPS, _options
from tests.support.reference import REFERENCE, written

VERBS = {verb: EXAMPLES[verb] for rows in GROUPS.values() for verb in rows}
CODE = re.MULTILINE | re.DOTALL
CONFIGURATION = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text("utf-8")


@pytest.mark.parametrize("path", written(), ids=lambda path: path.name)
def test_generated_page_equals_its_generator(path: Path) -> None:
    assert path.read_text("utf-8") == written()[path], "run: python -m tests.support.reference"


@pytest.mark.parametrize("verb", VERBS)
def test_example_of_a_verb_is_a_valid_command(verb: str) -> None:
    words = shlex.split(VERBS[verb])
    assert words[0] == verb
    assert _options(words).verb == verb


def test_command_line_page_lists_every_verb_once() -> None:
    page = (REFERENCE / "command-line.md").read_text("utf-8")
    assert re.findall(r"^### glyphoxa (\w+)$", page, re.MULTILINE) == list(VERBS)


def commands(text: str) -> list[str]:
    """The commands of a document: lines of its blocks without their comments, and those within a sentence."""
    text = text.replace("\\\n", "")
    blocks = "".join(re.findall(r"^```\n(.*?)^```$", re.sub(r"^```\w+\n.*?^```$", "", text, flags=CODE), CODE))
    lines = [line.partition("  #")[0].strip() for line in blocks.splitlines()]
    found = [match[1] for line in lines if (match := re.search(r"(?:^|table |\.\.\. )glyphoxa ([a-z-].*)$", line))]
    return [*found, *re.findall(r"`glyphoxa ([a-z][^`]*)`", re.sub(r"^```.*?^```$", "", text, flags=CODE))]


@pytest.mark.parametrize("command", dict.fromkeys(commands(CONFIGURATION)))
def test_command_of_the_configuration_guide_is_valid(command: str) -> None:
    words = shlex.split(command)
    assert _options(words).verb == words[0]


def test_configuration_guide_shows_commands() -> None:
    assert len(commands(CONFIGURATION)) > 25
