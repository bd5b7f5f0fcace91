"""Every line of the demo's script reaches the NPC that its evening needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.script import read_evening
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.ids import NpcId, PlayerId, SceneId
from glyphoxa.language.roles import cast_of
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import Addressing

DEMO = Path(__file__).parents[3] / "demo"
KORVALD, MARIGUND = NpcId("korvald"), NpcId("marigund")


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


@pytest.mark.parametrize("scene", ["inn", "market"])
def test_the_gossip_line_reaches_marigund_as_the_recogniser_hears_it(scene: str) -> None:
    heard = "Marigund has the Smith told you anything about my brother."
    assert meant_by(heard, player="hanna", scene=scene) == MARIGUND


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Smith has the innkeeper told you anything?", KORVALD),
        ("Innkeeper what did the smith say?", MARIGUND),
        ("Smith can Marigund help me?", KORVALD),
        ("Korvald, do you know where Marigund is?", KORVALD),
        ("Marigund has the smith's lantern for you.", None),
    ],
)
def test_first_called_npc_is_addressed_at_the_market(text: str, meant: NpcId | None) -> None:
    assert meant_by(text, player="hanna", scene="market") == meant
