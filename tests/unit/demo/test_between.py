from __future__ import annotations

from pathlib import Path

from demo.between import between
from glyphoxa.domain.ids import CampaignId


def test_what_is_not_answered_is_told_and_spoils_nothing(tmp_path: Path) -> None:
    noted: list[str] = []
    between(tmp_path / "missing.yaml", CampaignId("town"), "town-1", noted.append)
    asked = [line for line in noted if "glyphoxa show recap town-1" in line]
    assert len(asked) == 2
    assert sum("missing.yaml" in line for line in noted) == 3
