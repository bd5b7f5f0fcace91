"""How verbs show more than a sentence: tables and lines no wider than the terminal; facts, events and previews.

Piped, a table has 100 columns, or as many as `COLUMNS` says. A table cuts nothing: a cell is broken between its words.
Where some column has no room for its longest word, each row is shown as lines instead, `heading: cell`, below its first
two. Only a word that is wider than the terminal is broken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
from rich.table import Table as Columns
from rich.text import Text

from glyphoxa.dm.timeline import is_bookkeeping
from glyphoxa.dm.wording import (
    IndentedLine,
    certainty_in_words,
    knower_in_words,
    learned_from,
    place,
    plain,
    short,
    validity_in_words,
)
from glyphoxa.domain.knowledge import Fact
from glyphoxa.transcript.sessions import episode_of
from glyphoxa.world.events import WorldEvent
from glyphoxa.world.wording import fact_in_words, known_to_in_words, moment

if TYPE_CHECKING:
    from glyphoxa.desk import Desk
    from glyphoxa.dm.campaign_diff import CampaignChanges
    from glyphoxa.dm.entities import NameResolver
    from glyphoxa.dm.facts import Decision, ExplainedFact
    from glyphoxa.dm.ports import CitedUtterance
    from glyphoxa.dm.timeline import Preview
    from glyphoxa.domain.ids import FactId

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
_MOST_IN_PREVIEW: Final = 20
_MOST_CHANGES: Final = 40
"""Lines of a kind; a campaign that is new can have thousands."""


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


def show_rows(
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    nothing: str = "",
    limit: int = 0,
    which: str = "last",
) -> int:
    """Show a table of rows. Returns 0, the exit status of the verb.

    Args:
        nothing: Printed instead of a table without rows; empty: the headings are shown.
        limit: As many were asked for: if there are so many, a line says that there may be more.
        which: Of all rows these are: "first", "last", "best".
    """
    table = PlainTable(headings)
    for row in rows:
        table.add_row(*row)
    if nothing and not table.rows:
        print(nothing)
        return 0
    show(table)
    if len(table.rows) == limit:
        print(f"the {which} {limit}; --limit shows more")
    return 0


@contextmanager
def progress_bar(amount: ProgressColumn) -> Iterator[Progress]:
    """Show a bar on a terminal while the block runs; nothing elsewhere."""
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), amount)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar


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


def cut(text: str, most_characters: int) -> str:
    """Return a text on one line of at most so many characters; "…" stands for its end."""
    shown = Text(" ".join(text.split()))
    shown.truncate(most_characters, overflow="ellipsis")
    return shown.plain


def show_lines(lines: Iterable[IndentedLine]) -> None:
    """Print lines, broken between words on a terminal; piped, each stays one line."""
    _show_lines(lines, sys.stdout, width=_console(sys.stdout).width if sys.stdout.isatty() else None)


def _console(to: TextIO) -> Console:
    if to.isatty() or "COLUMNS" in os.environ:
        return Console(file=to, highlight=False)
    return Console(file=to, highlight=False, width=WIDTH_WHEN_PIPED)


def _widths(table: PlainTable, room: int) -> list[int] | None:
    """Return the width of each column; None if there is not enough room."""
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


# Facts and events


def fact_line(desk: Desk, fact: Fact) -> str:
    known_to = known_to_in_words(fact, desk.resolver)
    return plain(f"{short(fact.id)} {desk.facts.words(fact)}: {fact.status}, {known_to}")


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
        resolver: Whose names are used.
        limit: As many were asked for: if there are so many, there may be more.
        also: Another column: its heading, and a function that returns its text for a fact.
    """
    # On a narrow terminal every column that says nothing costs the facts their room.
    with_status = any(fact.status != "accepted" for fact in facts)
    status = ["status"] if with_status else []
    rows = (
        (
            short(fact.id),
            fact_in_words(fact, resolver),
            *([fact.status] if with_status else []),
            "confirmed" if fact.provenance.dm_confirmed else certainty_in_words(fact),
            known_to_in_words(fact, resolver),
            learned_from(fact, resolver),
            *([also[1](fact)] if also else []),
        )
        for fact in facts
    )
    headings = ("id", "fact", *status, "certainty", "known to", "from", *([also[0]] if also else []))
    show_rows(headings, rows, nothing=nothing, limit=limit, which="first")


