"""The nearest valid value of an error message."""

from __future__ import annotations

import pytest

from glyphoxa.domain.errors import did_you_mean, nearest

KINDS = ("concept", "event", "faction", "item", "location", "npc", "player", "quest")
NAMES = ("The Copper Kettle", "Brother Odo Finch", "double_metaphone", "Zürich")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("ncp", "npc"),
        ("PC", "npc"),
        ("fraction", "faction"),
        ("Locaton", "location"),
        ("creature", None),
        ("i", None),
        ("", None),
        ("x" * 10_000, None),
    ],
)
def test_misspelt_word_is_near_and_another_word_is_not(typed: str, meant: str | None) -> None:
    assert nearest(typed, KINDS) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("BROTHER ODO FICNH", "Brother Odo Finch"),
        ("copper kettle", "The Copper Kettle"),
        ("Finch", "Brother Odo Finch"),
        ("Metaphon", "double_metaphone"),
        ("zurich", "Zürich"),
        ("Grimjaw", None),
    ],
)
def test_name_is_near_in_capitals_and_by_a_word(typed: str, meant: str | None) -> None:
    assert nearest(typed, NAMES) == meant


def test_other_number_is_not_near() -> None:
    assert nearest("s3", ["s1", "s2"]) is None


def test_strict_comparison_ignores_words() -> None:
    assert nearest("known", ["known_by"], least=0.93) is None
    assert nearest("knownby", ["known_by"], least=0.93) == "known_by"


def test_without_a_near_value_the_valid_ones_are_listed() -> None:
    assert did_you_mean("xyz", KINDS).startswith("valid: concept, event")
    assert did_you_mean("xyz", []) == "valid: none"
