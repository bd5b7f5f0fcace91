from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.listen import TALK, Listener
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.transcript.utterance_rows import utterance_of_row
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.transcript.ports import Decided

_DEADLINE_MS: Final = 1_000


class PostgresTalkDecisions:
    """A `TalkDecisions`. Reading has a deadline of 1 s."""

    def __init__(self, database: Database, listener: Listener) -> None:
        self._database = database
        self._listener = listener
        self._sql = load_queries("transcript/log")

    async def decided(self, campaign: CampaignId, session: SessionId) -> Sequence[Decided]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            rows = await connection.fetch(self._sql["decided"], campaign, session)
        return [Decided(utterance_of_row(row), row["retracted"], row["own_text"]) for row in rows]

    def changes(self, campaign: CampaignId) -> AsyncGenerator[object, None]:
        return self._listener.follow(TALK, campaign)
