"""Memory level 3: what is asked of it in the name of a viewer, how it changes, and how a process holds it in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, runtime_checkable

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import EVER, Between, Dm, Fact, RecalledUtterance, Viewer, Visibility
from glyphoxa.world.events import Cause, Event, WorldEvent
from glyphoxa.world.state import WorldState

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Known:
    """An entity and current facts about it, as far as the viewer may see both and the facts' other ends.

    Attributes:
        attributes: Facts whose claim has a value.
        relations: Facts between it and another entity, with that entity, whose attributes may be left out; one that
            holds both ways is told once.
    """

    entity: Entity
    attributes: tuple[Fact, ...] = ()
    relations: tuple[tuple[Fact, Entity], ...] = ()


@dataclass(frozen=True, slots=True)
class IdentitySnapshot:
    """What an NPC knows of itself: its node, its relations with their other ends, and its secrets.

    Attributes:
        secrets: Facts that are secret or hidden from others and known to it, whomever they are about.
    """

    known: Known
    secrets: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """An entity on a walk over relations.

    Attributes:
        depth: Relations between it and the beginning, 0 for the beginning itself; the fewest there are.
    """

    entity: Entity
    depth: int


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Entities within reach, nearest first, and the accepted facts between them."""

    reached: tuple[Reached, ...] = ()
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of talk near to a question, inside a neighbourhood of the graph.

    Attributes:
        score: Higher is better; a rank of words or a cosine.
        depth: How far from the neighbourhood's middle the nearest entity is that it speaks of.
    """

    recalled: RecalledUtterance
    score: float
    entity_ids: tuple[EntityId, ...] = ()
    depth: int = 0


Direction = Literal["out", "in", "both"]


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a walk over relations goes.

    Attributes:
        types: Of relations; None: all.
        limit: Of entities.
    """

    depth: int = 3
    direction: Direction = "both"
    types: Collection[str] | None = None
    limit: int = 200


@dataclass(frozen=True, slots=True)
class FactQuery:
    """
    Attributes:
        words: Of which a fact shares one; its entities' names are part of it.
        about: Whom it concerns.
        between: When it was stated.
        common_from: A word that so many facts share ("know") finds none by itself, unless nothing else is asked; and of
            very many who share a word of their names, those count that have most of the words. None: all is found,
            however long it takes.
    """

    words: str = ""
    about: EntityId | None = None
    between: Between = EVER
    limit: int = 20
    common_from: int | None = None


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """All that is at most so many relations away from an entity."""

    entity: EntityId
    depth: int = 2


_SURE_LETTERS: Final = 2
_TELLING_LETTERS: Final = 4


def beginnings_of(name: str) -> list[str]:
    """How the words of a name begin: as much of them as even a misspelt name has right. Short words, which many names
    have ("of"), only where there are no others.

    >>> beginnings_of("Wardens of the Tide")
    ['ti', 'wa']
    """
    words = re.findall(rf"[^\W_]{{{_SURE_LETTERS},}}", name.casefold())
    telling = [word for word in words if len(word) >= _TELLING_LETTERS] or words
    return sorted({word[:_SURE_LETTERS] for word in telling})


KNOWN_THROUGH: Final = ("KNOWS", "LOCATED_AT", "MEMBER_OF", "ALLIED_WITH")
"""Relations along which an NPC hears of things."""


