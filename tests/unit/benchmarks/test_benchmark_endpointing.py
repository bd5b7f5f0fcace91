"""How rules for the end of a turn are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.endpointing import DATA, Silence, best, by_silence, by_words, figures, read_lines
from glyphoxa.domain.errors import InvalidInput

FOUND = [
    Silence(0, "I would like the", 700),
    Silence(0, "I would like the blade.", None),
    Silence(1, "We need bread.", 500),
    Silence(1, "We need bread and wine.", None),
    Silence(2, "How much?", None),
]


def test_a_pause_that_outlasts_the_wait_is_a_cut_and_the_wait_is_counted_at_the_end_alone() -> None:
    told = figures(by_silence(480), FOUND)
    assert (told.cut_percent, told.pauses_percent, told.wait_ms) == (100.0, 100.0, 480)
    assert figures(by_silence(600), FOUND).cut_percent == 50.0
    assert figures(by_silence(700), FOUND).cut_percent == 0.0


def test_words_wait_where_a_sentence_is_unfinished() -> None:
    assert [by_words(480, 900)(silence) for silence in FOUND] == [900, 480, 480, 480, 480]


def test_rules_are_compared_at_no_longer_wait() -> None:
    told = best(FOUND, within_ms=480)
    assert told["words"]["cut_percent"] == 50.0
    assert all(float(str(row["wait_ms"])) <= 480 for row in told.values())


def test_the_set_has_two_hundred_turns_that_share_no_line_and_always_the_same_pauses() -> None:
    tune, test = read_lines(DATA / "tune.txt"), read_lines(DATA / "test.txt")
    assert len(tune) + len(test) >= 200
    assert {line.text for line in tune}.isdisjoint({line.text for line in test})
    assert read_lines(DATA / "tune.txt") == tune
    assert all(len(line.pauses_ms) == len(line.parts) - 1 for line in (*tune, *test))


def test_a_line_with_an_empty_part_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("How much?\nWell, | | no.\n", "utf-8")
    with pytest.raises(InvalidInput, match=r"lines\.txt:2: 'Well, \| \| no\.' has nothing between two pauses"):
        read_lines(path)
