"""No sentence that a DM wrote as an NPC's answer is cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.context.identity import default_examples
from glyphoxa.domain.campaign import Campaign, Exchange, Npc
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.sentence_check import SentenceCheck

DEMO = read_campaign(Path(__file__).parents[3] / "demo" / "campaign.yaml").campaign


def examples_of(campaign: Campaign, npc: Npc) -> list[Exchange]:
    return [*npc.examples, *default_examples(campaign, npc, None)]


@pytest.mark.parametrize("npc", DEMO.npcs, ids=lambda npc: npc.id)
def test_what_its_examples_answer_is_said_whole(npc: Npc) -> None:
    others = tuple(other.name for other in (*DEMO.npcs, *DEMO.players) if other.name != npc.name)
    examples = examples_of(DEMO, npc)
    assert examples
    for example in examples:
        kept = (example.kept,) if example.kept else ()
        check = SentenceCheck(Character(npc.name, npc.aliases, others), Asked(example.said, kept=kept))
        assert check.decide(example.reply).text == example.reply