class KnowledgeGraph(Protocol):
    """Memory level 3, as it is asked. Everything is asked in the name of a viewer, and decided in SQL before LIMIT: an
    NPC is given accepted facts in its scope whose both ends it may know of, and nothing of the others, not even a
    count. The DM is given all. One round trip each.
    """

    async def entities(self, campaign: CampaignId, viewer: Viewer, *, of_type: str | None = None) -> list[Entity]: ...

    async def entities_called(self, campaign: CampaignId, viewer: Viewer, name: str) -> list[Entity]:
        """Those whose name and other names hold all the words of `name`, in any order, and so whoever is called just
        that. Not a look at all entities, of which there may be thousands.
        """
        ...

    async def entities_like(
        self, campaign: CampaignId, viewer: Viewer, name: str, *, of_type: str | None = None
    ) -> list[Entity]:
        """Those of whose names a word begins like one of `name` (see `beginnings_of`): whom a name may mean that is
        misspelt, or spelt otherwise. Not a look at all entities either.
        """
        ...

    async def entities_if_few(
        self, campaign: CampaignId, viewer: Viewer, *, most: int, of_type: str | None = None
    ) -> list[Entity] | None:
        """All of them, in any order; None when there are more than `most`."""
        ...

    async def entities_of(self, campaign: CampaignId, viewer: Viewer, ids: Collection[EntityId]) -> list[Entity]:
        """Those with these ids that the viewer may know of."""
        ...

    async def known(self, campaign: CampaignId, viewer: Viewer, entity: EntityId) -> Known | None:
        """None when there is no such entity for this viewer."""
        ...

    async def identity_snapshot(self, campaign: CampaignId, npc: NpcId, entity: EntityId) -> IdentitySnapshot | None:
        """
        Args:
            entity: The NPC's own node.
        """
        ...

    async def visible_subgraph(
        self,
        campaign: CampaignId,
        npc: NpcId,
        entity: EntityId,
        *,
        depth: int = 1,
        through: Collection[str] = KNOWN_THROUGH,
    ) -> Subgraph:
        """What the NPC would logically know: its own node, all that is directly related to it, and
        beyond that what is connected by `through`, `depth` relations away at most.
        """
        ...

    async def traverse(self, campaign: CampaignId, viewer: Viewer, entity: EntityId, walk: Walk) -> list[Reached]:
        """Everything within reach of it, by depth, then name; cycles do no harm."""
        ...

    async def path(
        self, campaign: CampaignId, viewer: Viewer, source: EntityId, target: EntityId, *, max_depth: int = 6
    ) -> list[tuple[Fact, Entity]] | None:
        """A shortest chain of relations, each with the entity it leads to; None when there is none, `[]` from an entity
        to itself.
        """
        ...

    async def facts(self, campaign: CampaignId, viewer: Viewer, wanted: FactQuery) -> list[Fact]:
        """Current facts, best first, the latest first among equals."""
        ...


@runtime_checkable
class GraphRag(Protocol):
    """Talk near to a question inside a neighbourhood of the graph. Not every graph can: callers ask
    with `isinstance`.
    """

    async def query_with_context(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: Neighbourhood, limit: int = 10
    ) -> list[Passage]:
        """By words: for when there is no embedding."""
        ...

    async def query_with_embedding(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        embedding: NDArray[float32],
        *,
        around: Neighbourhood,
        limit: int = 10,
    ) -> list[Passage]:
        """By meaning."""
        ...


