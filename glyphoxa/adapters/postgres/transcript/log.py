"""The transcript log in PostgreSQL: utterances, turns, the DM's decisions on them, and the memory of a session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import asyncpg
from pydantic import TypeAdapter

from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import (
    at_ms,
    load_queries,
    storable,
    storable_json,
    timestamp,
)
from glyphoxa.dm.ports import CitedUtterance, Uttered
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable, Unstorable
from glyphoxa.domain.heard import Correction, Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import Recalled, RecalledFact, RecalledSummary, RecalledUtterance, Signal
from glyphoxa.domain.turn_record import (
    AssembledPrompt,
    Fault,
    LookUp,
    Outcome,
    PromptPart,
    Rejected,
    Stage,
    TurnRecord,
    Unaddressed,
    Unsaid,
)
from glyphoxa.judgement.safety import Judged, Mode, Risk, TurnJudgement
from glyphoxa.transcript.ports import Decided
from glyphoxa.transcript.sessions import SessionState, SummarySentence, View

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection


# Utterances and their corrections as rows, and back.


_NS_PER_MS: Final = 1_000_000


def row_of_utterance(place: int, said: Utterance) -> dict[str, object]:
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
        "aside": said.aside or "",
    }


def correction_rows(utterance: UtteranceId, corrections: Sequence[Correction]) -> list[dict[str, object]]:
    """Return the rows of corrections. They may need `storable`."""
    return [{"utterance_id": utterance, "ordinal": n, **asdict(each)} for n, each in enumerate(corrections)]


def utterance_of_row(row: asyncpg.Record) -> Utterance:
    """The utterance in a row of the view `utterances`."""
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
        aside=_aside(row),
    )


def _aside(row: asyncpg.Record) -> Unaddressed | None:
    return Unaddressed(row["aside"]) if row["aside"] else None


def said_of_row(row: asyncpg.Record) -> CitedUtterance:
    """The same for the DM."""
    return CitedUtterance(
        UtteranceId(row["utterance_id"]),
        SessionId(row["session_id"]),
        row["ordinal"],
        row["speaker_name"],
        row["text"],
        at_ms(row["timestamp"]),
        row["retracted"],
        row["withheld"],
        _aside(row),
        row.get("raw_text", ""),
    )


def judged_of_row(row: asyncpg.Record) -> Judged:
    judgement = TurnJudgement(
        Mode(row["mode"]), Risk(row["risk"]), tuple(row["flags"]), row["note"], row["extract_memory"]
    )
    return Judged(judgement, row["judged_by"], row["reason"])


# Turn records as rows of `turns`, and back.


_KINDS: Final[Mapping[str, type[Recalled]]] = {
    kind.source: kind for kind in (RecalledUtterance, RecalledFact, RecalledSummary)
}
_SIGNALS: Final = {signal.value: signal for signal in Signal}
_FAULTS: Final = {fault.value: fault for fault in Fault}
_STAGES: Final = {stage.value: stage for stage in Stage}


def turn_parameters(turn: TurnRecord) -> tuple[object, ...]:
    """Parameters of the query `record_turn` after the campaign. They may need `storable`."""
    return (
        turn.id,
        turn.session_id,
        turn.speaker_id,
        turn.speaker_name,
        turn.raw_text,
        turn.text,
        turn.npc_id or "",
        turn.address_reason,
        turn.outcome.value,
        turn.reply,
        turn.reply_heard,
        [_stored(one) for one in turn.prompt.recalled],
        {stage.value: at_ms for stage, at_ms in turn.stages.items()},
        list(turn.prompt.omitted),
        turn.prompt.text,
        turn.error,
        [{**_stored(one.recalled), "why": one.why} for one in turn.prompt.rejected],
        [asdict(one) for one in turn.looked_up],
        turn.utterance_id,
        turn.reply_id,
        [asdict(part) for part in turn.prompt.parts],
        turn.tier,
        turn.tier_reason,
        [asdict(one) for one in turn.unsaid],
    )


def turn_of_row(row: asyncpg.Record) -> TurnRecord:
    return TurnRecord(
        id=TurnId(row["id"]),
        session_id=SessionId(row["session_id"]),
        speaker_id=SpeakerId(row["speaker_id"]),
        speaker_name=row["speaker_name"],
        raw_text=row["raw_text"],
        text=row["text"],
        npc_id=NpcId(row["npc_id"]) if row["npc_id"] else None,
        address_reason=row["address_reason"],
        outcome=Outcome(row["outcome"]),
        reply=row["reply"],
        reply_heard=row["reply_heard"],
        prompt=AssembledPrompt(
            text=row["prompt_text"],
            parts=tuple(PromptPart(**part) for part in row["parts"]),
            recalled=tuple(_recalled(one) for one in row["recalled"]),
            rejected=tuple(Rejected(_recalled(one), one["why"]) for one in row["rejected"]),
            omitted=tuple(row["omitted"]),
        ),
        stages={_STAGES[stage]: at_ms for stage, at_ms in row["stages"].items() if stage in _STAGES},
        error=row["error"],
        looked_up=tuple(LookUp(**one) for one in row["looked_up"]),
        utterance_id=_utterance(row["utterance_id"]),
        reply_id=_utterance(row["reply_id"]),
        tier=row["tier"],
        tier_reason=row["tier_reason"],
        unsaid=tuple(Unsaid(one["text"], _FAULTS[one["fault"]]) for one in row["unsaid"] if one["fault"] in _FAULTS),
    )


def _stored(one: Recalled) -> dict[str, Any]:
    return {"source": one.source, **asdict(one)}


def _recalled(stored: Mapping[str, Any]) -> Recalled:
    """Also reads the format of older versions, whose text includes the speaker and whose kinds have all fields."""
    kind = _KINDS[stored["source"]]
    known = {field.name: stored[field.name] for field in fields(kind) if field.name in stored}
    if kind is RecalledUtterance:
        known.setdefault("speaker_name", "")
        known["signals"] = {_SIGNALS[name]: share for name, share in known["signals"].items() if name in _SIGNALS}
    if "evidence" in known:
        known["evidence"] = tuple(known["evidence"])
    return kind(**known)


def _utterance(key: str | None) -> UtteranceId | None:
    return None if key is None else UtteranceId(key)


class PostgresTurns(CampaignQueries):
    """The DM's `Turns`. Calls have a deadline of 10 s."""

    file = "transcript/turns"
    deadline_ms = 10_000

    async def latest(
        self, campaign: CampaignId, *, session: SessionId | None = None, npc: NpcId | None = None, limit: int
    ) -> list[TurnRecord]:
        return [turn_of_row(row) for row in await self._fetch("latest", campaign, session, npc, limit)]

    async def turn(self, campaign: CampaignId, turn: TurnId) -> TurnRecord | None:
        rows = await self._fetch("turn", campaign, storable(turn))
        return turn_of_row(rows[0]) if rows else None

    async def ending_with(
        self,
        campaign: CampaignId,
        ending: str,
        *,
        session: SessionId | None = None,
        npc: NpcId | None = None,
        limit: int,
    ) -> list[TurnId]:
        rows = await self._fetch("ending_with", campaign, storable(ending), session, npc, limit)
        return [TurnId(row["id"]) for row in rows]

    async def uttered(self, campaign: CampaignId, ids: Collection[UtteranceId]) -> Mapping[UtteranceId, Uttered]:
        rows = await self._fetch("uttered", campaign, list(ids)) if ids else []
        return {UtteranceId(row["utterance_id"]): _uttered(row) for row in rows}


