from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import asyncpg

from glyphoxa.adapters.postgres.database import Database
from glyphoxa.adapters.postgres.paragraphs import load_paragraphs
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.domain.utterance import Correction, Utterance

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NS_PER_MS = 1_000_000
_UNSTORABLE = (
    asyncpg.DataError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.IntegrityConstraintViolationError,
    ValueError,  # asyncpg's for an argument that does not fit its column
)
_DEADLINE_MS = 1000
_APPEND_DEADLINE_MS = 10_000


class PostgresTranscriptLog:
    """A `TranscriptLog`. Reads have a deadline of 1 s, writes one of 10 s; late is `Unavailable`.

    `append` raises `InvalidInput` for what no column can hold (a time in the year 20000, a text of 100 MB).
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = load_paragraphs("transcripts")

    async def append(self, utterances: Sequence[Utterance]) -> None:
        by_campaign: dict[CampaignId, list[Utterance]] = {}
        for said in utterances:
            by_campaign.setdefault(CampaignId(_storable(said.campaign_id)), []).append(said)
        # Sorted, so that two writers never wait for each other crosswise.
        for campaign, of_campaign in sorted(by_campaign.items()):
            await self._append(campaign, of_campaign)

    async def _append(self, campaign: CampaignId, utterances: Sequence[Utterance]) -> None:
        sessions: dict[str, datetime] = {}
        for said in utterances:
            session, at = _storable(said.session_id), _timestamp(said.at_ms)
            sessions[session] = min(at, sessions.get(session, at))
        session_rows = [(campaign, session, at) for session, at in sorted(sessions.items())]
        correction_rows = [row for said in utterances for row in _correction_rows(said, said.corrections)]
        rows = [_row(said) for said in utterances]
        try:
            async with (
                self._database.use(campaign, deadline_ms=_APPEND_DEADLINE_MS) as connection,
                connection.transaction(),
            ):
                await connection.executemany(self._sql["add_session"], session_rows)
                for row in rows:
                    await connection.execute(self._sql["append"], *row)
                if correction_rows:
                    await connection.executemany(self._sql["add_correction"], correction_rows)
        except _UNSTORABLE as error:
            raise InvalidInput(f"the database cannot hold this: {error}") from None

    async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
        campaign, utterance_id = CampaignId(_storable(utterance.campaign_id)), _storable(utterance.id)
        rows = [
            (*row[:2], *row[3:])  # the ordinal is found there
            for row in _correction_rows(utterance, [c for c in utterance.corrections if c not in was.corrections])
        ]
        try:
            async with self._database.use(campaign, deadline_ms=_APPEND_DEADLINE_MS) as connection, connection.transaction():
                texts = _storable(utterance.text), _storable(was.text)
                if texts[0] == texts[1]:
                    return False
                if not await connection.fetchval(self._sql["revise"], campaign, utterance_id, *texts):
                    if await connection.fetchval(self._sql["exists"], campaign, utterance_id):
                        return False
                    raise NotFound(f"no utterance {utterance.id!r} in the log of campaign {utterance.campaign_id!r}")
                await connection.executemany(self._sql["add_later_correction"], rows)
                await connection.execute(self._sql["drop_chunk"], campaign, utterance_id)
        except _UNSTORABLE as error:
            raise InvalidInput(f"the database cannot hold this: {error}") from None
        return True

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        async with self._database.use(campaign, deadline_ms=_APPEND_DEADLINE_MS) as connection:
            await connection.execute(
                self._sql["record_turn"],
                campaign,
                turn.id,
                turn.session_id,
                turn.speaker_id,
                _storable(turn.speaker_name),
                _storable(turn.raw_text),
                _storable(turn.text),
                turn.npc_id or "",
                _storable(turn.address_reason),
                turn.outcome.value,
                _storable(turn.reply),
                _storable(turn.reply_heard),
                [
                    {key: _storable(v) if isinstance(v, str) else v for key, v in asdict(r).items()}
                    for r in turn.recalled
                ],
                {stage.value: at_ms for stage, at_ms in turn.stages.items()},
                [_storable(part) for part in turn.omitted],
                _storable(turn.prompt_text),
                _storable(turn.error),
            )

    async def recent(
        self, campaign: CampaignId, session: SessionId, *, since_ms: int, limit: int = 50
    ) -> list[Utterance]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            rows = await connection.fetch(self._sql["recent"], campaign, session, _timestamp(since_ms), limit)
        return [_utterance(row) for row in rows]

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            return int(await connection.fetchval(self._sql["count"], campaign, session))


def _storable(text: str) -> str:
    """PostgreSQL stores neither NUL characters nor halves of surrogate pairs."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode("utf-8")


def _timestamp(at_ms: int) -> datetime:
    try:
        return _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        raise InvalidInput(f"{at_ms} ms since 1970 is not a time") from None


def at_ms(timestamp: datetime) -> int:
    """Milliseconds since the Unix epoch."""
    return (timestamp - _EPOCH) // timedelta(milliseconds=1)


def _row(said: Utterance) -> tuple[object, ...]:
    return (
        _storable(said.campaign_id),
        _storable(said.session_id),
        _storable(said.id),
        _storable(said.speaker_id),
        _storable(said.speaker_name),
        _storable(said.text),
        _storable(said.raw_text),
        said.npc_id or "",
        _timestamp(said.at_ms),
        said.duration_ms * _NS_PER_MS,
        sorted(said.witnesses),
    )


def _correction_rows(said: Utterance, corrections: Sequence[Correction]) -> list[tuple[object, ...]]:
    return [
        (
            _storable(said.campaign_id),
            _storable(said.id),
            ordinal,
            c.start,
            c.end,
            _storable(c.before),
            _storable(c.after),
            c.score,
            c.stage,
            _storable(c.reason),
        )
        for ordinal, c in enumerate(corrections)
    ]


def _utterance(row: asyncpg.Record) -> Utterance:
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