class TalkAround(Protocol):
    """Talk around an entity, for an NPC that looks for it by itself. See `glyphoxa.recall.recall`."""

    async def recall_around(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: EntityId, limit: int = 5
    ) -> list[Passage]:
        """What the viewer heard that speaks of `around`, or of what is at most two relations away, and bears on
        `question`; best first. Empty around what the viewer may not know of.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...


# Who may know a fact: one rule over what is held in memory. In SQL it is `glyphoxa_may_know`, asked of a fact and of
# both of its ends.


def may_know(viewer: Viewer, fact: Fact, visibility_of: Callable[[EntityId], Visibility | None]) -> bool:
    """The DM may know everything. An NPC may know what is accepted, if it is in its scope and so are both of its ends.

    Args:
        visibility_of: Who may know of an entity; None when it is not there.
    """
    if isinstance(viewer, Dm):
        return True
    if fact.status != "accepted" or not fact.visibility.is_visible_to(viewer):
        return False
    claim = fact.claim
    ends = (claim.subject,) if claim.object is None else (claim.subject, claim.object)
    return all((seen := visibility_of(end)) is not None and seen.is_visible_to(viewer) for end in ends)


class World(Protocol):
    """Memory level 3, as it is changed: only by what happens. See `glyphoxa.world`."""

    async def commit(
        self, campaign: CampaignId, events: Sequence[Event], cause: Cause, *, expect: int | None = None
    ) -> list[WorldEvent]:
        """Append them and bring the projections along, in one transaction. All or nothing.

        Args:
            expect: Only if this is the last event so far: what was decided was decided on that state.

        Raises:
            InvalidInput: One of them speaks of an entity or a fact that is not there, or of the campaign's past
                (`Undone`, `RolledBack`: there are methods for these); the message names it. Or `expect` is past.
            NotFound: There is no such campaign.
            Unavailable: The database is away; nothing was written.
        """
        ...

    async def undo(self, campaign: CampaignId, seq: int, cause: Cause) -> WorldEvent:
        """As if that event had not been; undoing an undoing brings it back.

        Raises:
            NotFound: There is no such event, or it is undone already.
        """
        ...

    async def undo_all(self, campaign: CampaignId, seqs: Sequence[int], cause: Cause) -> list[WorldEvent]:
        """The same for several in one transaction, all or nothing; returns the events that undo, in that order.

        Raises:
            NotFound: One of them is not there, or is undone already.
        """
        ...

    async def rollback(self, campaign: CampaignId, session: SessionId, ordinal: int, cause: Cause) -> WorldEvent | None:
        """Back to what was known when that ordinal of the session had been said: drops what was learned from later
        utterances of that session and of later sessions, and retracts these utterances from what anybody recalls
        . Decisions of the DM and campaign files stay. None when there is nothing to drop.

        Raises:
            NotFound: There is no such session.
        """
        ...

    async def retract(self, campaign: CampaignId, utterance: UtteranceId, cause: Cause) -> WorldEvent:
        """As if one utterance had not been said: nobody recalls it, and what was learned from it alone is not
        known any more. It stays in the log.

        Raises:
            NotFound: Nobody said it.
            InvalidInput: It is retracted already.
        """
        ...

    async def correct(self, campaign: CampaignId, utterance: UtteranceId, text: str, cause: Cause) -> WorldEvent:
        """As if other words had been said; otherwise the same.

        Raises:
            NotFound: Nobody said it.
            InvalidInput: It is retracted, or says just this.
        """
        ...

    async def events(
        self, campaign: CampaignId, *, after: int = 0, limit: int = 1_000, latest_first: bool = False
    ) -> list[WorldEvent]: ...

    async def as_of(
        self,
        campaign: CampaignId,
        *,
        at_ms: int | None = None,
        session: SessionId | None = None,
        seq: int | None = None,
    ) -> WorldState:
        """The world as it was known at that time, at the end of that session, or after that event; now if none is
        given. Built by replay, for looking at.
        """
        ...

    async def fork(self, campaign: CampaignId, into: CampaignId, *, name: str) -> None:
        """A new campaign with the same past: talk, chunks, events and all that follows from them. From now on neither
        sees the other.

        Raises:
            InvalidInput: There is a campaign of that id.
            NotFound: There is none to fork.
        """
        ...


# What a process that holds a world in memory reads of it.


@dataclass(frozen=True, slots=True)
class WorldRead:
    """A world at one moment.

    Attributes:
        state: Without what ended.
        last: The event after which it is so; None before the first.
        language: BCP 47 tag; "en" for a campaign that is not stored.
        also_called: What the campaign's file calls its NPCs beside the names of their entities.
    """

    state: WorldState
    last: WorldEvent | None
    language: str = "en"
    also_called: Mapping[EntityId, Sequence[str]] = field(default_factory=dict)


class WorldFeed(Protocol):
    """A world for all who may know of it: whoever holds it decides for whom what is there. It is a stream of changes
    that is only added to, read with a cursor: `glyphoxa.recall.campaign_cache`.
    """

    async def read(self, campaign: CampaignId) -> WorldRead:
        """
        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...

    async def changes(self, campaign: CampaignId, *, since: int, limit: int) -> Sequence[WorldEvent]:
        """The events from a number on (0: all), in order, at most `limit`.

        Raises:
            Unavailable: As above.
        """
        ...
