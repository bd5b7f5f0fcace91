from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import asyncpg

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.server.values import storable, storable_json, timestamp
from glyphoxa.adapters.postgres.transcript.turn_rows import turn_parameters
from glyphoxa.adapters.postgres.transcript.utterance_rows import correction_rows, row_of_utterance, utterance_of_row
from glyphoxa.domain.errors import NotFound, Unavailable, Unstorable
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.domain.utterance import Utterance

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.connection import Connection

_UNSTORABLE = (
    asyncpg.DataError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.IntegrityConstraintViolationError,
    ValueError,  # asyncpg's for an argument that does not fit its column
)
_DEADLINE_MS = 1000
_WRITE_DEADLINE_MS = 10_000
_ATTEMPTS = 3


class PostgresTranscriptLog:
    """A `TranscriptLog`. Reads have a deadline of 1 s, writes one of 10 s; late is `Unavailable`.

    Unstorable is a time in the year 20000, or a text of 100 MB. A batch of 500 to 1,000 is taken fastest.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = load_queries("transcript/log")

    async def append(self, utterances: Sequence[Utterance]) -> None:
        by_campaign: dict[CampaignId, dict[str, Utterance]] = {}
        for said in utterances:
            campaign = CampaignId(storable(said.campaign_id))
            by_campaign.setdefault(campaign, {}).setdefault(storable(said.id), said)
        # In one order, so that two writers never wait for each other crosswise.
        for campaign, by_id in sorted(by_campaign.items()):
            await self._append(campaign, by_id)

    async def _append(self, campaign: CampaignId, by_id: Mapping[str, Utterance]) -> None:
        began: dict[str, datetime] = {}
        for said in by_id.values():
            session, at = storable(said.session_id), timestamp(said.at_ms)
            began[session] = min(at, began.get(session, at))
        sessions = [{"id": session, "started_at": at.isoformat()} for session, at in began.items()]
        rows = [row_of_utterance(place, said) for place, said in enumerate(by_id.values())]
        for attempt in range(_ATTEMPTS):
            try:
                async with self._storing(campaign) as connection:
                    await connection.execute(self._sql["plan_for_batch"])
                    await connection.execute(self._sql["place_sessions"], campaign, sessions)
                    added = await connection.fetch(self._sql["append"], campaign, rows)
                    corrections = [
                        row for (key,) in added for row in correction_rows(by_id[key].id, by_id[key].corrections)
                    ]
                    if corrections:
                        await connection.execute(self._sql["add_corrections"], campaign, corrections)
                return
            except asyncpg.UniqueViolationError as error:
                # Somebody else appended one of them, under another session, since we looked. Now we see it.
                if attempt + 1 == _ATTEMPTS:
                    raise Unavailable(f"the database is busy with the same utterances: {error}") from None

    async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
        campaign, utterance_id = CampaignId(storable(utterance.campaign_id)), storable(utterance.id)
        later = correction_rows(utterance.id, [c for c in utterance.corrections if c not in was.corrections])
        text, was_text = storable(utterance.text), storable(was.text)
        if text == was_text:
            return False
        async with self._storing(campaign) as connection:
            await connection.execute(self._sql["lock"], campaign)
            if not await connection.fetchval(self._sql["revise"], campaign, utterance_id, text, was_text):
                if await connection.fetchval(self._sql["exists"], campaign, utterance_id):
                    return False
                raise NotFound(f"no utterance {utterance.id!r} in the log of campaign {utterance.campaign_id!r}")
            await connection.execute(self._sql["add_later_corrections"], campaign, utterance_id, later)
            await connection.execute(self._sql["drop_chunks"], campaign, utterance_id)
        return True

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        campaign = CampaignId(storable(campaign))
        async with self._storing(campaign) as connection:
            await connection.execute(
                self._sql["record_turn"], campaign, *(storable_json(value) for value in turn_parameters(turn))
            )

    @asynccontextmanager
    async def _storing(self, campaign: CampaignId) -> AsyncIterator[Connection]:
        """A transaction. Its errors are our own, but for a key that is taken."""
        async with self._database.use(campaign, deadline_ms=_WRITE_DEADLINE_MS) as connection:
            try:
                async with connection.transaction():
                    yield connection
            except asyncpg.UniqueViolationError:
                raise
            except _UNSTORABLE as error:
                raise Unstorable(f"the database cannot hold this: {error}") from None
            except asyncpg.PostgresError as error:
                raise Unavailable(f"the database does not take what is said: {error}") from None

    async def recent(
        self, campaign: CampaignId, session: SessionId, *, since_ms: int, limit: int = 50
    ) -> list[Utterance]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            rows = await connection.fetch(self._sql["recent"], campaign, session, timestamp(since_ms), limit)
        return [utterance_of_row(row) for row in rows]

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            if session is None:
                return int(await connection.fetchval(self._sql["count"], campaign))
            return int(await connection.fetchval(self._sql["count_of_session"], campaign, session))
