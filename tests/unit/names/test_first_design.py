"""The baseline of the name matcher: its codes, its similarities and its two thresholds are settings."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from glyphoxa.app.background import corrector_of
from glyphoxa.config.provider_sections import CorrectionSettings
from glyphoxa.domain.ids import EntityId
from glyphoxa.names.corrector import Corrector
from glyphoxa.names.first_design import first_corrector, smith_waterman
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry


def named(*names: str) -> Gazetteer:
    return Gazetteer.build([Entry(name, EntityId(name)) for name in names], language="en")


def corrected(text: str, *names: str, **settings: Any) -> str:
    chosen = CorrectionSettings(algorithm="documents", **settings)
    return corrector_of(named(*names), chosen).correct(text).text


def test_name_without_common_code_is_corrected_from_the_fuzzy_threshold_on() -> None:
    assert corrected("Brudlenct", "Brundlewick") == "Brundlewick"  # 0.852, codes PRTL and PRNT
    assert corrected("Blundlewck", "Brundlewick") == "Blundlewck"  # 0.849, codes PLNT and PRNT
    assert corrected("Blundlewck", "Brundlewick", fuzzy_threshold=0.84) == "Brundlewick"


def test_name_of_the_same_code_prevents_the_fuzzy_comparison() -> None:
    assert corrected("Brudlenct", "Brundlewick", "Pritalanka") == "Brudlenct"  # PRTL is that of Pritalanka


@pytest.mark.parametrize(
    ("heard", "name", "settings", "is_found"),
    [
        ("katrin", "Catherine", {}, True),  # KTRN
        ("katrin", "Catherine", {"code": "nysiis"}, False),  # CATRAN, CATARA
        ("katrin", "Catherine", {"code": "soundex"}, False),  # K365, C365
        ("feryn", "Pheryn", {"code": "nysiis"}, True),  # FARYN
        ("feryn", "Pheryn", {"code": "soundex"}, False),  # F650, P650
        ("wilhelm", "Wilhelma", {"code": "match_rating"}, True),  # WLHLM
        ("feryn", "Pheryn", {"code": "match_rating"}, False),  # FRYN, PHRYN
        ("elder", "Eldrinax", {}, True),  # ALTR
        ("elder", "Eldrinax", {"code_length": 32}, False),  # ALTR, ALTRNKS
        ("girmjaw", "Grimjaw", {"phonetic_threshold": 0.8, "similarity": "levenshtein"}, False),
        ("girmjaw", "Grimjaw", {"phonetic_threshold": 0.8, "similarity": "damerau_levenshtein"}, True),
        ("girmjaw", "Grimjaw", {"phonetic_threshold": 0.953, "similarity": "jaro"}, False),
        ("girmjaw", "Grimjaw", {"phonetic_threshold": 0.953}, True),
        ("girmjaw", "Grimjaw", {"phonetic_threshold": 0.7, "similarity": "smith_waterman"}, False),  # 0.619
        ("girmjaw", "Grimjaw", {"phonetic_threshold": 0.6, "similarity": "smith_waterman"}, True),
    ],
)
def test_code_and_similarity_of_the_settings_decide(
    heard: str, name: str, settings: dict[str, Any], is_found: bool
) -> None:
    assert corrected(heard, name, **settings) == (name if is_found else heard)


@pytest.mark.parametrize(
    ("one", "other", "score"),
    [
        ("aaugccauugacgg", "cagccucgcuuag", 10 / 3),  # the authors' example, printed as 3.3
        ("elowen", "elwen", 5 - 4 / 3),  # el wen: five equal letters and a gap of one
        ("elenowen", "elwen", 5 - 2),  # a gap of three costs 2, which is less than three gaps of one
        ("girmjaw", "grimjaw", 5 - 2 / 3),  # two pairs of other letters
        ("mira", "admiral", 4),  # contained
        ("bodo", "", 0),
        ("bodo", "karl", 0),
    ],
)
def test_local_alignment_is_scored_as_by_its_authors(one: str, other: str, score: float) -> None:
    shorter = max(1, min(len(one), len(other)))
    assert smith_waterman(one, other) == pytest.approx(score / shorter)
    assert smith_waterman(other, one) == pytest.approx(score / shorter)


HEARD = ("elder nacks went to iron hold", "grim jaw said hello", "meer elle and crimjaw", "the tower of wispers")


@pytest.mark.parametrize("make", [Corrector, first_corrector])
def test_threads_share_a_corrector(make: Any) -> None:
    names = named("Eldrinax", "Ironhold", "Grimjaw", "Mirelle", "Tower of Whispers")
    lines = [f"{text} {number % 7}" for number, text in enumerate(HEARD * 50)]
    expected = [make(names).correct(line).text for line in lines]
    shared = make(names)

    def read_all(_: int) -> Sequence[str]:
        return [shared.correct(line).text for line in lines]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(read_all, range(8))) == [expected] * 8
    assert expected != lines