def _uttered(row: asyncpg.Record) -> Uttered:
    judged = None if row["mode"] is None else judged_of_row(row)
    return Uttered(said_of_row(row), tuple(Correction(**values) for values in row["corrections"] or ()), judged)


_UNSTORABLE = (
    asyncpg.DataError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.IntegrityConstraintViolationError,
    ValueError,  # asyncpg's error for an argument that does not fit its column
)
_WRITE_DEADLINE_MS = 10_000
_ATTEMPTS = 3


class PostgresTranscriptLog(CampaignQueries):
    """Implements `TranscriptLog`. Reads have a deadline of 1 s, writes one of 10 s; late is `Unavailable`.

    Unstorable are a time in the year 20000 and a text of 100 MB. Batches of 500 to 1,000 are fastest.
    """

    file = "transcript/log"

    async def append(self, utterances: Sequence[Utterance]) -> None:
        by_campaign: dict[CampaignId, dict[str, Utterance]] = {}
        for said in utterances:
            campaign = CampaignId(storable(said.campaign_id))
            by_campaign.setdefault(campaign, {}).setdefault(storable(said.id), said)
        # In a fixed order, so that two writers cannot deadlock.
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
                        await connection.execute(self._sql["add_corrections"], campaign, storable_json(corrections))
                return
            except asyncpg.UniqueViolationError as error:
                # Another writer has appended one of them under another session since the check. Now it is visible.
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
            await connection.execute(self._sql["add_later_corrections"], campaign, utterance_id, storable_json(later))
            await connection.execute(self._sql["drop_chunks"], campaign, utterance_id)
        return True

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        campaign = CampaignId(storable(campaign))
        async with self._storing(campaign) as connection:
            await connection.execute(
                self._sql["record_turn"], campaign, *(storable_json(value) for value in turn_parameters(turn))
            )
            if turn.is_readdressed and turn.npc_id is not None:
                await connection.execute(self._sql["lock"], campaign)
                heard = turn.utterance_id, turn.npc_id, turn.reply_id
                await connection.execute(self._sql["enter_story"], campaign, *heard)

    @asynccontextmanager
    async def _storing(self, campaign: CampaignId) -> AsyncIterator[Connection]:
        """A transaction. Translates errors, except for a duplicate key."""
        async with self._database.use(campaign, deadline_ms=_WRITE_DEADLINE_MS) as connection:
            try:
                async with connection.transaction():
                    yield connection
            except asyncpg.UniqueViolationError:
                raise
            except _UNSTORABLE as error:
                raise Unstorable(f"the database cannot hold this: {error}") from None
            except asyncpg.PostgresError as error:
                raise Unavailable(f"the database rejects writes: {error}") from None

    async def recent(
        self, campaign: CampaignId, session: SessionId, *, since_ms: int, limit: int = 50
    ) -> list[Utterance]:
        """Return the session's utterances that began at or after `since_ms`, oldest first, at most the last `limit`.

        Utterances that were rolled back are not included.
        """
        rows = await self._fetch("recent", campaign, session, timestamp(since_ms), limit)
        return [utterance_of_row(row) for row in rows]

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        if session is None:
            ((n,),) = await self._fetch("count", campaign)
        else:
            ((n,),) = await self._fetch("count_of_session", campaign, session)
        return int(n)

    async def decided(self, campaign: CampaignId, session: SessionId) -> Sequence[Decided]:
        """Return all decisions of a session, in the order of its utterances, as they are now.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        rows = await self._fetch("decided", campaign, session)
        return [Decided(utterance_of_row(row), row["retracted"], row["own_text"]) for row in rows]


_BATCH = 5_000
_REWORD_DEADLINE_MS = 30_000


async def update_text_search_config(database: Database, campaign: CampaignId) -> int:
    """Reindex the words of a campaign's utterances for its current language. Returns the number of changes.

    From the latest utterance to the first: if the first one is up to date, nothing is to be done, so an interrupted run
    continues next time.

    Raises:
        Unavailable: The database is away; completed changes stay.
    """
    sql = load_queries("transcript/log")
    changed = 0
    before: int | None = None
    while True:
        async with database.use(campaign, deadline_ms=_REWORD_DEADLINE_MS) as connection:
            if before is None and await connection.fetchval(sql["first_has_language"], campaign):
                return changed
            async with connection.transaction():
                await connection.execute(sql["lock"], campaign)
                [(n, before)] = await connection.fetch(sql["follow_language"], campaign, before, _BATCH)
        if before is None:
            return changed
        changed += n


# The memory of a running session.


VERSION: Final = 2
"""Version of the stored format. Version 1 has no `version`, and does not mark an NPC's own sentences."""
_STATE: Final = TypeAdapter(SessionState)


