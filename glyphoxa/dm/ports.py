"""What the DM's commands ask of memory beyond `World` and `KnowledgeGraph`. All of it is the DM's view."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from glyphoxa.domain.heard import Correction
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId, SessionId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import EndedFact, Fact, Status, Viewer
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.world.events import WorldEvent


@dataclass(frozen=True, slots=True)
class CitedUtterance:
    """An utterance, as far as a fact points to it.

    Attributes:
        ordinal: Its number in the session.
        is_retracted: It was rolled back.
    """

    utterance_id: UtteranceId
    session_id: SessionId
    ordinal: int
    speaker_name: str
    text: str
    at_ms: int
    is_retracted: bool = False


@dataclass(frozen=True, slots=True)
class Uttered:
    """An utterance as it is kept, and what led to its words."""

    said: CitedUtterance
    corrections: tuple[Correction, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """
    Attributes:
        last_ordinal: How many utterances it has.
    """

    id: SessionId
    started_ms: int
    last_ordinal: int


class Review(Protocol):
    """One round trip each. Calls raise `Unavailable` when the database is away."""

    async def pending(self, campaign: CampaignId, *, limit: int) -> list[Fact]:
        """What waits for the DM, the least certain first."""
        ...

    async def of_status(self, campaign: CampaignId, status: Status, *, limit: int) -> list[Fact]:
        """The least certain first."""
        ...

    async def waiting(self, campaign: CampaignId) -> Mapping[Status, int]:
        """How many facts are of each status."""
        ...

    async def current(
        self, campaign: CampaignId, viewer: Viewer, *, about: EntityId | None = None, limit: int
    ) -> list[Fact]:
        """Current facts (that concern `about`) which the viewer may know, by subject and predicate."""
        ...

    async def facts(self, campaign: CampaignId, ids: Collection[FactId]) -> list[Fact]:
        """The current facts among these, in the order of the ids."""
        ...

    async def resting_on(self, campaign: CampaignId, fact: FactId) -> list[Fact]:
        """Current facts that were derived from it."""
        ...

    async def beginning_with(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[Fact]:
        """Current facts whose id begins so."""
        ...

    async def like(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[FactId]:
        """Ids of current facts that have most digits where `prefix` has them, for who mistyped it."""
        ...

    async def ended(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[EndedFact]:
        """What was held once, by the beginning of its id; the last that ended first."""
        ...

    async def once_held(self, campaign: CampaignId, ids: Collection[FactId]) -> list[EndedFact]:
        """Of each of these that ended, its last time."""
        ...

    async def ended_by(self, campaign: CampaignId, events: Collection[int]) -> list[EndedFact]:
        """What these events brought to an end."""
        ...

    async def events_about(self, campaign: CampaignId, fact: Fact) -> list[WorldEvent]:
        """What may have stated, changed or ended it, and what undid other events; oldest first. May be more."""
        ...

    async def said(self, campaign: CampaignId, utterance: UtteranceId) -> CitedUtterance | None: ...

    async def said_ending_with(self, campaign: CampaignId, ending: str, *, limit: int) -> list[CitedUtterance]:
        """Utterances whose id ends so, rolled back or not, the latest first."""
        ...

    async def talk_after(self, campaign: CampaignId, session: SessionId, ordinal: int) -> int:
        """How many utterances of that session and of later ones are not rolled back yet."""
        ...

    async def sessions(self, campaign: CampaignId) -> list[Session]:
        """The earliest first."""
        ...


class Turns(Protocol):
    """What was recorded of turns. One round trip each. Calls raise `Unavailable` when the database is away."""

    async def latest(
        self, campaign: CampaignId, *, session: SessionId | None = None, npc: NpcId | None = None, limit: int
    ) -> list[TurnRecord]:
        """The newest first, without their prompts.

        Args:
            npc: Who was to answer.
        """
        ...

    async def turn(self, campaign: CampaignId, turn: TurnId) -> TurnRecord | None: ...

    async def ending_with(
        self,
        campaign: CampaignId,
        ending: str,
        *,
        session: SessionId | None = None,
        npc: NpcId | None = None,
        limit: int,
    ) -> list[TurnId]:
        """Turns whose id ends so, the newest first."""
        ...

    async def uttered(self, campaign: CampaignId, ids: Collection[UtteranceId]) -> Mapping[UtteranceId, Uttered]:
        """Those of these that are in the log, rolled back or not."""
        ...
