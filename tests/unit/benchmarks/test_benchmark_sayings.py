"""The fit of what a remark is worth reads labelled lines, and learns from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sayings import PENALTY_OF_REMARKS, best_of, fitted, invented_remarks
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.language.text import log_odds

LINES = Path(__file__).parents[3] / "benchmarks" / "data" / "sayings" / "worth.tsv"


def test_labelled_lines_of_both_languages_are_told_apart() -> None:
    examples = list(invented_remarks(LINES))
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