class PostgresSessionStates(CampaignQueries):
    """Implements `SessionStates`. Calls have a deadline of 1 s.

    A state of a later version raises InvalidInput when it is read, and no write changes it.
    """

    file = "transcript/session_states"

    def __init__(self, database: Database, campaign: CampaignId, session: SessionId) -> None:
        super().__init__(database)
        self._campaign = campaign
        self._session = storable(session)

    async def state(self, view: View) -> SessionState:
        rows = await self._fetch("state", self._campaign, self._session, storable(view))
        return _state(rows[0]["state"]) if rows else SessionState()

    async def all(self) -> Mapping[View, SessionState]:
        """Return the stored states of all views."""
        rows = await self._fetch("states", self._campaign, self._session)
        return {View(row["view"]): _state(row["state"]) for row in rows}

    async def cover(
        self, view: View, summary: Sequence[SummarySentence], *, up_to: UtteranceId, after: int
    ) -> int | None:
        told = storable_json([asdict(sentence) for sentence in summary])
        where = (self._campaign, self._session, storable(view))
        async with self._use(self._campaign) as connection, connection.transaction():
            await connection.execute(self._sql["lock"], self._campaign)
            reached = await connection.fetchval(self._sql["cover"], *where, told, storable(up_to), after, VERSION)
        return None if reached is None else int(reached)

    async def note(self, view: View, flags: Mapping[str, bool]) -> None:
        values = self._session, storable(view), storable_json(dict(flags)), VERSION
        await self._fetch("note", self._campaign, *values)


def _state(stored: Mapping[str, Any]) -> SessionState:
    if (version := stored.get("version", 1)) > VERSION:
        text = f"the stored memory of this session has version {version}: this release reads versions 1 to {VERSION}"
        raise InvalidInput(f"{text}; install a newer Glyphoxa")
    return _STATE.validate_python(stored)
