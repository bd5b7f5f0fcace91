"""Which events of a log hold what was said in talk that is erased, and what stands in their place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from glyphoxa.domain.ids import FactId, SessionId, UtteranceId
from glyphoxa.world.events.fact import FactReplaced, FactStated
from glyphoxa.world.events.log import WorldEvent
from glyphoxa.world.events.undo import TalkErased
from glyphoxa.world.events.utterance import UtteranceCorrected


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
