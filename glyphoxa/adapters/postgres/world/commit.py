"""Events committed to a world: checked one by one on what they read, appended to the log, brought into the tables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.gc_pause import gc_paused
from glyphoxa.adapters.postgres.server.offload import offload
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.world.transaction import WorldTransaction
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.world.api import Cause, Event, FactStated, StateRows, WorldEvent, WorldState, apply
from glyphoxa.world.encoding import encode, event_type
from glyphoxa.world.state import Key, Missing

_COMMIT_DEADLINE_MS: Final = 10_000
_PER_EVENT_MS: Final = 5
_MANY: Final = 50
"""Events for which it is worth while to plan each statement anew, which takes some milliseconds."""
_WORTH_ANALYZING: Final = 1_000
_ANALYZE_DEADLINE_MS: Final = 10_000


def commit_deadline_ms(amount: int) -> int:
    return _COMMIT_DEADLINE_MS + _PER_EVENT_MS * amount


async def commit(
    world: WorldTransaction, events: Sequence[Event], cause: Cause, *, accept_at: float, expect: int | None = None
) -> list[WorldEvent]:
    """See `World.commit`. The caller holds the lock of the campaign."""
    with gc_paused(amount=len(events)):
        return await _commit(world, [_with_threshold(event, accept_at) for event in events], cause, expect=expect)


async def analyze_if_grown(database: Database, committed: Sequence[WorldEvent]) -> None:
    """After many events at once that made the world twice as large, or more."""
    if len(committed) < _MANY or committed[-1].seq < _WORTH_ANALYZING:
        return
    if (committed[0].seq - 1).bit_length() == committed[-1].seq.bit_length():
        return
    with suppress(Unavailable):  # what was committed is kept all the same
        async with database.administer(deadline_ms=_ANALYZE_DEADLINE_MS) as connection:
            await connection.execute(load_queries("world/commit")["analyze"])


async def _commit(
    world: WorldTransaction, events: Sequence[Event], cause: Cause, *, expect: int | None
) -> list[WorldEvent]:
    if len(events) >= _MANY:
        await world.connection.execute(load_queries("world/commit")["custom_plans"])
    encoded = await offload(lambda: [encode(event) for event in events], amount=len(events))
    head = await world.log.head()
    if expect is not None and expect != head.seq:
        raise InvalidInput(
            f"the world of campaign {world.campaign!r} has changed meanwhile: its last event is {head.seq}, "
            f"not {expect}; look again"
        )
    recorded = [WorldEvent(seq, cause, each.event) for seq, each in enumerate(encoded, start=head.seq + 1)]
    state = WorldState.partial()
    state.load([("rules",)], StateRows(rules=head.rules))
    asked = await offload(lambda: {key for one in recorded for key in one.event.read_set()}, amount=len(recorded))
    await world.tables.load(state, asked)
    await _apply(world, state, recorded)
    await world.log.append(encoded, cause, after=head.seq)
    await world.tables.write(await offload(state.changes, amount=len(recorded)))
    return recorded


async def _apply(world: WorldTransaction, state: WorldState, events: Sequence[WorldEvent]) -> None:
    done, missing = 0, frozenset[Key]()
    while done < len(events):
        if missing:
            await world.tables.load(state, missing)
        waiting = events[done:]
        n, missing = await offload(partial(_apply_some, state, waiting, len(events)), amount=len(waiting))
        done += n


def _with_threshold(event: Event, accept_at: float) -> Event:
    """What is stated is judged by the settings of its time, in every replay too."""
    if not isinstance(event, FactStated) or event.provenance.accept_at == accept_at:
        return event
    return replace(event, provenance=replace(event.provenance, accept_at=accept_at))


def _apply_some(state: WorldState, events: Sequence[WorldEvent], total: int) -> tuple[int, frozenset[Key]]:
    """As many as the state knows enough for: how many, and what the next one lacks.

    Raises:
        InvalidInput: One of them cannot be said of this world.
    """
    for n, recorded in enumerate(events):
        try:
            if (problem := recorded.event.failed_precondition(state)) is not None:
                which = f"{total - len(events) + n + 1}. of {total} events, " if total > 1 else ""
                raise InvalidInput(f"{which}{event_type(recorded.event)}: {problem}")
            apply(state, recorded)
        except Missing as missing:
            return n, missing.keys
    return len(events), frozenset()
