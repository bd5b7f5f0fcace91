"""Tables for a terminal, however narrow."""

from __future__ import annotations

import pytest
from rich.text import Text

from glyphoxa.cli.tables import a_table, show


def test_on_a_narrow_terminal_what_is_read_in_sentences_keeps_its_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    table = a_table("id", "fact", "known to", "from")
    table.add_row("7fb0c45c", "Elowen LOCATED_AT The Anvil", "witnessed: Grimjaw, Elowen", "campaign file")
    show(table)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line[10:].split("  ")[0] for line in lines[1:3]] == ["Elowen LOCATED_AT", "The Anvil"]


def test_piped_a_row_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    table = a_table("id", "fact")
    table.add_row("7fb0c45c", "word " * 200)
    show(table)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_what_somebody_typed_is_no_command_to_the_terminal_in_a_table_either(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = a_table("who", "said")
    table.add_row(Text("Tamsin"), Text("\x1b[2Jhello\x07\nthere\x9b1m"))
    show(table)
    assert capsys.readouterr().out == "who     said\nTamsin  [2Jhello there 1m\n"
