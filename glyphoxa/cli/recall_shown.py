"""What an NPC recalls, as `glyphoxa recall` shows it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from glyphoxa.cli.lines import show_lines
from glyphoxa.cli.tables import a_table, show
from glyphoxa.context.wording import recalled_line
from glyphoxa.dm.lines import IndentedLine
from glyphoxa.domain.recalled import Recalled, RecalledUtterance
from glyphoxa.world.api import moment


@dataclass(frozen=True, slots=True)
class Shown:
    """
    Attributes:
        path: By what it was found: "named 'the smith', asks for OWNS".
        selected: Whether it would get a place in a prompt, in words.
        holds: Since and until when, for a fact, in words.
    """

    recalled: Recalled
    path: str
    selected: str = ""
    holds: str = ""


def listing(found: Sequence[Shown], *, explain: bool) -> None:
    """A row each, in the order in which they are given; explained to a terminal, lines, which it has room for."""
    if explain and sys.stdout.isatty():
        show_lines(line for rank, one in enumerate(found, start=1) for line in _explained(rank, one))
        return
    more = ("score", "cosine", "found by", "known because", "holds") if explain else ()
    table = a_table("rank", "what", "session", "when", *more, "in the prompt")
    for rank, one in enumerate(found, start=1):
        recalled = one.recalled
        when = "" if recalled.session_id is None else moment(recalled.at_ms)
        row: list[Text | str] = [str(rank), Text(recalled_line(recalled)), Text(recalled.session_id or ""), when]
        if explain:
            row += [
                f"{recalled.score:.2f}",
                _cosine(recalled),
                Text(one.path),
                Text(recalled.reason),
                one.holds,
            ]
        row.append(one.selected if explain else one.selected.partition(":")[0])
        table.add_row(*row)
    show(table)


def _explained(rank: int, one: Shown) -> Iterator[IndentedLine]:
    recalled = one.recalled
    yield IndentedLine(f"{rank}. {recalled_line(recalled)}")
    if recalled.session_id is not None:
        yield IndentedLine(f"said: {recalled.session_id}, {moment(recalled.at_ms)}", 1)
    cosine = _cosine(recalled)
    yield IndentedLine(f"found by: {one.path} (score {recalled.score:.2f}{f', cosine {cosine}' if cosine else ''})", 1)
    yield IndentedLine(f"known because: {recalled.reason}", 1)
    if one.holds:
        yield IndentedLine(f"holds: {one.holds}", 1)
    yield IndentedLine(f"in the prompt: {one.selected}", 1)


def _cosine(one: Recalled) -> str:
    similarity = one.similarity if isinstance(one, RecalledUtterance) else None
    return "" if similarity is None else f"{similarity:.3f}"
