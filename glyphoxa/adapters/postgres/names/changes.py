from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from glyphoxa.adapters.postgres.server.listen import NAMES, Listener
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.names.followed import NamesChanged


class NameChanges:
    """Tells a running table that names have changed in the database, whoever changed them."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    async def follow(self, campaign: CampaignId) -> AsyncGenerator[NamesChanged, None]:
        """The changes to a campaign's names from now on. See `Listener.follow`."""
        async with aclosing(self._listener.follow(NAMES, campaign)) as notified:
            async for changed in notified:
                yield NamesChanged(None if changed is None else frozenset(EntityId(each) for each in changed))
