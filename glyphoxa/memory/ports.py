"""What the rest of Glyphoxa asks of memory. `glyphoxa.adapters.postgres` answers; so do the twins in tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from glyphoxa.domain.campaign import Campaign, Entity, Relationship
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.turn import Recalled, TurnRecord
from glyphoxa.domain.utterance import Utterance


class TranscriptLog(Protocol):
    """Memory level 1: everything said, verbatim. Append-only and idempotent by utterance id."""

    async def append(self, utterances: Sequence[Utterance]) -> None:
        """Store them; one that is already there is left as it is. All or nothing.

        Raises:
            Unavailable: The database cannot be reached; nothing of this call was stored.
        """
        ...

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None: ...

    async def recent(
        self, campaign: CampaignId, session: SessionId, *, since_ms: int, limit: int = 50
    ) -> list[Utterance]:
        """The session's utterances that began at or after `since_ms`, oldest first, at most the last `limit`."""
        ...

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        """Utterances of a campaign, or of one of its sessions."""
        ...


class PastTalk(Protocol):
    """Recall of what was said, limited to what one NPC witnessed."""

    async def recall(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        limit: int = 5,
    ) -> list[Recalled]:
        """What `npc` heard that bears on `question`, best first. Decided in SQL before LIMIT: an utterance that
        the NPC did not witness is neither returned nor counted. Empty when nothing bears on it.
        """
        ...


class KnowledgeGraph(Protocol):
    """Memory level 3, in its first form: entities and typed relationships of a campaign."""

    async def load(self, campaign: Campaign) -> None:
        """Make the stored graph equal to the campaign file's, in one transaction."""
        ...

    async def entities(self, campaign: CampaignId, *, of_type: str | None = None) -> list[Entity]: ...

    async def neighbourhood(
        self, campaign: CampaignId, entity: EntityId
    ) -> tuple[Entity | None, list[tuple[Relationship, Entity]]]:
        """An entity and what it is directly related to, in either direction."""
        ...
