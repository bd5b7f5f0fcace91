"""What a process that holds a world in memory reads of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.world.events.log import WorldEvent
from glyphoxa.world.state import WorldState


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
    that is only added to, read with a cursor: `glyphoxa.recall.cursor`.
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
