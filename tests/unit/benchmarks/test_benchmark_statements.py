"""The benchmark of kinds of statements reads its labelled lines, and the shipped weights know most of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.statements import fitted, found_in, judged, read
from glyphoxa.chronicle.kinds import Kind
from glyphoxa.domain.errors import InvalidInput
from tests.support.vocabulary import ROOT

LINES = ROOT / "benchmarks" / "data" / "statements" / "lines.tsv"


def test_shipped_weights_take_hardly_anything_for_now_that_is_not() -> None:
    judgements = judged(read(LINES)[::5], None)
    other = [found for each, found in judgements if each.kind is not Kind.NOW]
    now = [found for each, found in judgements if each.kind is Kind.NOW]
    assert other.count(Kind.NOW) <= 0.02 * len(other)
    assert now.count(Kind.NOW) >= 0.9 * len(now)


def test_features_tell_the_claim_from_its_surroundings() -> None:
    found = found_in("They say that <[Ysra] owns the [Long Barn]>, and it rains.")
    assert found is not None
    assert {"claim:nn owns", "front:*hearsay", "any:*hearsay"} <= found
    assert "claim:*hearsay" not in found
    assert found_in("Nothing is marked here.") is None


def test_weights_are_fitted_to_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "lines.tsv"
    rows = [f"en\tbarn\t{kind}\t<[Ysra] {kind} [Odo]>, {kind}.\n" for kind in Kind for _ in range(3)]
    path.write_text("".join(rows), "utf-8")
    statements = read(path)
    weights = fitted(statements)
    assert set(weights) == set(Kind)
    assert all(found is not Kind.NOW for each, found in judged(statements, weights) if each.kind is not Kind.NOW)


@pytest.mark.parametrize("row", ["en\tbarn\tnow", "en\tbarn\tlater\t<[Ysra] waits>.", "en\tbarn\tnow\tYsra waits."])
def test_bad_line_is_reported_with_its_place(tmp_path: Path, row: str) -> None:
    path = tmp_path / "lines.tsv"
    path.write_text(f"{row}\n", "utf-8")
    with pytest.raises(InvalidInput, match=r"lines\.tsv:1: .*a claim in <> and its names in \[\]"):
        read(path)
