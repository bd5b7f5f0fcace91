"""Memory level 3, the knowledge graph: how it is queried for a viewer, changed, and held in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.heard import SpokenBy
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import Dm, Fact, RecalledUtterance, Viewer, Visibility
from glyphoxa.world.event_log import Cause, Event, Undoing, WorldEvent
from glyphoxa.world.state import WorldState

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Known:
    """An entity and its current facts, as far as the viewer may know all of them and both ends.

    Attributes:
        attributes: Facts whose claim has a value.
        relations: Relations with the entity at the other end, whose attributes may be left out; a symmetric one is
            listed once.
    """

    entity: Entity
    attributes: tuple[Fact, ...] = ()
    relations: tuple[tuple[Fact, Entity], ...] = ()


@dataclass(frozen=True, slots=True)
class IdentitySnapshot:
    """An NPC's knowledge of itself: its node, its relations with their other ends, and its secrets.

    Attributes:
        secrets: Secret or hidden facts it knows, about any entity.
        always: Its knowledge of other entities that are in each prompt.
    """

    known: Known
    secrets: tuple[Fact, ...] = ()
    always: tuple[Known, ...] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """An entity on a walk over relations.

    Attributes:
        depth: Smallest number of relations from the start; 0 for the start itself.
    """

    entity: Entity
    depth: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A transcript chunk that matches a question, inside a neighbourhood of the graph.

    Attributes:
        score: Higher is better; a text rank or a cosine.
        depth: Distance from the neighbourhood's centre to the nearest entity it mentions.
    """

    recalled: RecalledUtterance
    score: float
    entity_ids: tuple[EntityId, ...] = ()
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """All entities at most so many relations away from an entity."""

    entity: EntityId
    depth: int = 2


class GraphRag(Protocol):
    """Transcript search inside a neighbourhood of the graph."""

    async def query_with_context(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: Neighbourhood, limit: int = 10
    ) -> list[Passage]:
        """Search by words, for when there is no embedding."""
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
        """Search by meaning."""
        ...


