"""The pages of `docs/reference/` are what their generator writes, and their examples are valid commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from glyphoxa.cli.main import _options, commands
from tests.support.reference import REFERENCE, written

VERBS = {verb: command.example for verb, (_, command) in commands().items()}


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
    assert re.findall(r"^### glyphoxa ([\w-]+)$", page, re.MULTILINE) == list(VERBS)
