"""Tables and lines, no wider than the terminal. The one way in which verbs show more than a sentence.

Piped, a table has 100 columns, or as many as `COLUMNS` says. Nothing is cut: a cell is broken between its words. Where
some column has no room for its longest word, each row is shown as lines instead, `heading: cell`, below its first two.
Only a word that is wider than the terminal is broken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Columns
from rich.text import Text

from glyphoxa.dm.lines import IndentedLine, plain

WIDTH_WHEN_PIPED: Final = 100
_GAP: Final = 2
"""Cells of the terminal between two columns."""
_KEPT_WHOLE: Final = 16
"""A column that is no wider, such as one of times, is not broken."""
_LONGEST_WORD: Final = 40
"""A longer one, or a text that is written without spaces, may be broken inside a table."""
_STEP: Final = 2
"""Cells that a line stands further to the right than the one it belongs to; so does what is broken off it."""
_LEAST: Final = 24
_IN_FRONT: Final = 2
"""Cells that stand above the others where a row is shown as lines."""


@dataclass(slots=True)
class PlainTable:
    """A table of plain texts: see `plain`.

    Attributes:
        headings: No heading is shown where all are empty.
        right: Headings of columns that stand to the right.
    """

    headings: Sequence[str]
    right: Sequence[str] = ()
    rows: list[list[Text]] = field(default_factory=list)

    def add_row(self, *cells: str | Text) -> None:
        """Args: cells: A `Text` keeps its colour."""
        self.rows.append([Text(plain(str(cell)), style=cell.style if isinstance(cell, Text) else "") for cell in cells])


def a_table(*headings: str, right: Sequence[str] = ()) -> PlainTable:
    return PlainTable(headings, right)


def show(table: PlainTable, out: TextIO | None = None) -> None:
    """
    Args:
        out: None is standard output.
    """
    to = sys.stdout if out is None else out
    console = _console(to)
    widths = _widths(table, console.width)
    if widths is None:
        _show_lines(_as_lines(table), to, width=console.width)
        return
    shown = Columns(box=None, pad_edge=False, show_header=any(table.headings))
    for heading, width in zip(table.headings, widths, strict=True):
        shown.add_column(
            Text(heading), width=width, overflow="fold", justify="right" if heading in table.right else "left"
        )
    for row in table.rows:
        shown.add_row(*row)
    with console.capture() as written:
        console.print(shown)
    for line in written.get().splitlines():
        print(line.rstrip(), file=to)


def show_lines(lines: Iterable[IndentedLine]) -> None:
    """On a terminal they are broken between words; piped, each is one line, however long."""
    _show_lines(lines, sys.stdout, width=_console(sys.stdout).width if sys.stdout.isatty() else None)


def _console(to: TextIO) -> Console:
    if to.isatty() or "COLUMNS" in os.environ:
        return Console(file=to, highlight=False)
    return Console(file=to, highlight=False, width=WIDTH_WHEN_PIPED)


def _widths(table: PlainTable, room: int) -> list[int] | None:
    """Of each column; None when there is not enough room."""
    columns = [[Text(heading), *cells] for heading, *cells in zip(table.headings, *table.rows, strict=True)]
    wished = [max(cell.cell_len for cell in column) for column in columns]
    words = [max((cell_len(word) for cell in column for word in cell.plain.split()), default=0) for column in columns]
    widths = [
        min(max(wish, 1), max(_KEPT_WHOLE, min(word, _LONGEST_WORD))) for wish, word in zip(wished, words, strict=True)
    ]
    left = room - sum(widths) - _GAP * (len(widths) - 1)
    if left < 0:
        return None
    # Who wishes least is served first, and leaves the rest to the others.
    by_wish = sorted(range(len(widths)), key=lambda at: wished[at] - widths[at])
    for n_served, at in enumerate(by_wish):
        more = min(max(wished[at] - widths[at], 0), left // (len(by_wish) - n_served))
        widths[at], left = widths[at] + more, left - more
    return widths


def _as_lines(table: PlainTable) -> Iterable[IndentedLine]:
    for row in table.rows:
        yield IndentedLine(" ".join(cell.plain for cell in row[:_IN_FRONT] if cell.plain))
        for heading, cell in zip(table.headings[_IN_FRONT:], row[_IN_FRONT:], strict=True):
            if cell.plain:
                yield IndentedLine(f"{heading}: {cell.plain}" if heading else cell.plain, 1)


def _show_lines(lines: Iterable[IndentedLine], to: TextIO, *, width: int | None) -> None:
    for line in lines:
        indent = " " * (_STEP * line.depth)
        text = plain(line.text)
        if width is None:
            print(f"{indent}{text}", file=to)
            continue
        room = max(width - len(indent) - _STEP, _LEAST)
        for nth, part in enumerate(Text(text).wrap(Console(width=room), room)):
            print(f"{indent}{' ' * _STEP if nth else ''}{part.plain.rstrip()}", file=to)