class TalkAround(Protocol):
    """Transcript search around an entity, for an NPC's own look-ups. See `glyphoxa.recall.recall`."""

    async def __call__(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: EntityId, limit: int = 5
    ) -> list[Passage]:
        """Return passages about `around`, or entities at most two relations away, that the viewer heard and that match.

        Best first. Empty if the viewer may not know of `around`.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...


# Who may know a fact: the rule for facts held in memory. In SQL it is `glyphoxa_may_know`, applied to a fact and to
# both of its ends.


def may_know(viewer: Viewer, fact: Fact, visibility_of: Callable[[EntityId], Visibility | None]) -> bool:
    """Whether a viewer may know a fact. An NPC may if it is accepted, in its scope, and both ends are too.

    Args:
        visibility_of: Who may know of an entity; None when it does not exist.
    """
    if isinstance(viewer, Dm):
        return True
    if fact.status != "accepted" or not fact.visibility.is_visible_to(viewer):
        return False
    for end in fact.claim.ends:
        seen = visibility_of(end)
        if seen is None or not seen.is_visible_to(viewer):
            return False
    return True


ConsentState = Literal["given", "withheld"]


@dataclass(frozen=True, slots=True)
class ConsentChange:
    """A player's decision about whether their utterances may be remembered. It never concerns those of others.

    Attributes:
        utterances: The ones it concerns.
        session: Or all of this session so far. With neither, `given` takes back the last request to forget.
    """

    speaker: SpeakerId
    state: ConsentState
    utterances: tuple[UtteranceId, ...] = ()
    session: SessionId | None = None


class WorldHistory(Protocol):
    """Write access to memory level 3: all changes are events. See `glyphoxa.world`."""

    async def commit(self, campaign: CampaignId, events: Sequence[Event], cause: Cause) -> list[WorldEvent]:
        """Append events and update the projections in one transaction.

        Raises:
            InvalidInput: An event refers to a missing entity or fact, or is an undoing (`Undone`, `RolledBack`: there
                are methods for these); the message names it.
            NotFound: There is no such campaign.
            Unavailable: The database is away; nothing was written.
        """
        ...

    async def undo(self, campaign: CampaignId, seqs: Sequence[int], cause: Cause) -> list[WorldEvent]:
        """Drop events as if they had never happened, in one transaction; undoing an undoing restores it.

        Returns: The undoing events in that order.

        Raises:
            NotFound: One of them does not exist or is already undone; nothing was undone.
        """
        ...

    async def rollback(self, campaign: CampaignId, session: SessionId, ordinal: int, cause: Cause) -> WorldEvent | None:
        """Return to what was known after that ordinal of the session.

        Drops what was learned from later utterances of that session and of later sessions, and retracts these
        utterances. Decisions of the DM and campaign files stay. None when there is nothing to drop.

        Raises:
            NotFound: There is no such session.
        """
        ...

    async def retract(self, campaign: CampaignId, utterance: UtteranceId, cause: Cause) -> WorldEvent:
        """Retract an utterance: nobody recalls it, and facts learned only from it are dropped. The log keeps it.

        Raises:
            NotFound: There is no such utterance.
            InvalidInput: It is already retracted.
        """
        ...

    async def consent(self, campaign: CampaignId, change: ConsentChange, cause: Cause) -> list[WorldEvent]:
        """Withhold a player's utterances from memory like `retract`, or restore them; empty if nothing changed.

        With them the answers of NPCs that follow directly. What the DM retracted stays retracted.

        Args:
            cause: A cause by a player, with the utterance that asked for it, if any.
        """
        ...

    async def correct(
        self, campaign: CampaignId, utterance: UtteranceId, text: str, cause: Cause, *, by: SpokenBy | None = None
    ) -> WorldEvent:
        """Replace the words of an utterance, or its speaker; otherwise like `retract`.

        Raises:
            NotFound: There is no such utterance.
            InvalidInput: It is retracted, or already has this text and speaker.
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
        """The world as it was at that time, after that session, or after that event; by default now.

        Built by replay, for inspection.
        """
        ...


# Reads for a process that holds a world in memory.


@dataclass(frozen=True, slots=True)
class WorldRead:
    """A world at one moment.

    Attributes:
        state: Without ended facts.
        last: The last event included; None before the first.
        language: BCP 47 tag; "en" for a campaign that is not stored.
        also_called: Names of NPCs in the campaign file other than the names of their entities.
    """

    state: WorldState
    last: WorldEvent | None
    language: str = "en"
    also_called: Mapping[EntityId, Sequence[str]] = field(default_factory=dict)


_FEW: Final = 250
"""Some milliseconds. More are slower than to read a small world again, and stop the event loop for longer."""


async def new_events(
    fetch: Callable[[int, int], Awaitable[Sequence[WorldEvent]]], last: WorldEvent | None
) -> Sequence[WorldEvent] | None:
    """Return the events after the last one that a world contains, to apply them one by one.

    None: read the world again, because there are many, one of them undoes others, or the log is not the same one: the
    database was restored.

    Args:
        fetch: Returns the events from a number on, in order, at most that many.
    """
    known = [] if last is None else [last]
    page = await fetch(0 if last is None else last.seq, _FEW + 2)
    new = page[len(known) :]
    if [*page[: len(known)]] != known or len(new) > _FEW or any(isinstance(each.event, Undoing) for each in new):
        return None
    return new


class WorldFeed(Protocol):
    """A world for all its viewers: the holder applies visibility.

    Its events are an append-only stream: see `new_events`.
    """

    async def read(self, campaign: CampaignId) -> WorldRead:
        """
        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...

    async def events(self, campaign: CampaignId, *, after: int, limit: int) -> Sequence[WorldEvent]:
        """The events after a number, in order, at most `limit`.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...
