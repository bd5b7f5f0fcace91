"""How memory level 3 is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, UtteranceId
from glyphoxa.world.events.log import Cause, Event, WorldEvent
from glyphoxa.world.state import WorldState


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
