"""Print tables and lines that fit the terminal; print facts, events and previews.

In a pipe, a table has 100 columns, or the number in `COLUMNS`. No text is cut: cells wrap between words. If a column is
too narrow for its longest word, each row becomes lines, `heading: cell`, below its first two cells. Only a word that is
wider than the terminal is broken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
from rich.table import Table as Columns
from rich.text import Text

from glyphoxa.dm.facts import lines_of
from glyphoxa.dm.wording import IndentedLine, plain
from glyphoxa.domain.knowledge import Fact
from glyphoxa.language.facts import fact_row, short
from glyphoxa.world.event_log import WorldEvent

if TYPE_CHECKING:
    from glyphoxa.app.desk import Desk
    from glyphoxa.dm.campaign_diff import CampaignChanges
    from glyphoxa.dm.entities import NameResolver
    from glyphoxa.dm.facts import Decision, ExplainedFact

WIDTH_WHEN_PIPED: Final = 100
_GAP: Final = 2
"""Spaces between two columns."""
_NEVER_WRAPPED: Final = 16
"""Columns up to this width, such as times, do not wrap."""
_LONGEST_WORD: Final = 40
"""Longer words, and texts without spaces, may be broken in a table."""
_INDENT: Final = 2
"""Spaces before a line per level of depth, and before its wrapped parts."""
_MIN_WIDTH: Final = 24
_HEAD_CELLS: Final = 2
"""Cells in the first line of a row that is printed as lines."""
_MOST_CHANGES: Final = 40
"""Lines of one kind. A new campaign can have thousands."""


Cells = Sequence[Text]


def show_rows(
    headings: Sequence[str | Text],
    rows: Iterable[Sequence[str | Text]],
    *,
    nothing: str = "",
    limit: int = 0,
    which: str = "last",
) -> int:
    """Show a table of rows. Returns 0, the exit status of the verb.

    Args:
        headings: If all are empty, no line of headings is printed. A `Text` may justify its column to the right.
        rows: A `Text` keeps its colour. Control characters are removed; see `plain`.
        nothing: Printed instead of an empty table; "": the headings are printed.
        limit: The number of rows in the query; if it is reached, a line says that there may be more.
        which: Which rows these are: "first", "last" or "best".
    """
    titles = [Text(each) if isinstance(each, str) else each for each in headings]
    cells = [[Text(plain(str(one)), style=one.style if isinstance(one, Text) else "") for one in row] for row in rows]
    if nothing and not cells:
        print(nothing)
        return 0
    console = _console()
    widths = _widths(titles, cells, console.width)
    if widths is None:
        _show_lines(_as_lines(titles, cells), width=console.width)
    else:
        shown = Columns(box=None, pad_edge=False, show_header=any(titles))
        for title, width in zip(titles, widths, strict=True):
            shown.add_column(title, width=width, overflow="fold", justify=title.justify or "left")
        for row in cells:
            shown.add_row(*row)
        with console.capture() as written:
            console.print(shown)
        for line in written.get().splitlines():
            print(line.rstrip())
    if limit and len(cells) == limit:
        print(f"the {which} {limit}; --limit shows more")
    return 0


@contextmanager
def progress_bar(amount: ProgressColumn) -> Iterator[Progress]:
    """Show a progress bar while the block runs, if standard error is a terminal."""
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), amount)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar


def cut(text: str, most_characters: int) -> str:
    """Return a text in one line; "…" replaces what exceeds the maximum length."""
    shown = Text(" ".join(text.split()))
    shown.truncate(most_characters, overflow="ellipsis")
    return shown.plain


def show_lines(lines: Iterable[IndentedLine]) -> None:
    """Print lines. They wrap between words on a terminal, and not in a pipe."""
    _show_lines(lines, width=_console().width if sys.stdout.isatty() else None)


def _console() -> Console:
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH_WHEN_PIPED
    return Console(file=sys.stdout, highlight=False, width=width)


def _widths(titles: Cells, rows: Sequence[Cells], room: int) -> list[int] | None:
    """Return the width of each column; None if the table does not fit."""
    columns = list(zip(titles, *rows, strict=True))
    wanted = [max(cell.cell_len for cell in column) for column in columns]
    words = [max((cell_len(word) for cell in column for word in cell.plain.split()), default=0) for column in columns]
    widths = [
        min(max(want, 1), max(_NEVER_WRAPPED, min(word, _LONGEST_WORD)))
        for want, word in zip(wanted, words, strict=True)
    ]
    left = room - sum(widths) - _GAP * (len(widths) - 1)
    if left < 0:
        return None
    # The column that needs least is widened first, and leaves the rest to the others.
    by_need = sorted(range(len(widths)), key=lambda at: wanted[at] - widths[at])
    for n_served, at in enumerate(by_need):
        more = min(max(wanted[at] - widths[at], 0), left // (len(by_need) - n_served))
        widths[at], left = widths[at] + more, left - more
    return widths


def _as_lines(titles: Cells, rows: Iterable[Cells]) -> Iterator[IndentedLine]:
    for row in rows:
        yield IndentedLine(" ".join(cell.plain for cell in row[:_HEAD_CELLS] if cell.plain))
        for title, cell in zip(titles[_HEAD_CELLS:], row[_HEAD_CELLS:], strict=True):
            if cell.plain:
                yield IndentedLine(f"{title.plain}: {cell.plain}" if title else cell.plain, 1)


def _show_lines(lines: Iterable[IndentedLine], *, width: int | None) -> None:
    for line in lines:
        indent = " " * (_INDENT * line.depth)
        text = plain(line.text)
        if width is None:
            print(f"{indent}{text}")
            continue
        room = max(width - len(indent) - _INDENT, _MIN_WIDTH)
        for nth, part in enumerate(Text(text).wrap(Console(width=room), room)):
            print(f"{indent}{' ' * _INDENT if nth else ''}{part.plain.rstrip()}")


# Facts and events


def show_facts(
    facts: Sequence[Fact],
    resolver: NameResolver,
    *,
    limit: int,
    nothing: str,
    also: tuple[str, Callable[[Fact], str]] | None = None,
) -> None:
    """Show one row per fact.

    Args:
        resolver: Provides the names.
        limit: The number of facts in the query; if it is reached, a line says that there may be more.
        also: The heading of another column, and a function that returns its text for a fact.
    """
    rows = [fact_row(fact, resolver) | ({also[0]: also[1](fact)} if also else {}) for fact in facts]
    headings = ["id", "fact", "status", "certainty", "known to", "from", *([also[0]] if also else [])]
    if all(fact.status == "accepted" for fact in facts):
        headings.remove("status")  # an empty column would take room from the facts on a narrow terminal
    cells = ([short(fact.id), *(row[each] for each in headings[1:])] for fact, row in zip(facts, rows, strict=True))
    show_rows(headings, cells, nothing=nothing, limit=limit, which="first")


def show_fact(desk: Desk, found: ExplainedFact) -> None:
    """Show a fact with its source, who knows it, and related facts."""
    rows = desk.facts.explained_in_words(found, desk.days.calendar)
    print(f"{rows.pop('id')}  {plain(str(rows.pop('fact')))}")
    for line in lines_of(rows):
        print(f"  {plain(line)}")


async def show_events(desk: Desk, happened: Sequence[tuple[WorldEvent, bool]]) -> None:
    show_rows(("event", "when", "by", "what", "where", ""), await desk.facts.history_in_words(happened))


def show_result(desk: Desk, result: Decision | Sequence[WorldEvent] | Sequence[str]) -> int:
    """Print what an action did; of facts that contradict others, how to settle that."""
    for line in desk.in_words(result):
        print(plain(line))
    for fact in getattr(result, "facts", ()):
        for disputed in fact.disputes:
            ends_it = f"glyphoxa facts accept {short(fact.id)}"
            print(f"{short(fact.id)} contradicts {short(disputed)}; to end that one: {ends_it}")
    return 0


def show_changes(changes: CampaignChanges) -> None:
    """Print the remarks, then the additions, changes and removals."""
    kinds = (("!", changes.remarks), ("+", changes.added), ("~", changes.changed), ("-", changes.removed))
    for mark, lines in kinds:
        for line in lines[:_MOST_CHANGES]:
            print(f"{mark} {line}")
        if len(lines) > _MOST_CHANGES:
            print(f"{mark} and {len(lines) - _MOST_CHANGES:,} more")
