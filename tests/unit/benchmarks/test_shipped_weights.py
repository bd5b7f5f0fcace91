"""The shipped models and rules reach the figures of their labelled lines; the benchmarks read these."""

from __future__ import annotations

import asyncio
import json

import pytest

from benchmarks import names
from benchmarks.extraction import measured
from benchmarks.labelled import DATA
from benchmarks.new_names import of_lines
from benchmarks.sayings import PENALTY_OF_REMARKS, fitted, invented_remarks
from benchmarks.statements import found_in, read
from glyphoxa.chronicle.statements import kind_of
from glyphoxa.chronicle.talk import Kind
from glyphoxa.language.new_names import NameFinder
from glyphoxa.language.text import log_odds, shipped


def names_in(text: str, language: str = "en", taken: tuple[tuple[int, int], ...] = ()) -> list[str]:
    return [found.text for found in NameFinder(language).names_in(text, taken=taken, nobody=())]


@pytest.mark.parametrize("language", ["de", "en"])
def test_new_names_are_found_and_hardly_anything_else(language: str) -> None:
    weights = shipped("glyphoxa.language", "new_names")[language]
    lines = of_lines(DATA / "new_names" / "lines.tsv", language)
    judged = [(log_odds(example.signs, weights) > 0, example.is_wanted) for example in lines]
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
    assert names_in(text) == found


def test_known_name_may_be_part_of_a_new_one() -> None:
    assert names_in("We ride to the Thornmere Manor.", taken=((15, 24),)) == ["Thornmere Manor"]
    assert names_in("We ride to Thornmere.", taken=((11, 20),)) == []


def test_noun_after_an_article_is_no_name_in_german() -> None:
    assert names_in("Ich hole den Kupferkessel aus der Vorratskammer.", "de") == []
    assert names_in("Ich hole Gunhild aus Weidenfels ab.", "de") == ["Gunhild", "Weidenfels"]


def test_hardly_any_statement_is_taken_for_now_that_is_not() -> None:
    judged = [(each.kind, kind_of(each.found, None)) for each in read(DATA / "statements" / "lines.tsv")[::5]]
    other = [found for kind, found in judged if kind is not Kind.NOW]
    now = [found for kind, found in judged if kind is Kind.NOW]
    assert other.count(Kind.NOW) <= 0.02 * len(other)
    assert now.count(Kind.NOW) >= 0.9 * len(now)


def test_features_tell_the_claim_from_its_surroundings() -> None:
    found = found_in("They say that <[Ysra] owns the [Long Barn]>, and it rains.")
    assert found is not None
    assert {"claim:nn owns", "front:*hearsay", "any:*hearsay"} <= found
    assert "claim:*hearsay" not in found


def test_remarks_worth_storing_can_be_told_from_others() -> None:
    examples = list(invented_remarks(DATA / "sayings" / "worth.tsv"))
    weights = fitted(examples, PENALTY_OF_REMARKS)
    assert sum((log_odds(each.signs, weights) > 0) == each.is_wanted for each in examples) > 0.8 * len(examples)


def test_names_are_corrected_and_speech_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """The gate on false corrections per 1,000 words of clean speech."""
    assert names.main([]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["false_per_1000_words"] == 0
    assert figures["recall"] >= 88
    assert figures["wrong"] <= 1


@pytest.mark.parametrize("half", ["tune", "test"])
def test_rules_reach_their_figures_on_own_scenes(half: str) -> None:
    _, report = asyncio.run(measured(DATA / "extraction" / half))
    assert (report["scenes"], report["without_evidence"]) == (6, 0)
    least = {"entity_f1_known": 95, "entity_f1_new": 75, "relationship_precision": 85, "fact_precision": 90}
    assert {key for key, value in least.items() if float(str(report[key])) < value} == set()
