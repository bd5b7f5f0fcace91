"""Events of a campaign's world, their place in the log, and the state that follows from the log.

The log is the source of truth. An event records what was stated or decided, never its consequences. An event about a
missing fact or entity changes nothing, so the log can be replayed without some of its events.

Besides its fields, each kind of event has:

    failed_precondition(state)  why it cannot be applied; None when it can
    effect(change)              what it does to a state
    in_words(names)             a description for the DM

Events are stored under their class name in snake case, and must stay readable as long as campaigns exist. Add a new
kind to `glyphoxa.world.event_kinds`, or here if it drops others, and to `Event`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from glyphoxa.domain.errors import counted
from glyphoxa.domain.heard import SpokenBy
from glyphoxa.domain.ids import FactId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Origin
from glyphoxa.language.facts import Names
from glyphoxa.names.wrong_forms import FormHeard
from glyphoxa.world.event_kinds import (
    AliasAdded,
    AliasRemoved,
    EntitiesMerged,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    FactClosed,
    FactConfirmed,
    FactRejected,
    FactReplaced,
    FactRevealed,
    FactScoped,
    FactStated,
    FactTold,
    SlotDeclared,
)
from glyphoxa.world.state import TABLES, Change, Changes, WorldState, changes_of


class Undoing:
    """Base of events that drop other events. They have no effect of their own."""

    __slots__ = ()
    events: tuple[int, ...]

    def dropped(self) -> tuple[int, ...]:
        """Numbers of the events that it drops."""
        return self.events

    def failed_precondition(self, state: WorldState) -> str | None:
        return "an undoing cannot be appended: call the method for it"

    def effect(self, change: Change) -> None:
        raise ValueError(f"event {change.seq} refers to other events: replay the remaining ones")


@dataclass(frozen=True, slots=True)
class Undone(Undoing):
    """Drops an event as if it had never happened. Undoing this one restores it."""

    event: int

    def dropped(self) -> tuple[int, ...]:
        return (self.event,)

    def in_words(self, names: Names) -> str:
        return f"undid event {self.event}"


@dataclass(frozen=True, slots=True)
class RolledBack(Undoing):
    """Drops everything learned from utterances after an ordinal of a session.

    Attributes:
        events: Numbers of all dropped events, as found at that time.
    """

    session: SessionId
    ordinal: int
    events: tuple[int, ...]

    def in_words(self, names: Names) -> str:
        return f"rolled back to line {self.ordinal} of {names.session(self.session)}: {_dropped(self.events)}"


@dataclass(frozen=True, slots=True)
class TalkErased(Undoing):
    """Erases utterances for good, with what was learned from them.

    One such event ends the log. Another replaces each event whose words were erased; its `events` are empty, so undoing
    it restores nothing.

    Attributes:
        events: See `RolledBack`.
    """

    events: tuple[int, ...] = ()

    def in_words(self, names: Names) -> str:
        also = f", with {counted(len(self.events), 'event')}" if self.events else ""
        return f"what was said was erased{also}"


# Changes of the transcript by the DM or by a player: facts learned only from that utterance are dropped.


@dataclass(frozen=True, slots=True)
class UtteranceRetracted(Undoing):
    """Drops an utterance and what was learned from it.

    Attributes:
        events: See `RolledBack`.
    """

    utterance: UtteranceId
    session: SessionId
    ordinal: int
    events: tuple[int, ...]

    def in_words(self, names: Names) -> str:
        said = f"what was said at line {self.ordinal} of {names.session(self.session)}"
        return f"retracted {said}: {_dropped(self.events)}"


@dataclass(frozen=True, slots=True)
class UtteranceWithheld(UtteranceRetracted):
    """The same by its player, who does not want it to be remembered. Undone when they allow it again."""

    def in_words(self, names: Names) -> str:
        said = f"what was said at line {self.ordinal} of {names.session(self.session)}"
        return f"not to be remembered: {said}; {_dropped(self.events)}"


@dataclass(frozen=True, slots=True)
class UtteranceCorrected(Undoing):
    """Replaces the words of an utterance, or its speaker, and drops what was learned from it.

    Attributes:
        was: The previous text.
        events: See `RolledBack`.
        was_by: The previous speaker; None if the speaker is unchanged. So is `by`, the new one.
    """

    utterance: UtteranceId
    session: SessionId
    ordinal: int
    was: str
    text: str
    events: tuple[int, ...]
    was_by: SpokenBy | None = None
    by: SpokenBy | None = None

    def in_words(self, names: Names) -> str:
        dropped = f": {_dropped(self.events)}" if self.events else ""
        said = f"line {self.ordinal} of {names.session(self.session)}"
        speaker = f", said by {self.by.name}" if self.by is not None else ""
        return f"corrected {said} from {self.was!r} to {self.text!r}{speaker}{dropped}"


def _dropped(events: Sequence[int]) -> str:
    return f"dropped {counted(len(events), 'event')}"


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
    | FormHeard
    | SlotDeclared
    | Undone
    | RolledBack
    | UtteranceRetracted
    | UtteranceWithheld
    | UtteranceCorrected
    | TalkErased
)


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of an event.

    Attributes:
        at_ms: When it was said or decided, milliseconds since the Unix epoch.
        ordinal: Number of the utterance in its session, for facts learned from the transcript.
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
        seq: From 1, without gaps.
    """

    seq: int
    cause: Cause
    event: Event


