"""Who is called: titles, parts of names, roles, greetings and text role-play, by the cases of `called.tsv`."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.domain.campaign import Campaign, Npc, Player
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, slug
from glyphoxa.language.roles import cast_of
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import Addressing

TAMSIN = PlayerId("tamsin")
CASES = [
    line.split("\t")
    for line in (Path(__file__).parent / "called.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def campaign_of(language: str, listed: str) -> Campaign:
    npcs = []
    for each in listed.split("; "):
        name, _, role = each.partition("/")
        npcs.append(Npc(NpcId(name), EntityId(slug(name)), name, "", role=role))
    return Campaign(CampaignId("inn"), "Inn", language, (), (), tuple(npcs), (Player(TAMSIN, "Tamsin"),), ())


@pytest.mark.parametrize(("language", "listed", "last", "text", "meant"), CASES)
def test_line_reaches_the_npc(language: str, listed: str, last: str, text: str, meant: str) -> None:
    campaign = campaign_of(language, listed)
    addressing = Addressing(cast_of(campaign))
    if last:
        addressing.remember(TAMSIN, NpcId(last), at_ms=0)
    called = {npc.id: npc.name for npc in campaign.npcs}
    said = TableNames(campaign, now_ms=lambda: 0).understand(text)
    decided = addressing.decide(TAMSIN, said, present=tuple(called), names=called, at_ms=1_000)
    assert (decided.npc or "-") == meant, decided.reason
