"""What is known and what happened, in words for the DM."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import assert_never

from glyphoxa.dm.cast import Cast
from glyphoxa.domain.ids import FactId, NpcId
from glyphoxa.domain.knowledge import Claim, Fact, Knower, Visibility
from glyphoxa.world.events import (
    AliasAdded,
    AliasRemoved,
    EntitiesMerged,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    Event,
    FactClosed,
    FactConfirmed,
    FactRejected,
    FactReplaced,
    FactRevealed,
    FactScoped,
    FactStated,
    FactTold,
    RolledBack,
    SlotDeclared,
    Undone,
    UtteranceCorrected,
    UtteranceStruck,
)

_LONGEST_VALUE = 400


def moment(at_ms: int | None) -> str:
    """UTC, to the minute; empty when it is not known."""
    return "" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M}"


def value_in_words(claim: Claim) -> str:
    """An attribute's value: text as it is, anything else as JSON."""
    content = claim.content
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} ..."


def claim_in_words(claim: Claim, cast: Cast) -> str:
    """Such as: Grimjaw LOCATED_AT The Anvil; Grimjaw occupation: blacksmith."""
    subject = cast.called(claim.subject)
    if claim.object is not None:
        return f"{subject} {claim.predicate} {cast.called(claim.object)}"
    return f"{subject} {claim.predicate}: {value_in_words(claim)}"


def visibility_in_words(visibility: Visibility, cast: Cast) -> str:
    """Such as: public; secret: Grimjaw, Elowen."""
    knowers = ", ".join(cast.person(knower.npc) for knower in visibility.knowers)
    if visibility.scope == "public":
        return "public"
    if visibility.scope == "hidden":
        return f"hidden (would be known to {knowers})" if knowers else "hidden"
    return f"{visibility.scope}: {knowers or 'nobody'}"


def knower_in_words(knower: Knower, cast: Cast) -> str:
    """How one NPC came to know something."""
    match knower.how:
        case "witnessed":
            how = "was there when it was said"
        case "told":
            how = "was told" if knower.by is None else f"was told by {cast.person(knower.by)}"
        case "secret":
            how = "is in the secret"
        case _:
            assert_never(knower.how)
    when = f", {moment(knower.at_ms)}" if knower.at_ms is not None else ""
    where = f" (utterance {knower.utterance_id})" if knower.utterance_id is not None else ""
    return f"{cast.person(knower.npc)} {how}{when}{where}"


def certainty_in_words(fact: Fact) -> str:
    """Such as: 0.55 inferred; 1.00 stated, confirmed."""
    told = f"{fact.provenance.confidence:.2f} {fact.provenance.source}"
    return f"{told}, confirmed" if fact.provenance.dm_confirmed else told


def happening_in_words(happening: Event, cast: Cast, *, facts: Mapping[FactId, str]) -> str:
    """
    Args:
        facts: What the facts say; one that is not among them is called by its id.
    """
    match happening:
        case FactStated() | FactReplaced() | FactConfirmed() | FactRejected() | FactClosed():
            return _of_claim(happening, cast, facts)
        case FactScoped() | FactRevealed() | FactTold():
            return _of_knowing(happening, cast, facts)
        case SlotDeclared(predicate, rule):
            return f"declared: {predicate} is {rule.replace('_', ' ')}"
        case Undone(event):
            return f"undid event {event}"
        case RolledBack(session, floor, events):
            return f"rolled back to floor {floor} of session {session}: {len(events)} events dropped"
        case UtteranceStruck(_, session, floor, events):
            return f"struck what was said at floor {floor} of session {session}: {len(events)} events dropped"
        case UtteranceCorrected(_, session, floor, was, text, events):
            dropped = f": {len(events)} events dropped" if events else ""
            return f"corrected floor {floor} of session {session} from {was!r} to {text!r}{dropped}"
        case _:
            return _of_entity(happening, cast)


def _of_claim(
    happening: FactStated | FactReplaced | FactConfirmed | FactRejected | FactClosed,
    cast: Cast,
    facts: Mapping[FactId, str],
) -> str:
    match happening:
        case FactStated(claim=claim, visibility=visibility):
            return f"stated: {claim_in_words(claim, cast)} ({visibility_in_words(visibility, cast)})"
        case FactReplaced(fact, claim, why):
            verb = "edited" if why == "edit" else "retconned"
            return f"{verb}: {facts.get(fact, fact)}, now {claim_in_words(claim, cast)}"
        case FactConfirmed(fact):
            return f"confirmed: {facts.get(fact, fact)}"
        case FactRejected(fact, why):
            return f"{'rejected' if why == 'reject' else 'retconned'}: {facts.get(fact, fact)}"
        case FactClosed(fact, at_ms):
            since = f" since {moment(at_ms)}" if at_ms is not None else ""
            return f"no longer so{since}: {facts.get(fact, fact)}"
        case _:
            assert_never(happening)


def _of_knowing(happening: FactScoped | FactRevealed | FactTold, cast: Cast, facts: Mapping[FactId, str]) -> str:
    said = facts.get(happening.fact, happening.fact)
    match happening:
        case FactScoped(_, visibility):
            return f"{visibility_in_words(visibility, cast)}: {said}"
        case FactRevealed(_, to):
            return f"revealed to {_people(to, cast) or 'everybody'}: {said}"
        case FactTold(_, to, by):
            return f"{cast.person(by)} told {_people(to, cast)}: {said}"
        case _:
            assert_never(happening)


def _of_entity(
    happening: EntityAdded | EntityChanged | AliasAdded | AliasRemoved | EntityScoped | EntityRemoved | EntitiesMerged,
    cast: Cast,
) -> str:
    called = cast.called
    match happening:
        case EntityAdded(entity=entity, type=kind, name=name):
            return f"added {name} ({kind}, id {entity})"
        case EntityChanged(entity, kind, name, aliases):
            parts = [f"name {name}" * (name is not None), f"type {kind}" * (kind is not None)]
            parts.append("" if aliases is None else f"aliases {', '.join(aliases) or 'none'}")
            return f"changed {called(entity)}: {', '.join(part for part in parts if part)}"
        case AliasAdded(entity, alias):
            return f"{called(entity)} is also called {alias}"
        case AliasRemoved(entity, alias):
            return f"{called(entity)} is not called {alias}"
        case EntityScoped(entity, visibility):
            return f"{called(entity)} is {visibility_in_words(visibility, cast)}"
        case EntityRemoved(entity):
            return f"removed {called(entity)}"
        case EntitiesMerged(kept, gone):
            return f"merged {called(gone)} into {called(kept)}"
        case _:
            assert_never(happening)


def _people(npcs: Iterable[NpcId], cast: Cast) -> str:
    return ", ".join(cast.person(npc) for npc in npcs)
