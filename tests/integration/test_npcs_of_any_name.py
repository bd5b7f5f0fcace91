"""An NPC that is called like a part of the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.domain.events import Degraded, Trouble
from glyphoxa.domain.ids import NpcId
from tests.support.live_table import Evening, an_evening, settings_for, write_campaign


def more_than(n: int, evening: Evening) -> list[Degraded]:
    found = [event for event in evening.told if isinstance(event, Degraded)]
    return found if len(found) > n else []


async def test_an_npc_called_scribe_falls_alone_and_what_is_said_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = [{"name": "Scribe", "type": "npc"}]
    settings = settings_for(write_campaign(tmp_path, more=more, others=["Scribe"]), "none", tmp_path)
    async with an_evening(settings, monkeypatch) as evening:
        (tamsin, *_) = (player.id for player in evening.table.campaign.players)
        scribe = evening.table.room.npcs[NpcId("scribe")]
        troubles: list[Degraded] = []
        while not any(trouble.trouble is Trouble.OUT for trouble in troubles):
            n = len(troubles)
            scribe.mailbox.post("what no NPC understands")  # type: ignore[arg-type]
            troubles = await evening.until(lambda n=n: more_than(n, evening))  # type: ignore[misc]
        assert {trouble.npc for trouble in troubles} == {NpcId("scribe")}
        evening.table.say(tamsin, "Grimjaw, are you there?")
        assert await evening.kept("Grimjaw, are you there?")
