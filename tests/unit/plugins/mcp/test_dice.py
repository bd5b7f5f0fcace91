from __future__ import annotations

import pytest

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.plugins.mcp.server import roll


@pytest.mark.parametrize(
    ("dice", "rolled", "total"),
    [("d20", [20], 20), ("2d6", [6, 6], 12), ("3d8+4", [8, 8, 8], 28), ("d100 - 1", [100], 99), ("2W10", [10, 10], 20)],
)
def test_each_die_is_rolled_and_what_is_added_counts(dice: str, rolled: list[int], total: int) -> None:
    assert roll(dice, die=lambda sides: sides) == {"found": [{"dice": dice, "rolled": rolled, "total": total}]}


@pytest.mark.parametrize("dice", ["", "20", "0d6", "101d6", "d1", "d1001", "999d9999", "d20d20", "1d٣", "x" * 5_000])
def test_what_is_no_dice_or_too_many_is_refused(dice: str) -> None:
    with pytest.raises(InvalidInput, match=r"valid: d20|1 to 100 dice") as refused:
        roll(dice, die=lambda sides: sides)
    assert len(str(refused.value)) < 200
