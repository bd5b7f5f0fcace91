"""Memory ports of the DM's commands beyond `WorldHistory`. All show the DM's view."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from glyphoxa.domain.heard import Correction
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId, SessionId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import EndedFact, Fact, Viewer
from glyphoxa.domain.turn_record import TurnRecord, Unaddressed
from glyphoxa.judgement.safety import Judged
from glyphoxa.world.event_log import WorldEvent


@dataclass(frozen=True, slots=True)
class CitedUtterance:
    """An utterance that a fact refers to.

    Attributes:
        ordinal: Its number in the session.
        is_retracted: It was rolled back or retracted, or is withheld.
        is_withheld: Its player does not want it to be remembered.
        aside: See `Utterance`.
        raw_text: The words as they were heard; "" if they were not read.
    """

    utterance_id: UtteranceId
    session_id: SessionId
    ordinal: int
    speaker_name: str
    text: str
    at_ms: int
    is_retracted: bool = False
    is_withheld: bool = False
    aside: Unaddressed | None = None
    raw_text: str = ""

    @property
    def state(self) -> str:
        """Why nobody recalls it; empty if NPCs may."""
        if self.is_withheld:
            return "withheld by its player"
        return "rolled back" if self.is_retracted else ""

    @property
    def aside_in_words(self) -> str:
        return (self.aside or "").replace("_", " ")


@dataclass(frozen=True, slots=True)
class Uttered:
    """A stored utterance, the corrections that led to its words, and its judgement, if it was judged."""

    said: CitedUtterance
    corrections: tuple[Correction, ...] = ()
    judged: Judged | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """
    Attributes:
        last_ordinal: Its number of utterances.
        title: The game master's; "" without one.
        last_at_ms: Start of the last utterance, also if it was rolled back; None if there are none.
    """

    id: SessionId
    started_ms: int
    last_ordinal: int
    title: str = ""
    last_at_ms: int | None = None


class Review(Protocol):
    """The DM's view of facts, utterances and sessions.

    Each call is one round trip and raises `Unavailable` when the database is away.
    """

    async def current(
        self, campaign: CampaignId, viewer: Viewer, *, about: EntityId | None = None, limit: int
    ) -> list[Fact]:
        """Return current facts (about `about`) that the viewer may know, by subject and predicate."""
        ...

    async def facts(self, campaign: CampaignId, ids: Collection[FactId]) -> list[Fact]:
        """Return the current facts among these, in the order of the ids."""
        ...

    async def resting_on(self, campaign: CampaignId, fact: FactId) -> list[Fact]:
        """Return current facts that were derived from this one."""
        ...

    async def beginning_with(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[Fact]:
        """Return current facts whose id begins with the prefix."""
        ...

    async def like(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[FactId]:
        """Return ids of current facts that share most digits with `prefix`, for a mistyped id."""
        ...

    async def ended(self, campaign: CampaignId, prefix: str, *, limit: int) -> list[EndedFact]:
        """Return ended facts by the beginning of their id; the last ended first."""
        ...

    async def once_held(self, campaign: CampaignId, ids: Collection[FactId]) -> list[EndedFact]:
        """Return the last ended version of each of these facts."""
        ...

    async def ended_by(self, campaign: CampaignId, events: Collection[int]) -> list[EndedFact]:
        """Return the facts that these events ended."""
        ...

    async def events_about(self, campaign: CampaignId, fact: Fact) -> list[WorldEvent]:
        """Return events that may concern the fact, and undoings; oldest first. A superset."""
        ...

    async def said(self, campaign: CampaignId, utterance: UtteranceId) -> CitedUtterance | None: ...

    async def said_ending_with(self, campaign: CampaignId, ending: str, *, limit: int) -> list[CitedUtterance]:
        """Return utterances whose id ends with this, including rolled back ones, latest first."""
        ...

    async def talk_after(self, campaign: CampaignId, session: SessionId, ordinal: int) -> int:
        """Return how many utterances of that session after the ordinal, and of later sessions, are not rolled back."""
        ...

    async def sessions(self, campaign: CampaignId) -> list[Session]:
        """Return the sessions, the earliest first."""
        ...

    async def set_title(self, campaign: CampaignId, session: SessionId, title: str) -> None:
        """Set the title of a session; "" removes it."""
        ...


class Turns(Protocol):
    """Recorded turns. Each call is one round trip and raises `Unavailable` when the database is away."""

    async def latest(
        self, campaign: CampaignId, *, session: SessionId | None = None, npc: NpcId | None = None, limit: int
    ) -> list[TurnRecord]:
        """Return turns without their prompts, the newest first.

        Args:
            npc: Only turns addressed to this NPC.
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
        """Return turns whose id ends with this, newest first."""
        ...

    async def uttered(self, campaign: CampaignId, ids: Collection[UtteranceId]) -> Mapping[UtteranceId, Uttered]:
        """Return those utterances that the log holds, including rolled back ones."""
        ...
