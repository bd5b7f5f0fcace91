"""A campaign's talk is found by the forms of its language, also when that was another one while it was played."""

from __future__ import annotations

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.domain.ids import CampaignId

_BATCH = 5_000
_DEADLINE_MS = 30_000


async def update_text_search_config(database: Database, campaign: CampaignId) -> int:
    """Make all words of its talk those of the campaign's language as it is now. Returns how many utterances changed.

    The latest talk comes first, the first utterance last: if that has the right language, nothing is to be done,
    and who was interrupted goes on the next time.

    Raises:
        Unavailable: The database is away; what was done so far stays done.
    """
    sql = load_queries("transcript/log")
    changed = 0
    before: int | None = None
    while True:
        async with database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            if before is None and await connection.fetchval(sql["first_has_language"], campaign):
                return changed
            async with connection.transaction():
                await connection.execute(sql["lock"], campaign)
                [(n, before)] = await connection.fetch(sql["follow_language"], campaign, before, _BATCH)
        if before is None:
            return changed
        changed += n
