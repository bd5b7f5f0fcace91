from __future__ import annotations

from typing import Protocol

from glyphoxa.domain.calendar import CampaignTimes
from glyphoxa.domain.ids import CampaignId


class TimesOfCampaigns(Protocol):
    async def times(self, campaign: CampaignId) -> CampaignTimes:
        """How a campaign tells the time; as by default for one that is not stored.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...
