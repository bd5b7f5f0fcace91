"""Every line of the demo's script reaches the NPC that its evening needs."""

from __future__ import annotations

from pathlib import Path

from demo.script import read_evening
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.ids import NpcId, PlayerId, SceneId
from glyphoxa.language.roles import cast_of
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import Addressing

DEMO = Path(__file__).parents[3] / "demo"


def meant_by(text: str, *, player: str, scene: str) -> NpcId | None:
    campaign = read_campaign(DEMO / "campaign.yaml").campaign
    said = TableNames(campaign, now_ms=lambda: 0).understand(text)
    called = {npc.id: npc.name for npc in campaign.npcs}
    present = campaign.scene(SceneId(scene)).npcs
    return Addressing(cast_of(campaign)).decide(PlayerId(player), said, present=present, names=called, at_ms=0).npc


def test_every_demo_line_reaches_its_npc_without_context() -> None:
    for session in read_evening(DEMO / "evening.yaml").sessions:
        for part in session.parts:
            for line in part.lines:
                assert meant_by(line.text, player=line.player, scene=part.scene) == line.to != "", line.id
