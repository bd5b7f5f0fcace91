"""The benchmark of new names reads its labelled lines, and the shipped weights know most of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.new_names import of_lines
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.language.new_names import NameFinder
from glyphoxa.language.text import log_odds, shipped
from tests.support.vocabulary import ROOT

LINES = ROOT / "benchmarks" / "data" / "new_names" / "lines.tsv"


def names(text: str, language: str = "en", taken: tuple[tuple[int, int], ...] = ()) -> list[str]:
    return [found.text for found in NameFinder(language).names_in(text, taken=taken, nobody=())]


@pytest.mark.parametrize("language", ["de", "en"])
def test_shipped_weights_know_most_names_and_hardly_anything_else(language: str) -> None:
    weights = shipped("glyphoxa.language", "new_names")[language]
    judged = [(log_odds(example.signs, weights) > 0, example.is_wanted) for example in of_lines(LINES, language)]
    found = [is_wanted for is_found, is_wanted in judged if is_found]
    assert sum(found) >= 0.8 * len(found)
    assert sum(found) >= 0.7 * sum(is_wanted for _, is_wanted in judged)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("We rode to K'veth last night.", ["K'veth"]),
        ("You're right, We've seen it.", []),
        ("We found Odo Fennimore in the old mill.", ["Odo Fennimore"]),
        ("He wants to see the Council of Myrrhan.", ["Council of Myrrhan"]),
    ],
)
def test_names_are_found_by_signs_of_talk(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_known_name_may_be_part_of_a_new_one() -> None:
    assert names("We ride to the Thornmere Manor.", taken=((15, 24),)) == ["Thornmere Manor"]
    assert names("We ride to Thornmere.", taken=((11, 20),)) == []


def test_noun_behind_an_article_is_no_name_in_german() -> None:
    assert names("Ich hole den Kupferkessel aus der Vorratskammer.", "de") == []
    assert names("Ich hole Gunhild aus Weidenfels ab.", "de") == ["Gunhild", "Weidenfels"]


def test_line_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lines.tsv"
    path.write_text("fr\tBonjour [Odo].\n", "utf-8")
    with pytest.raises(InvalidInput, match=r"lines.tsv:1: .*valid: de or en"):
        list(of_lines(path, "en"))
