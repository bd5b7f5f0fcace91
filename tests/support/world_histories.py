"""Random histories of a small world: few entities, so that everything meets everything."""

from __future__ import annotations

import random

from glyphoxa.domain.ids import EntityId, FactId, NpcId, SessionId, SpeakerId
from glyphoxa.domain.knowledge import (
    HIDDEN,
    PUBLIC,
    Claim,
    Provenance,
    Validity,
    Visibility,
    secret_of,
    witnessed_by,
)
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
from glyphoxa.world.event_log import Cause, Event, Undone, WorldEvent, apply, dropped, replay
from glyphoxa.world.state import WorldState

ENTITIES = tuple(EntityId(name) for name in ("mira", "inn", "tower", "sword", "tide", "skarn"))
NPCS = tuple(NpcId(name) for name in ("mira", "korvald", "elowen"))
RELATIONS = ("LOCATED_AT", "OWNS", "KNOWS", "ALLIED_WITH", "HOSTILE_TO")
ATTRIBUTES = ("occupation", "alive", "secret")


def a_history(seed: int, *, length: int = 14, with_undo: bool = True) -> list[WorldEvent]:
    """Events that could each be committed when they happened."""
    chance = random.Random(seed)
    events: list[WorldEvent] = []
    state = WorldState()
    for entity in chance.sample(ENTITIES, 4):
        event = EntityAdded(entity, chance.choice(("npc", "location", "item")), entity.title())
        events.append(WorldEvent(len(events) + 1, Cause("dm", 0), event))
    state = replay(events)
    while len(events) < length:
        if with_undo and chance.random() < 0.12:
            left = sorted({e.seq for e in events} - dropped(events))
            event: Event = Undone(chance.choice(left))
        else:
            event = an_event(chance, state)
        events.append(WorldEvent(len(events) + 1, _cause(chance, len(events) + 1), event))
        if isinstance(event, Undone):
            state = replay(events)
        else:
            apply(state, events[-1])
    return events


def an_event(chance: random.Random, state: WorldState) -> Event:
    facts = sorted(state.facts)
    entities = sorted(state.entities)
    kinds = ["state"] * 6 + ["add", "entity"] + (["fact"] * 5 if facts else [])
    if len(entities) < 2:
        kinds = ["add"]
    match chance.choice(kinds):
        case "add":
            return EntityAdded(chance.choice(ENTITIES), "npc", "Somebody", visibility=_visibility(chance))
        case "state":
            return FactStated(
                _claim(chance, entities),
                _provenance(chance),
                _visibility(chance),
                _validity(chance),
                {"note": str(chance.randrange(3))} if chance.random() < 0.3 else {},
                tuple(chance.sample(facts, min(len(facts), chance.choice((0, 0, 1, 2))))),
            )
        case "fact":
            return _about_fact(chance, FactId(chance.choice(facts)), entities)
        case _:
            return _about_entity(chance, entities)


def _about_entity(chance: random.Random, entities: list[EntityId]) -> Event:
    one, other = chance.sample(entities, 2)
    return chance.choice(
        (
            EntityChanged(one, name=f"{one} {chance.randrange(3)}"),
            AliasAdded(one, "the old one"),
            AliasRemoved(one, "the old one"),
            EntityScoped(one, _visibility(chance)),
            EntityRemoved(one),
            EntitiesMerged(one, other),
            EntitiesMerged(one, other),
            SlotDeclared("occupation", chance.choice(("many", "one", "functional"))),
        )
    )


def _about_fact(chance: random.Random, fact: FactId, entities: list[EntityId]) -> Event:
    at_ms = chance.choice((None, chance.randrange(1_000)))
    return chance.choice(
        (
            FactConfirmed(fact),
            FactConfirmed(fact),
            FactRejected(fact, chance.choice(("reject", "retcon"))),
            FactReplaced(fact, _claim(chance, entities), chance.choice(("edit", "retcon"))),
            FactClosed(fact, at_ms),
            FactScoped(fact, _visibility(chance)),
            FactRevealed(fact, tuple(chance.sample(NPCS, chance.randrange(3)))),
            FactTold(fact, (chance.choice(NPCS),), SpeakerId("hanna"), at_ms),
        )
    )


def _claim(chance: random.Random, entities: list[EntityId]) -> Claim:
    one, other = chance.sample(entities, 2)
    if chance.random() < 0.7:
        return Claim.relation(one, chance.choice(RELATIONS), other)
    return Claim.attribute(
        one, chance.choice(ATTRIBUTES), chance.choice(("yes", "no", 7, "lit at dusk by the warden", ["a", {"b": None}]))
    )


def _provenance(chance: random.Random) -> Provenance:
    return Provenance(
        confidence=chance.choice((0.2, 0.69, 0.7, 0.9, 1.0)),
        source=chance.choice(("stated", "inferred")),
        dm_confirmed=chance.random() < 0.25,
        origin=chance.choice(("talk", "dm", "campaign_file")),
        session_id=chance.choice((None, SessionId("s1"))),
        at_ms=chance.choice((None, chance.randrange(1_000))),
    )


def _visibility(chance: random.Random) -> Visibility:
    npcs = chance.sample(NPCS, chance.randrange(1, 3))
    return chance.choice((PUBLIC, PUBLIC, HIDDEN, secret_of(npcs), witnessed_by(npcs, at_ms=5)))


def _validity(chance: random.Random) -> Validity:
    return Validity(from_ms=chance.choice((None, chance.randrange(1_000))))


def _cause(chance: random.Random, seq: int) -> Cause:
    if chance.random() < 0.5:
        return Cause("talk", seq * 10, SessionId(f"s{1 + seq // 6}"), ordinal=seq)
    return Cause("dm", seq * 10)