def show_fact(desk: Desk, found: ExplainedFact) -> None:
    """Show a fact with its source, who knows it, and related facts."""
    fact, provenance = found.fact, found.fact.provenance
    print(f"{fact.id}  {plain(desk.facts.words(fact))}")
    if (ended := found.ended) is not None:
        by = "" if ended.superseded_by is None else f" by {short(ended.superseded_by)}"
        print(f"  no longer held: {ended.ended_as.replace('_', ' ')}{by} (event {ended.ended_seq})")
    else:
        print(f"  {fact.status}{', although you rejected it before' if fact.doubted else ''}")
    print(f"  {certainty_in_words(fact)}, from {provenance.origin.replace('_', ' ')}, stated {_times(fact.mentions)}")
    if provenance.reason:
        print(f"  because {provenance.reason}")
    _say_where(desk.resolver, fact, found.said)
    if validity := validity_in_words(fact.validity, desk.days.calendar):
        print(f"  holds {validity}")
    print(f"  known to: {known_to_in_words(fact, desk.resolver)}")
    for knower in fact.visibility.knowers:
        print(f"    {knower_in_words(knower, desk.resolver)}")
    _say_facts(desk, "depends on", fact.supports, found.supports)
    _say_facts(desk, "supports", [each.id for each in found.resting], found.resting)
    _say_facts(desk, "contradicts", fact.disputes, found.disputes)


def _say_where(resolver: NameResolver, fact: Fact, said: CitedUtterance | None) -> None:
    provenance = fact.provenance
    if said is not None:
        retracted = f", {said.state}" if said.is_retracted else ""
        where = f"{place(said.session_id, said.ordinal, resolver)}, {moment(said.at_ms)}"
        print(f"  said: {where} (utterance {said.utterance_id}{retracted})")
        print(f"    {plain(f'{said.speaker_name}: {said.text}')}")
        return
    where, at = place(provenance.session_id, provenance.ordinal, resolver), moment(provenance.at_ms)
    if provenance.utterance_id is not None:
        print(f"  said: {where}, {at} (utterance {provenance.utterance_id}, no longer in the log)")
    else:
        print(f"  stated: {', '.join(filter(None, (where, at))) or 'time unknown'}")


def _say_facts(desk: Desk, title: str, ids: Sequence[FactId], facts: Sequence[Fact]) -> None:
    known = {fact.id: fact for fact in facts}
    for fact in ids:
        if fact in known:
            print(f"  {title} {short(fact)} {plain(desk.facts.words(known[fact]))} ({known[fact].status})")
        else:
            print(f"  {title} {short(fact)}, which is no longer held")


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


async def show_events(desk: Desk, happened: Sequence[tuple[WorldEvent, bool]]) -> None:
    show_rows(("event", "when", "by", "what", "where", ""), await desk.facts.history_in_words(happened))


def show_preview(desk: Desk, found: Preview) -> None:
    episodes = {episode_of(session) for session in desk.resolver.sessions}
    for title, facts in (
        ("no longer known", found.gone),
        ("changed", found.changed),
        ("known again", found.back),
    ):
        shown = [fact for fact in facts if not is_bookkeeping(fact, episodes)]
        for fact in shown[:_MOST_IN_PREVIEW]:
            print(f"{title}: {plain(desk.facts.words(fact))}")
        if len(shown) > _MOST_IN_PREVIEW:
            print(f"{title}: {len(shown) - _MOST_IN_PREVIEW} more")
    if found.events:
        print(f"events to be dropped: {len(found.events)}")
    if found.n_utterances:
        print(f"utterances that NPCs will no longer recall: {found.n_utterances}")


def show_decision(desk: Desk, made: Decision) -> int:
    for fact in made.facts:
        print(fact_line(desk, fact))
        for disputed in fact.disputes:
            ends_it = f"glyphoxa facts accept {short(fact.id)}"
            print(f"  it contradicts {short(disputed)}; to end that one: {ends_it}")
    for ended in made.ended:
        print(f"no longer held: {plain(desk.facts.words(ended.fact))} ({ended.ended_as.replace('_', ' ')})")
    return 0


def show_changes(changes: CampaignChanges) -> None:
    """Print what a campaign gains, changes and loses, with remarks before it."""
    kinds = (("!", changes.remarks), ("+", changes.added), ("~", changes.changed), ("-", changes.removed))
    for mark, lines in kinds:
        for line in lines[:_MOST_CHANGES]:
            print(f"{mark} {line}")
        if len(lines) > _MOST_CHANGES:
            print(f"{mark} and {len(lines) - _MOST_CHANGES:,} more")
