"""Every line of the demo's script reaches the NPC that its evening needs."""

from __future__ import annotations

from pathlib import Path

from demo.script import read_evening
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import Addressing, Said
from glyphoxa.turns.cast import cast_of

DEMO = Path(__file__).parents[3] / "demo"
KORVALD, MARIGUND = NpcId("korvald"), NpcId("marigund")
MEANT = {
    "greeting": KORVALD,
    "fen": MARIGUND,
    "sorcerer": KORVALD,
    "pass": MARIGUND,
    "mine": KORVALD,
    "tower": MARIGUND,
    "interruption": MARIGUND,
    "brother": KORVALD,
    "lantern": KORVALD,
    "back": KORVALD,
    "remember": KORVALD,
    "gossip": MARIGUND,
    "know": MARIGUND,
}


def test_every_line_of_the_demo_reaches_its_npc_also_without_what_was_said_before() -> None:
    evening = read_evening(DEMO / "evening.yaml")
    campaign = read_campaign(evening.campaign).campaign
    names = TableNames(campaign, now_ms=lambda: 0)
    called = {npc.id: npc.name for npc in campaign.npcs}
    meant: dict[str, NpcId | None] = {}
    for session in evening.sessions:
        for part in session.parts:
            present = campaign.scene(next(s.id for s in campaign.scenes if s.id == part.scene)).npcs
            for line in part.lines:
                said = Said(PlayerId(line.player), line.text, names.mentions(line.text))
                decided = Addressing(cast_of(campaign)).decide(said, present=present, names=called, at_ms=0)
                meant[line.id] = decided.npc
    assert meant == MEANT
