from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import asyncpg

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.transcript.turn_rows import turn_parameters
from glyphoxa.domain.errors import NotFound, Unavailable, Unstorable
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.domain.utterance import Correction, Utterance

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NS_PER_MS = 1_000_000
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
        rows = [_row(place, said) for place, said in enumerate(by_id.values())]
        for attempt in range(_ATTEMPTS):
            try:
                async with self._storing(campaign) as connection:
                    await connection.execute(self._sql["plan_for_batch"])
                    await connection.execute(self._sql["place_sessions"], campaign, sessions)
                    added = await connection.fetch(self._sql["append"], campaign, rows)
                    corrections = [
                        row for (key,) in added for row in _correction_rows(by_id[key].id, by_id[key].corrections)
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
        later = _correction_rows(utterance.id, [c for c in utterance.corrections if c not in was.corrections])
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
                self._sql["record_turn"], campaign, *(_all_storable(value) for value in turn_parameters(turn))
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
        return [utterance(row) for row in rows]

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            if session is None:
                return int(await connection.fetchval(self._sql["count"], campaign))
            return int(await connection.fetchval(self._sql["count_of_session"], campaign, session))


def storable(text: str) -> str:
    """PostgreSQL stores neither NUL characters nor halves of surrogate pairs."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode("utf-8")


def _all_storable(value: object) -> object:
    """The same of all texts in a JSON value."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(key): _all_storable(one) for key, one in value.items()}
        case list() | tuple():
            return [_all_storable(one) for one in value]
        case _:
            return value


def timestamp(at_ms: int) -> datetime:
    """
    Args:
        at_ms: Milliseconds since the Unix epoch.

    Raises:
        Unstorable: That is thousands of years away.
    """
    try:
        return _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        raise Unstorable(f"{at_ms} ms since 1970 is not a time") from None


def at_ms(timestamp: datetime) -> int:
    """Milliseconds since the Unix epoch."""
    return (timestamp - _EPOCH) // timedelta(milliseconds=1)


def _row(place: int, said: Utterance) -> dict[str, object]:
    return {
        "place": place,
        "session_id": storable(said.session_id),
        "utterance_id": storable(said.id),
        "speaker_id": storable(said.speaker_id),
        "speaker_name": storable(said.speaker_name),
        "text": storable(said.text),
        "raw_text": storable(said.raw_text),
        "npc_id": storable(said.npc_id or ""),
        "at": timestamp(said.at_ms).isoformat(),
        "duration_ns": said.duration_ms * _NS_PER_MS,
        "witnesses": sorted(storable(npc) for npc in said.witnesses),
    }


def _correction_rows(utterance: UtteranceId, corrections: Sequence[Correction]) -> list[dict[str, object]]:
    return [
        {
            "utterance_id": storable(utterance),
            "ordinal": ordinal,
            "start_char": c.start,
            "end_char": c.end,
            "before": storable(c.before),
            "after": storable(c.after),
            "score": c.score,
            "stage": c.stage,
            "reason": storable(c.reason),
        }
        for ordinal, c in enumerate(corrections)
    ]


def utterance(row: asyncpg.Record) -> Utterance:
    """Of a row of the view `utterances`."""
    return Utterance(
        id=UtteranceId(row["utterance_id"]),
        campaign_id=CampaignId(row["campaign_id"]),
        session_id=SessionId(row["session_id"]),
        speaker_id=SpeakerId(row["speaker_id"]),
        speaker_name=row["speaker_name"],
        text=row["text"],
        raw_text=row["raw_text"],
        at_ms=at_ms(row["timestamp"]),
        duration_ms=row["duration_ns"] // _NS_PER_MS,
        npc_id=NpcId(row["npc_id"]) if row["npc_id"] else None,
        witnesses=frozenset(NpcId(npc) for npc in row["witnesses"]),
        corrections=tuple(Correction(**values) for values in row["corrections"] or ()),
    )
