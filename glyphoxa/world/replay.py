"""State from events: all of them, or those that remain when some are undone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from glyphoxa.world.events.log import WorldEvent
from glyphoxa.world.events.undo import Undoing
from glyphoxa.world.projection import apply
from glyphoxa.world.rows import Changes, changes_of
from glyphoxa.world.state import WorldState


def dropped(events: Sequence[WorldEvent]) -> set[int]:
    """Numbers of the events that are as if they had not been. An undoing that was itself undone drops nothing."""
    numbers: set[int] = set()
    for recorded in reversed(events):
        if recorded.seq in numbers:
            continue
        if isinstance(recorded.event, Undoing):
            numbers.update(recorded.event.dropped())
    return numbers


def remaining(events: Sequence[WorldEvent]) -> list[WorldEvent]:
    """What is left to be applied, in order.

    Args:
        events: In order, without a gap.
    """
    without = dropped(events)
    return [e for e in events if e.seq not in without and not isinstance(e.event, Undoing)]


def replay(events: Iterable[WorldEvent], *, onto: WorldState | None = None) -> WorldState:
    """The state after the remaining ones of `events`.

    Args:
        onto: A state to go on from; it is changed. The events must undo nothing that is in it.
    """
    state = WorldState() if onto is None else onto
    for event in remaining(list(events)):
        apply(state, event)
    state.begin()
    return state


def difference(before: WorldState, after: WorldState) -> Changes:
    """What must be written to make one complete state of the other."""
    return changes_of(
        {
            "entities": (before.entities, after.entities),
            "merged": (before.merged, after.merged),
            "facts": (before.facts, after.facts),
            "ended": (before.ended, after.ended),
            "rules": (before.rules, after.rules),
        }
    )
