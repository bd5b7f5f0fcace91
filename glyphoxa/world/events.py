"""What can happen to a campaign's world, how it stands in the log, and the state that follows from the log.

The log is the source of truth. An event says what was stated or decided, never what followed from it. An event about a
fact or an entity that is not there changes nothing, so the log can be replayed without some of its events.

Each kind of event has, beside its fields:

    read_set()                  what it asks of a partial state: see `glyphoxa.world.change`
    failed_precondition(state)  why it cannot be said of the world as it is; None when it can
    effect(change)              what it does to a state
    in_words(words)             what happened, for the DM

Events are stored under their class name in snake case and read as long as there are campaigns. Add a new kind to the
module of its family and to `Event`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from glyphoxa.domain.ids import FactId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Origin
from glyphoxa.world.change import Change
from glyphoxa.world.entity_events import (
    AliasAdded,
    AliasRemoved,
    EntitiesMerged,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    SlotDeclared,
)
from glyphoxa.world.fact_events import (
    FactClosed,
    FactConfirmed,
    FactRejected,
    FactReplaced,
    FactRevealed,
    FactScoped,
    FactStated,
    FactTold,
)
from glyphoxa.world.state import TABLES, Changes, Key, WorldState, changes_of
from glyphoxa.world.wording import Words


class Undoing:
    """An event that leaves out others. It has no effect of its own: see `glyphoxa.world.events`."""

    __slots__ = ()

    def dropped(self) -> tuple[int, ...]:
        """Numbers of the events that it leaves out."""
        raise NotImplementedError

    def read_set(self) -> Iterator[Key]:
        yield from ()

    def failed_precondition(self, state: WorldState) -> str | None:
        return "undoing is not stated: ask for it"

    def effect(self, change: Change) -> None:
        raise ValueError(f"event {change.seq} speaks of other events: replay what remains")


@dataclass(frozen=True, slots=True)
class Undone(Undoing):
    """As if that event had not been. Undoing this one brings it back."""

    event: int

    def dropped(self) -> tuple[int, ...]:
        return (self.event,)

    def in_words(self, words: Words) -> str:
        return f"undid event {self.event}"


@dataclass(frozen=True, slots=True)
class RolledBack(Undoing):
    """As if nothing had been learned from what was said behind that ordinal.

    Attributes:
        events: All that are left out, as they were found at that time.
    """

    session: SessionId
    ordinal: int
    events: tuple[int, ...]

    def dropped(self) -> tuple[int, ...]:
        return self.events

    def in_words(self, words: Words) -> str:
        return f"rolled back to ordinal {self.ordinal} of session {self.session}: {len(self.events)} events dropped"


@dataclass(frozen=True, slots=True)
class TalkErased(Undoing):
    """Talk was erased for good, and what was learned from it. It stands at the end of the log once, and in the place
    of each event whose words were erased, with no events of its own: those change nothing any more, and bringing this
    one back brings nothing back.

    Attributes:
        events: As of `RolledBack`.
    """

    events: tuple[int, ...] = ()

    def dropped(self) -> tuple[int, ...]:
        return self.events

    def in_words(self, words: Words) -> str:
        return f"talk was erased, and {len(self.events)} events with it" if self.events else "erased with what was said"


# The DM's word on what was said: what was learned from it alone is left out, as if it had not been said so.


@dataclass(frozen=True, slots=True)
class UtteranceRetracted(Undoing):
    """As if it had not been said, and nothing learned from it.

    Attributes:
        events: As of `RolledBack`.
    """

    utterance: UtteranceId
    session: SessionId
    ordinal: int
    events: tuple[int, ...]

    def dropped(self) -> tuple[int, ...]:
        return self.events

    def in_words(self, words: Words) -> str:
        said = f"what was said at ordinal {self.ordinal} of session {self.session}"
        return f"retracted {said}: {len(self.events)} events dropped"


@dataclass(frozen=True, slots=True)
class UtteranceCorrected(Undoing):
    """As if other words had been said, and nothing learned from the old ones.

    Attributes:
        was: What stood there.
        events: As of `RolledBack`.
    """

    utterance: UtteranceId
    session: SessionId
    ordinal: int
    was: str
    text: str
    events: tuple[int, ...]

    def dropped(self) -> tuple[int, ...]:
        return self.events

    def in_words(self, words: Words) -> str:
        dropped = f": {len(self.events)} events dropped" if self.events else ""
        said = f"ordinal {self.ordinal} of session {self.session}"
        return f"corrected {said} from {self.was!r} to {self.text!r}{dropped}"


TakenBack: TypeAlias = RolledBack | UtteranceRetracted | UtteranceCorrected | TalkErased
"""What leaves out all of its `events`."""


Event: TypeAlias = (
    EntityAdded
    | EntityChanged
    | AliasAdded
    | AliasRemoved
    | EntityScoped
    | EntityRemoved
    | EntitiesMerged
    | FactStated
    | FactConfirmed
    | FactRejected
    | FactReplaced
    | FactClosed
    | FactScoped
    | FactRevealed
    | FactTold
    | SlotDeclared
    | Undone
    | RolledBack
    | UtteranceRetracted
    | UtteranceCorrected
    | TalkErased
)


@dataclass(frozen=True, slots=True)
class Cause:
    """What brought an event about.

    Attributes:
        at_ms: When it happened: when it was said, or when the DM decided. Milliseconds since the Unix epoch.
        ordinal: Number of the utterance in its session, for what was learned from talk.
    """

    by: Origin
    at_ms: int
    session_id: SessionId | None = None
    ordinal: int | None = None
    utterance_id: UtteranceId | None = None


@dataclass(frozen=True, slots=True)
class WorldEvent:
    """An event in the log of its campaign.

    Attributes:
        seq: From 1, without a gap.
    """

    seq: int
    cause: Cause
    event: Event


# State from one event: its effect, and what its facts are worth then (`status`).


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
    return changes_of({table: (getattr(before, table), getattr(after, table)) for table in TABLES})


# Which events of a log hold what was said in talk that is erased, and what stands in their place.


def without_words(
    events: Sequence[WorldEvent],
    utterances: Collection[UtteranceId],
    places: Collection[tuple[SessionId, int]],
) -> list[WorldEvent]:
    """The events that must be kept otherwise, as they are kept then; each keeps its number and its cause. What was
    learned from one of these utterances, alone or together with others, becomes a `TalkErased`; so does what the game
    master put in the place of such a fact. A correction of one of them keeps no words.

    Args:
        events: All of the log, in order.
        utterances: What is erased; `places`: the same, by session and ordinal.
    """
    said, at = frozenset(utterances), frozenset(places)
    learned = {each.seq for each in events if _is_learned(each, said, at)}
    held = {_states(each) for each in events if each.seq not in learned} - {None}
    gone = {fact for each in events if each.seq in learned and (fact := _states(each)) not in held and fact is not None}
    changed: list[WorldEvent] = []
    for each in events:
        event = each.event
        if isinstance(event, FactReplaced) and event.fact in gone:
            if event.claim.fact_id not in held:
                gone.add(event.claim.fact_id)
            learned.add(each.seq)
        if each.seq in learned:
            changed.append(replace(each, event=TalkErased()))
        elif isinstance(event, UtteranceCorrected) and event.utterance in said and (event.was or event.text):
            changed.append(replace(each, event=replace(event, was="", text="")))
    return changed


def _is_learned(recorded: WorldEvent, said: frozenset[UtteranceId], at: frozenset[tuple[SessionId, int]]) -> bool:
    cause, event = recorded.cause, recorded.event
    if cause.by != "talk" or isinstance(event, TalkErased):
        return False
    if cause.utterance_id in said:
        return True
    if cause.session_id is not None and cause.ordinal is not None and (cause.session_id, cause.ordinal) in at:
        return True
    evidence = event.attributes.get("evidence") if isinstance(event, FactStated) else None
    return isinstance(evidence, Sequence) and not said.isdisjoint(evidence)


def _states(recorded: WorldEvent) -> FactId | None:
    return recorded.event.claim.fact_id if isinstance(recorded.event, FactStated) else None
