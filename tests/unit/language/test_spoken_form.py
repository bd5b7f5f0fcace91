from __future__ import annotations

import csv
from pathlib import Path

import pytest

from glyphoxa.language.spoken_form import SpokenForm

with Path(__file__).with_name("spoken.tsv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['language']}: {row['written']}")
def test_sentence_is_written_as_it_is_said(row: dict[str, str]) -> None:
    assert SpokenForm(row["language"])(row["written"]) == row["spoken"]


def test_campaign_units_outrank_those_of_the_language() -> None:
    said = SpokenForm("en-GB", {"kr": ("one crown", "crowns"), "gp": ("one galleon", "galleons")})
    assert said("1 kr, 12 kr or 3 GP?") == "one crown, twelve crowns or three galleons?"


@pytest.mark.parametrize("language", ["fr", "x-none"])
def test_language_without_data_is_unchanged(language: str) -> None:
    assert SpokenForm(language)("Aldric III  paie 40 gp & 1,140 m.") == "Aldric III  paie 40 gp & 1,140 m."


@pytest.mark.parametrize(
    "text", ["", " ", "1.", "...", "2d6+3", "9" * 400, "1-2-3-4", "31/12", "0:99", "I II III", "%"]
)
@pytest.mark.parametrize("language", ["en", "de"])
def test_odd_text_is_no_error(text: str, language: str) -> None:
    assert isinstance(SpokenForm(language)(text), str)
