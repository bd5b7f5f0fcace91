"""Who somebody is in secret: what a merge of the two tells nobody, at an open table with the real database."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.world.event_kinds import EntitiesMerged
from glyphoxa.world.event_log import Cause
from tests.support.live_table import an_evening, patient, settings_for, write_campaign

BARON, STRANGER, OLD_MAN = EntityId("baron-aldric"), EntityId("the-hooded-stranger"), EntityId("old-tobin")


async def test_who_hears_the_name_of_a_secret_identity_is_not_told_whose_it_is(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = write_campaign(
        tmp_path,
        others=["Eldrinax"],
        more=[
            {"name": "Baron Aldric", "type": "npc", "attributes": {"description": "The ruler of the valley."}},
            {"name": "The Hooded Stranger", "type": "npc", "known_by": ["Grimjaw"]},
            {"name": "Old Tobin", "type": "npc"},
        ],
    )
    settings = settings_for(campaign, dsn, tmp_path)
    settings = patient(settings)
    async with an_evening(settings, monkeypatch) as evening:
        async with open_store(dsn) as store:
            merges = [EntitiesMerged(BARON, STRANGER), EntitiesMerged(BARON, OLD_MAN)]
            await store.world.commit(CampaignId("town"), merges, Cause("dm", at_ms=1))
        assert "Aldric" not in (await evening.asked("Eldrinax, who is The Hooded Stranger?")).prompt.text
        assert "ruler of the valley" in (await evening.asked("Eldrinax, what of Baron Aldric?")).prompt.text
        assert "ruler of the valley" in (await evening.asked("Eldrinax, what of Old Tobin?")).prompt.text
