"""Everything that is locked, and every model, has a licence that is known and may be used."""

from __future__ import annotations

import re

import pytest

from tests.support.licences import Licensed, everything, wrong_with

ALL = everything()


def test_every_package_and_model_has_a_licence_that_may_be_used() -> None:
    assert wrong_with(ALL) == []


@pytest.mark.parametrize(
    ("licence", "says"),
    [
        ("", "not known"),
        ("AGPL-3.0-only", "refused"),
        ("GPL-3.0-or-later", "refused"),
        ("MIT AND GPL-2.0-only", "refused"),
        ("SSPL-1.0", "refused"),
        ("CC-BY-NC-4.0", "refused"),
        ("LGPL-3.0-only", "REASONS"),
        ("Ours-1.0", "REASONS"),
        ("GPL-2.0-only OR MIT", ""),
        ("MIT AND (BSD-3-Clause OR GPL-3.0-only)", ""),
    ],
)
def test_forbidden_licence_is_reported_with_its_package(licence: str, says: str) -> None:
    told = wrong_with([*ALL, Licensed("newcomer", "1.0", "program", licence)])
    assert [bool(re.match("newcomer: ", line)) and says in line for line in told] == ([True] if says else [])
