"""`glyphoxa discord`: each command in an in-memory Discord, on a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.discord_server import DiscordServer, a_discord_server, messages_of, text_of


@pytest.fixture
async def discord(evenings_dsn: str, tmp_path: Path) -> AsyncIterator[DiscordServer]:
    async with a_discord_server(evenings_dsn, tmp_path) as server:
        yield server


async def test_dm_adds_lists_and_removes_an_entity(discord: DiscordServer) -> None:
    added = await discord.told(
        discord.dm, "entity add", name="Old Bess", type="npc", attributes='--occupation "ferry woman" --level 9'
    )
    assert "Old Bess" in added
    bess = (await discord.desk()).resolver.entity("Old Bess")
    assert bess.attributes == {"occupation": "ferry woman", "level": 9}
    assert "Old Bess (npc)" in await discord.told(discord.dm, "entity list", type="npc")
    asked = await discord.dm.slash(discord.channel, "entity remove", name="Old Bess")
    assert "This removes Old Bess (npc)" in text_of(asked)
    [message] = messages_of(asked)
    await discord.dm.click(message, label="Confirm")
    assert "old-bess" not in (await discord.desk()).resolver.entities
