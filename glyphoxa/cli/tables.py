"""Tables for a terminal; when piped, every row is one line, however long."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

_WIDTH_WHEN_PIPED = 10_000


def a_table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def show(table: Table) -> None:
    if sys.stdout.isatty():
        Console().print(table)
        return
    console = Console(width=_WIDTH_WHEN_PIPED)
    with console.capture() as written:
        console.print(table)
    for line in written.get().splitlines():
        print(line.rstrip())
