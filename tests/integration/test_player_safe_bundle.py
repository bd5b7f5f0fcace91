"""A bundle for players, of random campaigns full of secrets: nothing that is not theirs is in the file."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.bundle import Parts
from glyphoxa.domain.ids import CampaignId
from tests.support.bundles import exported, exported_for_players, imported
from tests.support.command_line import CommandLine, a_settings_file
from tests.support.guarded_worlds import Words, a_guarded_campaign, play
from tests.support.world_tables import stands_as_replayed

OTHER = CampaignId("other")


@pytest.mark.parametrize("seed", range(4))
async def test_player_safe_bundle_contains_only_what_players_may_know(store: Store, seed: int) -> None:
    words = Words(random.Random(seed))
    campaign = a_guarded_campaign(words, CampaignId("town"))
    await store.campaigns.load(campaign)
    await play(store, words, campaign)

    whole = await exported(store, campaign.id)
    assert [word for word in words.guarded if word not in whole.lower()] == []  # each is a real secret
    text = await exported_for_players(store, campaign.id)
    assert [word for word in words.guarded if word in text.lower()] == []
    assert [word for word in words.public if word not in text.lower()] == []
    assert "talk" not in {row["by"] for row in json.loads(text)["tables"]["world_events"]}

    await imported(store, text, OTHER)
    await stands_as_replayed(store, OTHER)
    assert await store.log.count(OTHER) == len(json.loads(text)["tables"]["session_entries"])
    again = await exported(store, OTHER, Parts())  # there is nothing to ask about
    assert [word for word in words.guarded if word in again.lower()] == []
    assert (await store.campaigns.get(OTHER)).npcs == ()


async def test_player_safe_file_is_written_for_a_campaign_with_secrets(
    store: Store, dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, cli, path = (
        Words(random.Random(9)),
        CommandLine(a_settings_file(tmp_path, dsn), capsys),
        tmp_path / "safe.json",
    )
    campaign = a_guarded_campaign(words, CampaignId("town"))
    await store.campaigns.load(campaign)
    assert "--player-safe" in await cli.problem("campaign", "export", path, "--campaign", "town")
    assert "4 entities" in await cli.told("campaign", "export", path, "--campaign", "town", "--player-safe")
    assert "no embeddings" in await cli.problem(
        "campaign", "export", tmp_path / "x.json", "--player-safe", "--with-embeddings"
    )
    assert "4 entities" in await cli.told("campaign", "import", path, "--as", "other")
    assert [word for word in words.guarded if word in path.read_text("utf-8")] == []
