from __future__ import annotations

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.server.viewers import viewer_parameter
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.transcript.episodes import EPISODE, episode_of

_DEADLINE_MS = 1_000


class PostgresSessionSummaries:
    """Summaries of past sessions; see `glyphoxa.transcript.episodes`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = load_queries("transcript/session_summaries")

    async def summary(self, campaign: CampaignId, npc: NpcId, session: SessionId) -> str | None:
        """None when there is none of which `npc` may know both the entity and its two facts.

        Raises:
            Unavailable: The database is away or late.
        """
        asked = (campaign, viewer_parameter(npc), episode_of(session), EPISODE)
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            text = await connection.fetchval(self._sql["summary"], *asked)
        return None if text is None else str(text)

    async def latest(self, campaign: CampaignId, npc: NpcId, *, but: SessionId, limit: int) -> list[str]:
        """See `SessionSummaries`.

        Raises:
            Unavailable: As above.
        """
        asked = (campaign, viewer_parameter(npc), but, EPISODE, limit)
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            return [str(row["text"]) for row in await connection.fetch(self._sql["latest"], *asked)]