# Applying an event: its effect, then the status of the facts concerned.


def apply(state: WorldState, recorded: WorldEvent) -> None:
    """Change the state by one event.

    Raises:
        ValueError: The event refers to other events: use `replay`.
    """
    recorded.event.effect(Change(state, seq=recorded.seq, at_ms=recorded.cause.at_ms))


def dropped(events: Sequence[WorldEvent]) -> set[int]:
    """Numbers of the dropped events. An undoing that was itself undone drops nothing."""
    numbers: set[int] = set()
    for recorded in reversed(events):
        if recorded.seq in numbers:
            continue
        if isinstance(recorded.event, Undoing):
            numbers.update(recorded.event.dropped())
    return numbers


def remaining(events: Sequence[WorldEvent]) -> list[WorldEvent]:
    """The events left to apply, in order.

    Args:
        events: In order, without gaps.
    """
    without = dropped(events)
    return [e for e in events if e.seq not in without and not isinstance(e.event, Undoing)]


def replay(events: Iterable[WorldEvent], *, onto: WorldState | None = None) -> WorldState:
    """The state after the remaining ones of `events`.

    Args:
        onto: A state to continue from; it is changed. The events must not undo anything in it.
    """
    state = WorldState() if onto is None else onto
    for event in remaining(list(events)):
        apply(state, event)
    state.begin()
    return state


def difference(before: WorldState, after: WorldState) -> Changes:
    """The changes that turn one complete state into the other."""
    return changes_of({table: (getattr(before, table), getattr(after, table)) for table in TABLES})


# Erasure: which events of a log contain erased utterances, and what replaces them.


def without_words(
    events: Sequence[WorldEvent],
    utterances: Collection[UtteranceId],
    places: Collection[tuple[SessionId, int]],
) -> list[WorldEvent]:
    """The events that must be stored differently, in their new form, with their numbers and causes.

    What was learned from one of these utterances, alone or together with others, becomes a `TalkErased`; so does the
    DM's replacement of such a fact, and so do all steps of a wrong form that was heard in none but these utterances. A
    correction of one of them keeps no words.

    Args:
        events: The whole log, in order.
        utterances: The erased ones.
        places: The same, by session and ordinal.
    """
    said, at = frozenset(utterances), frozenset(places)
    learned = {each.seq for each in events if is_learned_from(each, said, at)} | _heard_in(events, said)
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
            changed.append(replace(each, event=replace(event, was="", text="", was_by=None, by=None)))
    return changed


def is_learned_from(recorded: WorldEvent, said: frozenset[UtteranceId], at: frozenset[tuple[SessionId, int]]) -> bool:
    """Whether an event was learned from one of these utterances, alone or together with others.

    Args:
        at: The same utterances, by session and ordinal.
    """
    cause, event = recorded.cause, recorded.event
    if cause.by != "talk" or isinstance(event, TalkErased):
        return False
    if cause.utterance_id in said:
        return True
    if cause.session_id is not None and cause.ordinal is not None and (cause.session_id, cause.ordinal) in at:
        return True
    evidence = event.attributes.get("evidence") if isinstance(event, FactStated) else None
    return isinstance(evidence, Sequence) and not said.isdisjoint(evidence)


def _heard_in(events: Sequence[WorldEvent], said: frozenset[UtteranceId]) -> set[int]:
    """Numbers of the steps that refer to these utterances, and of all steps of forms that no other one supports."""
    steps = [(each.seq, each.event) for each in events if isinstance(each.event, FormHeard)]
    here = {step.heard for _, step in steps if step.utterance in said}
    elsewhere = {step.heard for _, step in steps if step.utterance is not None and step.utterance not in said}
    return {seq for seq, step in steps if step.utterance in said or step.heard in here - elsewhere}


def _states(recorded: WorldEvent) -> FactId | None:
    return recorded.event.claim.fact_id if isinstance(recorded.event, FactStated) else None
