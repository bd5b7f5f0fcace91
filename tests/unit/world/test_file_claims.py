"""The world of a campaign's file, as a table without a database has it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.dm.campaign_diff import changes
from glyphoxa.domain.campaign import Campaign, Relationship
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import Claim, Provenance, Status
from glyphoxa.world.event_log import Cause, WorldEvent, apply
from glyphoxa.world.file_claims import state_of_file
from glyphoxa.world.state import WorldState
from tests.support.builders import a_campaign

SMITH, INNKEEPER, WIZARD = (EntityId(f"e-{name}") for name in ("grimjaw", "mirelle", "eldrinax"))


def between(source: EntityId, kind: str, target: EntityId, *, confidence: float = 1.0) -> Relationship:
    return Relationship(source, target, kind, confidence=confidence, dm_confirmed=confidence == 1.0)


def stored(campaign: Campaign) -> WorldState:
    """Return the world of a database into which the file was loaded."""
    state = WorldState()
    firm = Provenance(dm_confirmed=True, origin="campaign_file", accept_at=0.7)
    loaded = changes(None, campaign, state, firm).events
    for seq, event in enumerate(loaded, start=1):
        apply(state, WorldEvent(seq, Cause("campaign_file", 0), event))
    return state


def statuses(state: WorldState) -> dict[Claim, Status]:
    return {fact.claim: fact.status for fact in state.facts.values()}


@pytest.mark.parametrize(
    ("more", "slots"),
    [
        ((), {}),
        ((between(SMITH, "ALLIED_WITH", WIZARD, confidence=0.4),), {}),
        ((between(SMITH, "ALLIED_WITH", WIZARD), between(SMITH, "HOSTILE_TO", WIZARD)), {}),
        ((between(SMITH, "SERVES", WIZARD), between(SMITH, "SERVES", INNKEEPER)), {"SERVES": "one"}),
        ((between(SMITH, "SERVES", WIZARD), between(INNKEEPER, "SERVES", WIZARD)), {"SERVES": "functional_object"}),
    ],
)
def test_world_of_a_file_has_the_statuses_of_a_database(more: tuple[Relationship, ...], slots: dict[str, str]) -> None:
    plain = a_campaign()
    campaign = replace(plain, relationships=(*plain.relationships, *more), slots=slots)
    assert statuses(state_of_file(campaign, accept_at=0.7)) == statuses(stored(campaign))
