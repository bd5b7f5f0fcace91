"""How campaigns tell the time, held in memory beside their talk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from weakref import WeakMethod

import numpy as np
from loguru import logger
from numpy import int64
from numpy.typing import NDArray

from glyphoxa.domain.calendar import CampaignTimes
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.index.talk_index import TalkIndex
from glyphoxa.recall.temporal.evenings import TableTimes, TimesOfCampaigns

_BY_DEFAULT: Final = CampaignTimes(time_zone="UTC")


class TimesCache:
    """
    Args:
        times: Where they are read; None: days begin at midnight UTC, and no story counts its own.
    """

    def __init__(self, times: TimesOfCampaigns | None) -> None:
        self._times = times
        self._held: dict[CampaignId, tuple[str, CampaignTimes]] = {}
        self._of_talk: dict[CampaignId, tuple[int, CampaignTimes, TableTimes]] = {}

    async def refresh(self, campaign: CampaignId, version: str) -> None:
        """Read them if they are others than those that are known. While the database is away these stand.

        Args:
            version: See `TalkHead.times`.
        """
        known = self._held.get(campaign)
        if self._times is None or (known is not None and known[0] == version):
            return
        try:
            found = await self._times.times(campaign)
        except GlyphoxaError as error:
            logger.debug("how {} tells the time is not read: {}", campaign, error)
        else:
            self._held[campaign] = (version, found)

    def story_day(self, campaign: CampaignId) -> str:
        """Where the story stands, as its calendar writes it; empty if it counts no days or nobody has said."""
        _, times = self._held.get(campaign, ("", _BY_DEFAULT))
        return "" if times.calendar is None or times.today is None else times.calendar.in_words(times.today)

    def of(self, campaign: CampaignId, index: TalkIndex) -> TableTimes:
        """As of the campaign's talk as it is now; the same object as long as nothing changes."""
        _, times = self._held.get(campaign, ("", _BY_DEFAULT))
        known = self._of_talk.get(campaign)
        if known is None or known[0] != index.changes or known[1] is not times:
            known = self._of_talk[campaign] = (index.changes, times, TableTimes.of(times, _told_at_ms(index)))
        return known[2]


def _told_at_ms(index: TalkIndex) -> Callable[[], NDArray[int64]]:
    """It keeps no talk in memory that was let go."""
    found = WeakMethod(index.told_at_ms)

    def told_at_ms() -> NDArray[int64]:
        told = found()
        return np.zeros(0, int64) if told is None else told()

    return told_at_ms
