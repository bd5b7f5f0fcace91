"""Lines for a terminal, broken between words; when piped, each is one line, however long."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

_STEP = 2
"""Cells that a line stands further to the right than the one it belongs to; so does what is broken off it."""
_LEAST = 24
_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Of a terminal, and those that turn round or hold apart what stands behind them, to the end of the line: it would read
otherwise than it was said.
"""


@dataclass(frozen=True, slots=True)
class IndentedLine:
    """
    Attributes:
        depth: How deep it stands below the first.
    """

    text: str
    depth: int = 0


def plain(text: str) -> str:
    """A text in one line, without what a terminal takes for a command: somebody at the table may have typed it."""
    return " ".join(printable(text).split())


def printable(text: str) -> str:
    """The same in as many lines as it has."""
    return _COMMANDS.sub(" ", text)


def show_lines(lines: Iterable[IndentedLine]) -> None:
    console = Console() if sys.stdout.isatty() else None
    for line in lines:
        indent = " " * (_STEP * line.depth)
        text = plain(line.text)
        if console is None:
            print(f"{indent}{text}")
            continue
        width = max(console.width - len(indent) - _STEP, _LEAST)
        for nth, part in enumerate(Text(text).wrap(console, width)):
            print(f"{indent}{' ' * _STEP if nth else ''}{part.plain.rstrip()}")
