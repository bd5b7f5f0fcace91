"""Tells a running table that names have changed in the database, whoever changed them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.listen import NotificationFeed
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.names.followed import NamesChanged

CHANNEL: Final = "glyphoxa_names"


class NameChanges:
    """See `NotificationFeed`."""

    def __init__(self, database: Database) -> None:
        self._notices = NotificationFeed(database, CHANNEL, what="entity")

    async def follow(self, campaign: CampaignId) -> AsyncGenerator[NamesChanged, None]:
        """The changes to a campaign's names from now on. See `NotificationFeed.follow`."""
        async with aclosing(self._notices.follow(campaign)) as notices:
            async for changed in notices:
                yield NamesChanged(None if changed is None else frozenset(EntityId(each) for each in changed))
