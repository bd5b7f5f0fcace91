"""What can happen to a campaign's world. The log of these is the source of truth; state follows from it.

A happening tells what was stated or decided, never what followed from it. One that speaks of a fact or an entity that
is not there (any more) changes nothing: so the log can be replayed without some of its events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from glyphoxa.domain.campaign import SlotRule as SlotRule  # used by slots and state
from glyphoxa.domain.ids import EntityId, FactId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import ALWAYS, CERTAIN, PUBLIC, Claim, Knower, Origin, Provenance, Validity, Visibility


@dataclass(frozen=True, slots=True)
class EntityAdded:
    """One that is already there is left as it is."""

    entity: EntityId
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    visibility: Visibility = PUBLIC
    origin: Origin = "dm"


@dataclass(frozen=True, slots=True)
class EntityChanged:
    """None leaves as it is."""

    entity: EntityId
    type: str | None = None
    name: str | None = None
    aliases: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class AliasAdded:
    entity: EntityId
    alias: str


@dataclass(frozen=True, slots=True)
class AliasRemoved:
    entity: EntityId
    alias: str


@dataclass(frozen=True, slots=True)
class EntityScoped:
    """Who may know that there is such a thing at all."""

    entity: EntityId
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class EntityRemoved:
    """Its facts end with it."""

    entity: EntityId


@dataclass(frozen=True, slots=True)
class EntitiesMerged:
    """`gone` was `kept` all along. Undoing this splits them again."""

    kept: EntityId
    gone: EntityId


@dataclass(frozen=True, slots=True)
class FactStated:
    """Said, concluded, written in a campaign file. A claim that is already held is mentioned once more."""

    claim: Claim
    provenance: Provenance = CERTAIN
    visibility: Visibility = PUBLIC
    validity: Validity = ALWAYS
    attributes: Mapping[str, object] = field(default_factory=dict)
    supports: tuple[FactId, ...] = ()


@dataclass(frozen=True, slots=True)
class FactConfirmed:
    """The DM says so. What it disagrees with ends."""

    fact: FactId


@dataclass(frozen=True, slots=True)
class FactRejected:
    """It never was so: a wrong extraction, or (`retcon`) the story is changed."""

    fact: FactId
    why: Literal["reject", "retcon"] = "reject"


@dataclass(frozen=True, slots=True)
class FactReplaced:
    """Something else is so, and was so as long as this was held."""

    fact: FactId
    claim: Claim
    why: Literal["edit", "retcon"] = "edit"


@dataclass(frozen=True, slots=True)
class FactClosed:
    """It was so and is no longer.

    Attributes:
        at_ms: Since when; None: since this was said.
    """

    fact: FactId
    at_ms: int | None = None
    story: int | None = None


@dataclass(frozen=True, slots=True)
class FactScoped:
    """The DM decides who may know it."""

    fact: FactId
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class FactRevealed:
    """To these NPCs, or to everybody when none is named."""

    fact: FactId
    to: tuple[NpcId, ...] = ()


@dataclass(frozen=True, slots=True)
class FactTold:
    """Somebody told it. What the DM hid stays hidden, and who was told is noted."""

    fact: FactId
    to: tuple[NpcId, ...]
    by: SpeakerId
    at_ms: int | None = None
    utterance: UtteranceId | None = None

    def knowers(self) -> tuple[Knower, ...]:
        return tuple(Knower(npc, "told", self.by, self.at_ms, self.utterance) for npc in self.to)


@dataclass(frozen=True, slots=True)
class SlotDeclared:
    """This campaign's own rule for a predicate."""

    predicate: str
    rule: SlotRule


@dataclass(frozen=True, slots=True)
class Undone:
    """As if that event had not been. Undoing this one brings it back."""

    event: int


@dataclass(frozen=True, slots=True)
class RolledBack:
    """As if nothing had been learned from what was said behind that floor.

    Attributes:
        events: All that are left out, as they were found at that time.
    """

    session: SessionId
    floor: int
    events: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UtteranceStruck:
    """As if it had not been said, and nothing learned from it.

    Attributes:
        events: As of `RolledBack`.
    """

    utterance: UtteranceId
    session: SessionId
    floor: int
    events: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UtteranceCorrected:
    """As if other words had been said, and nothing learned from the old ones.

    Attributes:
        was: What stood there.
        events: As of `RolledBack`.
    """

    utterance: UtteranceId
    session: SessionId
    floor: int
    was: str
    text: str
    events: tuple[int, ...]


TakenBack: TypeAlias = RolledBack | UtteranceStruck | UtteranceCorrected
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
    | UtteranceStruck
    | UtteranceCorrected
)


@dataclass(frozen=True, slots=True)
class Cause:
    """What brought a happening about.

    Attributes:
        at_ms: When it happened: when it was said, or when the DM decided. Milliseconds since the Unix epoch.
        floor: Number of the utterance in its session, for what was learned from talk.
    """

    by: Origin
    at_ms: int
    session_id: SessionId | None = None
    floor: int | None = None
    utterance_id: UtteranceId | None = None


@dataclass(frozen=True, slots=True)
class WorldEvent:
    """A happening in the log of its campaign.

    Attributes:
        seq: From 1, without a gap.
    """

    seq: int
    cause: Cause
    happening: Event
