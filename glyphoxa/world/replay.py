"""State from events: all of them, or those that remain when some are undone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from glyphoxa.domain.ids import FactId, SessionId, UtteranceId
from glyphoxa.world.change import Change
from glyphoxa.world.events.fact import FactReplaced, FactStated
from glyphoxa.world.events.log import WorldEvent
from glyphoxa.world.events.undo import TalkErased, Undoing, UtteranceCorrected
from glyphoxa.world.state import Changes, WorldState, changes_of

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
    return changes_of(
        {
            "entities": (before.entities, after.entities),
            "merged": (before.merged, after.merged),
            "facts": (before.facts, after.facts),
            "ended": (before.ended, after.ended),
            "rules": (before.rules, after.rules),
        }
    )


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
