"""Tables are no wider than the terminal, however narrow, and lose nothing of what they show."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from glyphoxa.cli.render import WIDTH_WHEN_PIPED, show_rows

Capture = pytest.CaptureFixture[str]
SESSION = "the-drowned-abbey-20261122-193000"


@pytest.fixture(autouse=True)
def piped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def lines_of(capsys: Capture, headings: Sequence[str | Text], *rows: Sequence[str | Text]) -> list[str]:
    capsys.readouterr()
    assert show_rows(headings, rows) == 0
    return [Text.from_ansi(line).plain for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("columns", [None, 40, 60, 80, 200])
def test_a_table_fits_the_terminal_and_keeps_its_ids_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, columns: int | None
) -> None:
    if columns is not None:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    told = ("Elowen LOCATED_AT The Anvil " * 10, "witnessed: Grimjaw, Elowen", "campaign file")
    rows = [(fact, *told) for fact in ("7fb0c45c", "91aa03de")]
    lines = lines_of(capsys, ("id", "fact", "known to", "from"), *rows)
    assert max(map(cell_len, lines)) <= (columns or WIDTH_WHEN_PIPED)
    assert [line[:8] for line in lines if line[:1].isdigit()] == ["7fb0c45c", "91aa03de"]
    assert " ".join(lines).split().count("LOCATED_AT") == 20


def test_on_a_narrow_terminal_each_row_is_shown_as_lines(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    headings = ("no.", "session", "began", "utterances", "", "summary")
    row = ("2", SESSION, "2026-11-22 19:30", "120", "rolled back", "They found the seal and lost the boat.")
    assert lines_of(capsys, headings, row) == [
        f"2 {SESSION}",
        "  began: 2026-11-22 19:30",
        "  utterances: 120",
        "  rolled back",
        "  summary: They found the seal and",
        "    lost the boat.",
    ]


def test_a_short_column_is_not_broken_while_a_long_one_can_be(capsys: Capture) -> None:
    row = ("2", SESSION, "2026-11-22 19:30", "They found the seal and lost the boat. " * 3)
    heading, first, *_ = lines_of(capsys, ("no.", "session", "began", "summary"), row)
    assert heading.split() == ["no.", "session", "began", "summary"]
    assert first.startswith(f"2    {SESSION}  2026-11-22 19:30  They found")


def test_an_id_that_is_wider_than_the_terminal_is_broken_and_not_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    lines = lines_of(capsys, ("id", "name"), ("x" * 70, "Korvald"))
    assert "".join("".join(lines).split()).count("x") == 70


def test_numbers_stand_to_the_right_where_that_is_wished(capsys: Capture) -> None:
    lines = lines_of(capsys, ("name", Text("size", justify="right")), ("a", "9 kB"), ("b", "120 kB"))
    assert lines == ["name    size", "a       9 kB", "b     120 kB"]


@pytest.mark.parametrize(
    ("who", "cells"), [("\u65e5\u672c\u8a9e", 6), ("Zoe\u0308", 3), ("\U0001f409", 2), ("Ren\u00e9", 4)]
)
def test_columns_stand_below_each_other_whatever_is_written_in_them(capsys: Capture, who: str, cells: int) -> None:
    _, wide, plain = lines_of(capsys, ("who", "said"), (who, "|"), ("Grimjaw", "|"))
    assert cell_len(who) == cells
    assert cell_len(wide.partition("|")[0]) == plain.index("|")


def test_a_text_without_spaces_is_broken_inside_its_column(capsys: Capture) -> None:
    _, *lines = lines_of(capsys, ("who", "said"), ("Tamsin", "\u6c34" * 90))
    assert "".join(lines).count("\u6c34") == 90
    assert max(map(cell_len, lines)) <= WIDTH_WHEN_PIPED
    assert lines[1].startswith(" " * len("Tamsin"))


def test_what_somebody_typed_is_no_command_to_the_terminal_in_a_table_either(capsys: Capture) -> None:
    row = ("[bold]Tamsin", Text("\x1b[2Jhello\x07\nthere\x9b1m"))
    assert lines_of(capsys, ("who", "said"), row) == ["who           said", "[bold]Tamsin  [2Jhello there 1m"]


CELLS = st.text(st.sampled_from("ab -\u6c34\u0308\U0001f409"), max_size=60)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), max_size=4), columns=st.integers(28, 150))
def test_no_line_is_wider_and_no_letter_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, rows: list[tuple[str, ...]], columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = lines_of(capsys, ("id", "fact", "", "known to"), *rows)
    assert max(map(cell_len, lines), default=0) <= columns
    shown, typed = "".join(lines), "".join("".join(row) for row in rows)
    assert shown.count("b") == typed.count("b")
    assert shown.count("\u6c34") == typed.count("\u6c34")
