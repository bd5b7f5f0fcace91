"""What the rest of Glyphoxa asks of memory. `glyphoxa.adapters.postgres` answers; so do the twins in tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from glyphoxa.domain.campaign import Campaign, Entity, Relationship
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.turn import Recalled, TurnRecord
from glyphoxa.domain.utterance import Utterance
from glyphoxa.speech.learning.history import Happened, LearnedName, Step
from glyphoxa.speech.learning.wrong_forms import Uses
from glyphoxa.speech.names.gazetteer import Entry


class TranscriptLog(Protocol):
    """Memory level 1: everything said, verbatim. Append-only and idempotent by utterance id."""

    async def append(self, utterances: Sequence[Utterance]) -> None:
        """Store them; one that is already there is left as it is. All or nothing.

        Raises:
            Unavailable: The database cannot be reached; nothing of this call was stored.
        """
        ...

    async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
        """Put `utterance.text` in place of `was.text`, and add those of its corrections that `was` has not (C-08).

        `raw_text` never changes. All or nothing; what was derived from the old text goes with it. False, and nothing
        is done, when the text that is stored is not `was.text` (any more): so it may be done twice.

        Raises:
            Unavailable: The database cannot be reached; nothing was changed.
            NotFound: There is no such utterance.
            InvalidInput: The database cannot hold this.
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


class LearnedNames(Protocol):
    """Wrong forms of names and what was found out about them. Append-only: see `glyphoxa.speech.learning.history`."""

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        """The names in the graph (all, or of these entities) with the wrong forms that are active; people first."""
        ...

    async def standings(self, campaign: CampaignId, heard: str | None = None) -> list[LearnedName]:
        """Every pair of form and name (or of one form, however it is spaced), those most often heard first."""
        ...

    async def record(self, campaign: CampaignId, heard: str, step: Step) -> LearnedName:
        """Add a step to a form's history, unless it would change nothing; return where the pair stands now.

        Raises:
            AlreadyTaken: It confirms what was confirmed for another name.
        """
        ...

    async def undo(self, campaign: CampaignId, *, at_ms: int, heard: str | None = None) -> Happened | None:
        """Take back the DM's last decision (on one form, if given); return it, or None if there is none left."""
        ...

    async def history(self, campaign: CampaignId, *, heard: str | None = None, limit: int = 50) -> list[Happened]:
        """What happened, latest first."""
        ...

    async def uses(self, campaign: CampaignId, heard: str, *, exclude: Collection[UtteranceId] = ()) -> Uses:
        """Where the words of a form stand as themselves; utterances of `exclude` are not counted."""
        ...
