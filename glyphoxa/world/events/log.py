"""What can happen to a campaign's world, and how it stands in the log. The log is the source of truth; state follows
from it.

An event tells what was stated or decided, never what followed from it. One that speaks of a fact or an entity that
is not there (any more) changes nothing: so the log can be replayed without some of its events.

Each kind of event has, beside its fields:

    read_set()                  what it will ask of a partial state: see `glyphoxa.world.change`
    failed_precondition(state)  why it cannot be said of the world as it is; None when it can
    effect(change)              what it does to a state
    in_words(words)             what happened, for the DM

It is kept under its name in snake case, and read by it for as long as there are campaigns. A new kind stands in the
module of its family and in `Event`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from glyphoxa.domain.ids import SessionId, UtteranceId
from glyphoxa.domain.knowledge import Origin
from glyphoxa.world.events.entity import (
    AliasAdded,
    AliasRemoved,
    EntitiesMerged,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    SlotDeclared,
)
from glyphoxa.world.events.fact import (
    FactClosed,
    FactConfirmed,
    FactRejected,
    FactReplaced,
    FactRevealed,
    FactScoped,
    FactStated,
    FactTold,
)
from glyphoxa.world.events.undo import RolledBack, TalkErased, Undone, UtteranceCorrected, UtteranceRetracted

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
