"""What is read of a bundle before any database is asked."""

from __future__ import annotations

import pytest

from glyphoxa.dm.campaign_bundle import read_bundle
from glyphoxa.domain.errors import InvalidInput
from tests.fuzz.running import CORPUS

TEXT = (CORPUS / "bundle_file" / "town.json").read_text("utf-8")


def test_bundle_is_written_as_it_was_read() -> None:
    assert read_bundle(TEXT).text() == TEXT


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_a_number_without_end_is_refused_by_what_stands_there(number: str) -> None:
    with pytest.raises(InvalidInput, match=f"^it contains {number}: numbers must be finite$"):
        read_bundle(TEXT.replace('"ordinal": 1', f'"ordinal": {number}', 1))
