"""A question to everybody goes to the NPC that it concerns by meaning, as the real embeddings model judges."""

from __future__ import annotations

import pytest

from glyphoxa.adapters.local.minilm import MiniLm
from glyphoxa.domain.campaign import Campaign, Entity, Npc
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId
from glyphoxa.language.roles import cast_of
from glyphoxa.names.people import Understood
from glyphoxa.turns.address import Addressing, Expertise
from tests.support.weights import weights

pytestmark = pytest.mark.models

JON = PlayerId("jon")
SHIP = {
    "Ada": ("ship's medic", "Ada patches up the crew."),
    "Rook": ("pilot", "Rook flies the ship."),
    "Quill": ("chief engineer", "Quill keeps the drive running."),
}
TOWN = {
    "Mari": ("innkeeper", "Mari keeps the Heron."),
    "Korv": ("blacksmith", ""),
    "Ans": ("priest", "Ans tends the chapel."),
    "Ilse": ("hunter", "Ilse knows every path of the fen."),
}
DORF = {"Mari": ("Wirtin", ""), "Ernst": ("Schmied", ""), "Wolf": ("Jäger", "Wolf kennt jeden Pfad im Moor.")}


def campaign_of(people: dict[str, tuple[str, str]]) -> Campaign:
    entities = tuple(
        Entity(EntityId(name), "npc", name, (), {"description": told} if told else {})
        for name, (_, told) in people.items()
    )
    npcs = tuple(Npc(NpcId(name), EntityId(name), name, "", role=role) for name, (role, _) in people.items())
    return Campaign(CampaignId("here"), "Here", "en", entities, (), npcs, (), ())


@pytest.fixture(scope="module")
def minilm() -> MiniLm:
    return MiniLm(weights("minilm-l6-v2-int8"))


@pytest.mark.parametrize(
    ("people", "asked"),
    [
        (
            SHIP,
            {
                "Could somebody look at this cut?": "Ada",
                "Does anybody have something for a headache?": "Ada",
                "Can somebody fix the reactor?": "Quill",
                "Does anyone know what day it is?": None,
            },
        ),
        (
            TOWN,
            {
                "Does anyone here have a place to sleep?": "Mari",
                "Can anyone lift a curse?": "Ans",
                "Can anybody repair a helmet?": "Korv",
                "Would anyone like to dance?": None,
                "Does anyone know who killed the baron?": None,
                "Has anybody seen a black dog?": None,
            },
        ),
        (DORF, {"Hat hier jemand ein Bett für uns?": "Mari", "Hat jemand den Grafen gesehen?": None}),
    ],
)
def test_question_to_all_reaches_whom_it_concerns(
    minilm: MiniLm, people: dict[str, tuple[str, str]], asked: dict[str, str | None]
) -> None:
    campaign = campaign_of(people)
    addressing = Addressing(cast_of(campaign), Expertise.of(campaign, minilm.embed).fitting)
    called = {npc.id: npc.name for npc in campaign.npcs}

    def decided(text: str) -> NpcId | None:
        return addressing.decide(JON, Understood.of(text), present=tuple(called), names=called, at_ms=1_000).npc

    assert {text: decided(text) for text in asked} == asked
