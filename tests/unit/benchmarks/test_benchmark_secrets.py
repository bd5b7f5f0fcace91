from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import secrets
from benchmarks.secrets import as_its_owner, best_threshold, by_words, rates, read_answers
from glyphoxa.domain.errors import InvalidInput

ROW = {
    "language": "en",
    "name": "Silas",
    "secret": "Silas is a werewolf.",
    "question": "Where are you at full moon?",
    "near": ["I am a werewolf."],
    "paraphrase": ["I grow fur and hunt.", "I change into a beast."],
    "innocent": ["I bar my door, like everyone."],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for half in secrets.HALVES:
        (tmp_path / f"{half}.jsonl").write_text(json.dumps(ROW) + "\n", "utf-8")
    return tmp_path


def test_what_the_check_rejects_is_counted_by_kind(data: Path) -> None:
    answers = read_answers(data / "test.jsonl")
    assert [one.kind for one in answers] == ["near", "paraphrase", "paraphrase", "innocent"]
    assert rates(answers, [True, True, False, False]) == {
        ("en", "innocent"): 0.0,
        ("en", "near"): 100.0,
        ("en", "paraphrase"): 50.0,
    }
    assert by_words(answers) == [True, False, False, False]
    assert as_its_owner(answers[0]) == "I is a werewolf."


def test_the_threshold_is_where_paraphrases_part_from_innocent_answers(data: Path) -> None:
    answers = read_answers(data / "test.jsonl")
    assert best_threshold(answers, np.array([0.9, 0.6, 0.5, 0.2], np.float32)) == pytest.approx(0.5)


def test_a_line_that_is_no_secret_is_named(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["secrets", str(data)])
    assert secrets.main() == 0
    assert "words      test  en near        100.0 %" in capsys.readouterr().out
    (data / "tune.jsonl").write_text("{}\n", "utf-8")
    assert secrets.main() == 1
    assert "tune.jsonl, line 1" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="line 1"):
        read_answers(data / "tune.jsonl")
