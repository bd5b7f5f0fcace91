"""What is kept of wrong forms of names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from glyphoxa.domain.ids import CampaignId, EntityId, UtteranceId
from glyphoxa.speech.learning.history import Happened, LearnedName, Step
from glyphoxa.speech.learning.wrong_forms import Uses
from glyphoxa.speech.names.gazetteer import Entry


class LearnedNames(Protocol):
    """Wrong forms of names and what was found out about them. Append-only: see `glyphoxa.speech.learning.history`."""

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        """The names in the graph (all, or of these entities) with the wrong forms that are active; people first."""
        ...

    async def statuses(self, campaign: CampaignId, heard: str | None = None) -> list[LearnedName]:
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
