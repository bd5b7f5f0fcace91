from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import salience
from benchmarks.recall_data import read_turns
from benchmarks.salience import measured, read_labels
from glyphoxa.domain.errors import InvalidInput

LINES = ("I promise you the silver ring and the map.", "Okay.", "Hm.", "We found the letter in the chest of the king.")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    turns = [
        {"campaign": "c", "session": "s", "turn": n, "id": f"T{n}", "speaker": "Ann", "text": text, "at": None}
        for n, text in enumerate(LINES)
    ]
    labels = [{"campaign": "c", "id": f"T{n}", "keep": n in (0, 3)} for n in range(4)]
    for name, rows in (("turns", turns), ("labels", labels), ("questions", [])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return tmp_path


def test_labelled_turns_are_counted(data: Path) -> None:
    turns = [turn for said in read_turns(data / "turns.jsonl").values() for turn in said]
    figures = measured(turns, read_labels(data / "labels.jsonl"))
    assert (figures["labels"], figures["recall"], figures["precision"], figures["f1"]) == (4, 100.0, 100.0, 100.0)
    assert figures["written_percent"] == 50.0
    assert measured(turns, {("c", "T1"): False})["written_percent"] == 0.0


def test_it_prints_its_figures_and_says_what_is_wrong_with_a_label(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert salience.main([str(data)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["labels"] == 4
    (data / "labels.jsonl").write_text('{"campaign": "c"}\n', "utf-8")
    assert salience.main([str(data)]) == 1
    assert "labels.jsonl:1" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match=r"labels\.jsonl:1"):
        read_labels(data / "labels.jsonl")
