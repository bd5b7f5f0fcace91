"""Tables for a terminal; when piped, every row is one line, however long."""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from glyphoxa.dm.lines import plain

_WIDTH_WHEN_PIPED = 10_000
_READ = ("fact", "said", "what", "relation", "attributes", "related to", "heard", "kept")
"""Headings of columns that hold sentences."""
_LEAST_TO_READ = 24
"""Cells of the terminal; so is the gap between two columns."""
_GAP = 2


class PlainTable(Table):
    """A table of plain lines: see `plain`."""

    def add_row(self, *cells: str | Text) -> None:  # type: ignore[override]  # nothing else is shown
        super().add_row(*(_plain(cell) for cell in cells))


def a_table(*headings: str) -> PlainTable:
    table = PlainTable(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _plain(cell: str | Text) -> str | Text:
    return plain(cell) if isinstance(cell, str) else Text(plain(cell.plain), style=cell.style)


def show(table: Table, out: TextIO | None = None) -> None:
    """
    Args:
        out: None is standard output.
    """
    to = sys.stdout if out is None else out
    if to.isatty():
        console = Console(file=to)
        _make_room(table, console)
        console.print(table)
        return
    console = Console(width=_WIDTH_WHEN_PIPED)
    with console.capture() as written:
        console.print(table)
    for line in written.get().splitlines():
        print(line.rstrip(), file=to)


def _make_room(table: Table, console: Console) -> None:
    """On a narrow terminal, have what is not read in sentences broken between its words first."""
    options = console.options.update(width=_WIDTH_WHEN_PIPED)
    others = [column for column in table.columns if column.header not in _READ]
    sizes = [[Measurement.get(console, options, cell) for cell in (column.header, *column.cells)] for column in others]
    taken = sum(max(size.maximum for size in of_column) + _GAP for of_column in sizes)
    if console.width - taken >= _LEAST_TO_READ:
        return
    for column, of_column in zip(others, sizes, strict=True):
        column.max_width = max(1, *(size.minimum for size in of_column))
