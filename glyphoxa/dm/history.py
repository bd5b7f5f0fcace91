"""Reading a campaign's log of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from glyphoxa.domain.ids import CampaignId
from glyphoxa.domain.knowledge import Claim, Fact
from glyphoxa.world.api import (
    EntitiesMerged,
    EntityRemoved,
    FactReplaced,
    FactStated,
    RolledBack,
    Undone,
    UtteranceCorrected,
    UtteranceRetracted,
    World,
    WorldEvent,
)

_AT_ONCE: Final = 5_000


async def all_events(world: World, campaign: CampaignId) -> list[WorldEvent]:
    """In order."""
    events: list[WorldEvent] = []
    while True:
        page = await world.events(campaign, after=events[-1].seq if events else 0, limit=_AT_ONCE)
        events += page
        if len(page) < _AT_ONCE:
            return events


def events_about(fact: Fact, events: Sequence[WorldEvent]) -> list[WorldEvent]:
    """Those of `events` that stated, changed or ended the fact or one of its entities, and what undid them."""
    about: list[WorldEvent] = []
    numbers: set[int] = set()
    ends = {fact.claim.subject, fact.claim.object} - {None}
    for recorded in events:
        match recorded.event:
            case FactStated(claim=claim):
                concerns = _says(claim, fact)
                if concerns:
                    ends |= {claim.subject, claim.object} - {None}
            case FactReplaced(fact=old, claim=claim):
                concerns = old == fact.id or _says(claim, fact)
            case EntitiesMerged(kept, gone):
                concerns = gone in ends or (kept in ends and bool(numbers))
            case EntityRemoved(entity):
                concerns = entity in ends
            case Undone(undone):
                concerns = undone in numbers
            case RolledBack() | UtteranceRetracted() | UtteranceCorrected() as taken_back:
                concerns = not numbers.isdisjoint(taken_back.events)
            case other:
                concerns = getattr(other, "fact", None) == fact.id
        if concerns:
            about.append(recorded)
            numbers.add(recorded.seq)
    return about


def _says(claim: Claim, fact: Fact) -> bool:
    """Whether a claim is what the fact says, or said when it was first stated: a merge changes its entities."""
    return claim == fact.claim or claim.fact_id == fact.id.partition("-")[0]
