"""Facts that the DM hides leave every part of an open table's prompts, with the real database."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.domain.ids import CampaignId, EntityId, SceneId
from glyphoxa.domain.knowledge import HIDDEN
from glyphoxa.world.event_kinds import EntityScoped
from glyphoxa.world.event_log import Cause
from tests.support.live_table import an_evening, patient, settings_for, write_campaign

TOWN = CampaignId("town")


async def test_a_place_that_is_hidden_is_in_neither_the_scene_nor_the_default_examples(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = {"source": "Grimjaw", "type": "LOCATED_AT", "target": "Ironhold"}
    settings = patient(settings_for(write_campaign(tmp_path, relationships=[lives]), dsn, tmp_path))
    async with an_evening(settings, monkeypatch) as evening:
        await evening.table.move(SceneId("inn"))
        prompt = (await evening.asked("Grimjaw, how is the ale?")).prompt.text
        assert "Near Ironhold." in prompt and "You find me at Ironhold." in prompt
        async with open_store(dsn) as store:
            await store.world.commit(TOWN, [EntityScoped(EntityId("ironhold"), HIDDEN)], Cause("dm", 1))
        assert "Near Ironhold." not in (await evening.asked("Grimjaw, is the soup hot?")).prompt.text
        await evening.table.move(SceneId("forge"))
        await evening.table.move(SceneId("inn"))
        assert "Ironhold" not in (await evening.asked("Grimjaw, how are you?")).prompt.text
