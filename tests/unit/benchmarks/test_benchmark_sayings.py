"""The fits of the sayings and of what a remark is worth read labelled lines, and learn from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import sayings
from benchmarks.sayings import PENALTY_OF_REMARKS, best_of, figures_of, fitted, invented_remarks, of_scenes, read
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.language.text import log_odds

LINES = [
    *((1, f"I promise to bring [Corrin] the {thing}.") for thing in ("horse", "letter", "seal", "map", "key", "bell")),
    *(
        (0, f"We are going to stay in the {place} for a bit.")
        for place in ("hall", "cave", "yard", "room", "cart", "pit")
    ),
]
CAMPAIGN = """
campaign: {name: Town, id: c, language: en}
entities:
  - {name: Corrin, type: npc}
  - {name: Tamsin, type: player, attributes: {played_by: Ann}}
"""


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "own" / "lines.tsv"
    path.parent.mkdir()
    path.with_name("worth.tsv").write_text("en\t1\t-\t[Orla] is dead.\nen\t0\t-\t[Orla] nods.\n", "utf-8")
    path.write_text("".join(f"en\t{label}\t{text}\n" for label, text in LINES), "utf-8")
    return path


@pytest.fixture
def scenes(tmp_path: Path) -> Path:
    said = ["I promise to bring Corrin the silver horse.", "I promise you, that was my dice.", "Well met."]
    turns = [
        {"campaign": "c", "session": "s", "turn": n, "id": f"T{n}", "speaker": "Ann", "text": text, "at": None}
        for n, text in enumerate(said)
    ]
    label = {"subject": "Tamsin", "about": "promise", "value": "silver horse for Corrin", "evidence": ["T0"]}
    scene = {"campaign": "c", "from": "T0", "to": "T2", "entities": [{"name": "Tamsin"}], "facts": [label]}
    (tmp_path / "turns.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns), "utf-8")
    (tmp_path / "gold.jsonl").write_text(json.dumps(scene) + "\n", "utf-8")
    (tmp_path / "worth.tsv").write_text("T0\t1\t0\n", "utf-8")
    (tmp_path / "c.yaml").write_text(CAMPAIGN, "utf-8")
    return tmp_path


def test_lines_are_judged_by_weights_fitted_to_the_others(lines: Path) -> None:
    figures = figures_of(read(lines), [])
    assert figures["0.0"] == {"found": 12, "precision": 50.0, "recall": 100.0}
    assert figures["0.5"] == {"found": 6, "precision": 100.0, "recall": 100.0}


def test_a_recorded_saying_is_worth_storing_if_a_label_of_its_line_says_it(scenes: Path) -> None:
    assert [each.is_wanted for each in of_scenes(scenes, scenes / "turns.jsonl")] == [True, False]


def test_it_prints_its_figures_and_writes_the_same_weights_each_time(
    lines: Path, scenes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = [scenes / "one.json", scenes / "two.json"]
    for out in written:
        given = [str(lines), "--scenes", str(scenes), "--turns", str(scenes / "turns.jsonl"), "--out", str(out)]
        assert sayings.main(given) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["lines"]["0.0"]["found"], report["recorded"]["0.0"]["found"]) == (12, 2)
    assert written[0].read_bytes() == written[1].read_bytes()
    weights = json.loads(written[0].read_text("utf-8"))
    assert weights["about promise"] > weights["about plan"]


@pytest.mark.parametrize("row", ["en\t2\tI promise it to [Corrin].", "en\t1", "en\t1\tThe sun is out."])
def test_a_line_of_another_form_is_named(row: str, lines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with lines.open("a", encoding="utf-8") as file:
        file.write(f"{row}\n")
    assert sayings.main([str(lines)]) == 1
    assert "lines.tsv:13" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match=r"lines\.tsv:13"):
        read(lines)


WORTH = Path(__file__).parents[3] / "benchmarks" / "data" / "sayings" / "worth.tsv"


def test_labelled_lines_of_both_languages_are_told_apart() -> None:
    examples = list(invented_remarks(WORTH))
    weights = fitted(examples, PENALTY_OF_REMARKS)
    judged = [(log_odds(each.signs, weights), each.is_wanted) for each in examples]
    right = sum((odds > 0) == is_wanted for odds, is_wanted in judged)
    assert right > 0.8 * len(examples)
    assert best_of({"evening": examples}, "evening", examples)["of 20"] >= 18


@pytest.mark.parametrize("row", ["en\t2\t-\tA text.", "en\t1\tA text.", "nonsense"])
def test_line_of_another_form_is_refused(tmp_path: Path, row: str) -> None:
    path = tmp_path / "worth.tsv"
    path.write_text(f"en\t1\t-\t[Orla] is dead.\n{row}\n", "utf-8")
    with pytest.raises(InvalidInput, match=r"worth\.tsv:2: .*valid: a language, 1 or 0, a speaker or -, and a text"):
        list(invented_remarks(path))
