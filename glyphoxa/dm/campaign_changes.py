"""What loading a campaign file does to the world: only what differs from the file as it was loaded before.

So what the DM decided in the meantime (a merge, an edit, a secret, something removed) survives a reload, and loading
the same file again does nothing. Where a change of the file meets such a decision, the decision stands and is pointed
out, unless the file changed that very thing.

What leaves a file is retconned, not closed: who takes a line out of his notes says that it never was so, not that it
ended today. A value that was changed there replaces the old one for as long as that was held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from glyphoxa.dm.campaign_claims import Loading, claims_of
from glyphoxa.dm.campaign_entities import EntityComparison
from glyphoxa.dm.campaign_facts import FactComparison, Findings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.world.api import Cause, Event, FactRejected, FactReplaced, FactScoped, WorldEvent, WorldState, apply

_LATER: Final = 2**62
"""The number of an event that is tried and never kept."""


@dataclass(frozen=True, slots=True)
class CampaignChanges:
    """
    Attributes:
        events: To be committed, in this order.
        added: What is new, in words for the DM; `changed` and `removed` likewise.
        remarks: Where a decision of the DM stands, or gives way, or waits for another.
        discreet_remarks: The same without what the facts say, for a log.
    """

    events: tuple[Event, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    discreet_remarks: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Neither the world nor what the campaign is otherwise (its NPCs, its scenes) changes."""
        return not (self.events or self.added or self.changed or self.removed)


def changes(previous: Campaign | None, new: Campaign, world: WorldState, loading: Loading) -> CampaignChanges:
    """
    Args:
        previous: The campaign as it was loaded before; None if it never was.
        world: As it is now, with all its entities and current facts; the past may be missing from it.

    Raises:
        InvalidInput: The campaign says what cannot be said: see `claims_of`.
    """
    nothing = replace(new, entities=(), relationships=(), npcs=(), players=(), scenes=(), secrets=(), slots={})
    before = nothing if previous is None else previous
    found = Findings()
    EntityComparison(before, new, world, loading.origin, found).run()
    FactComparison(
        before=claims_of(before, world.resolve, loading),
        now=claims_of(new, world.resolve, loading),
        rules=new.slots,
        world=world,
        found=found,
    ).run()
    _compare_people(before, new, found)
    return CampaignChanges(
        tuple(_possible(found.made, world)),
        tuple(found.added),
        tuple(found.changed),
        tuple(found.removed),
        tuple(found.remarks),
        tuple(found.remarks.values()),
    )


def _possible(events: Sequence[Event], world: WorldState) -> list[Event]:
    """Without those that an earlier one has left without the fact that they are about."""
    if not any(isinstance(event, FactRejected | FactReplaced | FactScoped) for event in events):
        return list(events)
    possible: list[Event] = []
    savepoint = world.savepoint()
    for event in events:
        if event.failed_precondition(world) is None:
            possible.append(event)
            apply(world, WorldEvent(_LATER, Cause("campaign_file", 0), event))
    world.roll_back_to(savepoint)
    return possible


def _compare_people(was: Campaign, now: Campaign, found: Findings) -> None:
    """What is not in the world, but of the table: only told."""
    for what in ("name", "language", "time_zone", "calendar", "story_day", "bible", "glossary"):
        if getattr(was, what) != getattr(now, what):
            found.changed.append(f"the campaign's {what.replace('_', ' ')}")
    # What players call an NPC is its entity's.
    _tell(
        "NPC",
        {n.name: replace(n, aliases=()) for n in was.npcs},
        {n.name: replace(n, aliases=()) for n in now.npcs},
        found,
    )
    _tell("player", {p.name: p for p in was.players}, {p.name: p for p in now.players}, found)
    _tell("scene", {s.id: s for s in was.scenes}, {s.id: s for s in now.scenes}, found)


def _tell(what: str, before: Mapping[Any, object], now: Mapping[Any, object], found: Findings) -> None:
    found.added += [f"{what} {name}" for name in now if name not in before]
    found.removed += [f"{what} {name}" for name in before if name not in now]
    found.changed += [f"{what} {name}" for name in now if name in before and before[name] != now[name]]
