"""State from one event: its effect, and what its facts are worth then (`status`)."""

from __future__ import annotations

from glyphoxa.world.change import Change
from glyphoxa.world.events.log import WorldEvent
from glyphoxa.world.state import WorldState


def apply(state: WorldState, recorded: WorldEvent) -> None:
    """Change the state by one event, wholly or, when it raises, not at all.

    Raises:
        Missing: The state is partial and lacks something.
        ValueError: The event speaks of other events: that is for `replay`.
    """
    savepoint = state.savepoint()
    try:
        recorded.event.effect(Change(state, seq=recorded.seq, at_ms=recorded.cause.at_ms))
    except BaseException:  # whatever it was, the state is as before
        state.roll_back_to(savepoint)
        raise
