"""Lines for a terminal, broken between words; when piped, each is one line, however long."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from glyphoxa.dm.lines import IndentedLine, plain

_STEP = 2
"""Cells that a line stands further to the right than the one it belongs to; so does what is broken off it."""
_LEAST = 24


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
