"""Each target of `make fuzz`, for a few inputs that are always the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.running import FuzzTarget, fuzz, seeds_of
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_target_takes_its_seeds_and_what_becomes_of_them(target: FuzzTarget, tmp_path: Path) -> None:
    assert seeds_of(target)
    fuzz(target, tmp_path / "input", n_inputs=50, start=1)
