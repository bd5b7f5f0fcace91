"""A transaction on one campaign's world: its log, its tables, and the utterances that events retract or correct."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Self

import asyncpg

from glyphoxa.actors.limits import gc_paused, offload
from glyphoxa.adapters.postgres.server.database import CampaignStatements, Database
from glyphoxa.adapters.postgres.server.sql import at_ms, load_queries
from glyphoxa.adapters.postgres.world.event_log import (
    WorldLog,
    corrections_in_effect,
    read_world,
    retractions_in_effect,
    withholdings_in_effect,
)
from glyphoxa.adapters.postgres.world.tables import WorldTables
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.heard import SpokenBy
from glyphoxa.domain.ids import CampaignId, SessionId, SpeakerId, UtteranceId
from glyphoxa.world.event_log import WorldEvent, difference, replay
from glyphoxa.world.graph import WorldRead, new_events

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection


@dataclass(frozen=True, slots=True)
class TalkRange:
    """A range of utterances of one session.

    Attributes:
        after_ordinal: It begins after this ordinal.
        last_ordinal: Its last ordinal.
        n_heard: Number of its utterances that are not retracted yet.
    """

    session: SessionId
    after_ordinal: int
    last_ordinal: int
    n_heard: int


@dataclass(frozen=True, slots=True)
class LoggedUtterance:
    """An utterance in the log."""

    utterance: UtteranceId
    session: SessionId
    ordinal: int
    text: str
    speaker: SpokenBy
    is_of_npc: bool


@dataclass(frozen=True, slots=True)
class OwnLine:
    """A player's utterance.

    Attributes:
        range: With the answers of NPCs that follow it.
        learned: Numbers of the events learned from it and them.
    """

    utterance: UtteranceId
    range: TalkRange
    learned: tuple[int, ...]


class TalkRetraction(CampaignStatements):
    """Applies rollbacks, retractions, corrections and consent to the transcript, on a connection in a transaction.

    Retracted utterances and replaced words stay in the log, but nobody recalls them.
    """

    file = "world/retraction"

    async def session_and_later(self, session: SessionId) -> list[SessionId]:
        """These sessions in the order in which they began; empty: there is no such session."""
        rows = await self._fetch("session_and_later", session)
        return [SessionId(row["id"]) for row in rows]

    async def end_of(self, session: SessionId) -> int | None:
        """Time of the session's last trace, milliseconds since the Unix epoch; None: there is no such session."""
        end = await self._connection.fetchval(self._sql["end_of_session"], self._campaign, session)
        return None if end is None else at_ms(end)

    async def learned_behind(self, session: SessionId, ordinal: int, later: Sequence[SessionId]) -> list[int]:
        """Events learned after that ordinal of the session, or from later sessions."""
        return await self._seqs("learned_behind", session, ordinal, later)

    async def behind(self, session: SessionId, ordinal: int, later: Sequence[SessionId]) -> list[TalkRange]:
        """The utterances there so far."""
        return [TalkRange(**row) for row in await self._fetch("talk_behind", session, ordinal, later)]

    async def spoken(self, utterance: UtteranceId, *, retractions: Collection[int]) -> LoggedUtterance:
        """
        Raises:
            NotFound: There is no such utterance.
            InvalidInput: One of these events retracted it.
        """
        row = await self._connection.fetchrow(self._sql["utterance"], self._campaign, utterance, sorted(retractions))
        if row is None:
            raise NotFound(f"no utterance {utterance!r} in the log of campaign {self._campaign!r}")
        if row["retracted"]:
            raise InvalidInput(f"utterance {utterance!r} is already retracted")
        speaker = SpokenBy(SpeakerId(row["speaker_id"]), row["speaker_name"])
        place = SessionId(row["session_id"]), row["ordinal"]
        return LoggedUtterance(utterance, *place, row["text"], speaker, row["npc_id"] != "")

    async def own_lines(
        self, speaker: SpeakerId, utterances: Sequence[UtteranceId], session: SessionId | None = None
    ) -> list[OwnLine]:
        """The speaker's own among these utterances and those of the session, in order."""
        rows = await self._fetch("own_lines", speaker, list(utterances), session)
        return [
            OwnLine(
                UtteranceId(row["utterance_id"]),
                TalkRange(SessionId(row["session_id"]), row["ordinal"] - 1, row["last_ordinal"], 1),
                tuple(sorted(row["learned"])),
            )
            for row in rows
        ]

    async def read_others(self, events: Sequence[int]) -> None:
        """Have utterances read again that mention entities which these dropped events added."""
        await self._fetch("read_others", list(events))

    async def read_restored(self, utterances: Sequence[UtteranceId]) -> None:
        """Have restored utterances read from which nothing was learned."""
        await self._fetch("read_restored", list(utterances))

    async def learned_from(self, said: LoggedUtterance) -> list[int]:
        """Events learned from that utterance."""
        return await self._seqs("learned_from", said.utterance, said.session, said.ordinal)

    async def learned_from_any(self, utterances: Sequence[UtteranceId]) -> list[int]:
        """Events learned by reading one of these, alone or together with others."""
        return await self._seqs("learned_from_any", list(utterances))

    async def _seqs(self, query: str, *values: object) -> list[int]:
        return [row["seq"] for row in await self._fetch(query, *values)]

    async def retract(self, rollback: int, ranges: Sequence[TalkRange]) -> None:
        """Record what an event retracted: see `settle`."""
        await self._fetch(
            "retract",
            rollback,
            [each.session for each in ranges],
            [each.after_ordinal for each in ranges],
            [each.last_ordinal for each in ranges],
        )

    async def settle(self, *, before: Sequence[WorldEvent], after: Sequence[WorldEvent]) -> list[UtteranceId]:
        """Apply the difference between two sets of undoing events to the transcript. Returns the changed utterances.

        Args:
            before: All undoing events of the campaign as they were.
            after: The same as they are now.
        """
        retracted = retractions_in_effect(after)
        retractions = retractions_in_effect(before) ^ retracted
        old, new = corrections_in_effect(before), corrections_in_effect(after)
        corrected = {each: correction for each, correction in new.items() if old.get(each) != correction}
        if not retractions and not corrected:
            return []
        await self._fetch("lock_talk")
        rows: list[asyncpg.Record] = []
        if retractions:
            withheld = [each.seq for each in withholdings_in_effect(after).values()]
            rows += await self._fetch("settle_retracted", sorted(retractions), sorted(retracted), withheld)
        if corrected:
            # A text of None restores the original one, a speaker of None changes nothing.
            texts, speakers = zip(*corrected.values(), strict=True)
            ids, names = ([getattr(each, name, None) for each in speakers] for name in ("id", "name"))
            rows += await self._fetch("settle_words", list(corrected), list(texts), ids, names)
        return [UtteranceId(row["utterance_id"]) for row in rows]


_USUAL_TIMEOUT_MS: Final = 20_000
"""Default time limit of a statement; in a longer transaction, statements have its full time."""
_UNSTORABLE: Final = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)


@dataclass(slots=True)
class WorldTransaction:
    """The parts of a transaction.

    Attributes:
        held: The world with all or some of the events in the log, including those of this transaction.
    """

    connection: Connection
    campaign: CampaignId
    log: WorldLog
    tables: WorldTables
    talk: TalkRetraction
    held: WorldRead | None = None

    @classmethod
    def of(cls, connection: Connection, campaign: CampaignId) -> Self:
        """
        Args:
            connection: In a transaction, and set to that campaign.
        """
        on = connection, campaign
        return cls(connection, campaign, WorldLog(*on), WorldTables(*on), TalkRetraction(*on))

    async def require_campaign(self) -> None:
        """
        Raises:
            NotFound: There is no such campaign.
        """
        await self._require("campaign")

    async def lock_campaign(self) -> None:
        """Lock this world against other writers until the transaction ends.

        Raises:
            NotFound: There is no such campaign.
        """
        await self._require("lock_campaign")

    async def current(self) -> WorldRead:
        """The current world, with what this transaction has written so far. The campaign must be locked.

        Its state changes with the next commit.
        """
        held, self.held = self.held, None
        new = None if held is None else await new_events(self._events_from, held.last)
        if held is None or new is None:
            held = await read_world(self.log, self.tables)
        elif new:
            held = WorldRead(replay(new, onto=held.state), new[-1])
        self.held = held
        return held

    async def replay(self, last: WorldEvent) -> None:
        """Write what a replay of the log changes in the tables.

        Args:
            last: The last event in the log.
        """
        with gc_paused(amount=last.seq):
            before, after = await self.tables.read(with_ended=True), await self.log.state_at(last.seq)
            changes = await offload(lambda: difference(before, after), amount=len(after.facts) + len(before.facts))
            await self.tables.write(changes)
        self.held = WorldRead(after, last)

    async def _events_from(self, seq: int, limit: int) -> Sequence[WorldEvent]:
        return await self.log.page(after=seq - 1, limit=limit, latest_first=False)

    async def _require(self, query: str) -> None:
        sql = load_queries("world/transaction")
        if await self.connection.fetchval(sql[query], self.campaign) is None:
            known = [row["id"] for row in await self.connection.fetch(sql["campaigns"])]
            raise NotFound(f"no campaign {self.campaign!r} here: " + did_you_mean(self.campaign, known))


@asynccontextmanager
async def world_transaction(
    database: Database,
    campaign: CampaignId,
    *,
    deadline_ms: int,
    isolation: Literal["repeatable_read"] | None = None,
) -> AsyncIterator[WorldTransaction]:
    """
    Raises:
        InvalidInput: The database cannot hold what the block writes.
        Unavailable: The database is away, or the deadline has passed; nothing was written.
    """
    try:
        async with (
            database.use(campaign, deadline_ms=deadline_ms) as connection,
            connection.transaction(isolation=isolation),
        ):
            if deadline_ms > _USUAL_TIMEOUT_MS:
                await connection.execute(load_queries("world/transaction")["set_timeouts"], str(deadline_ms))
            yield WorldTransaction.of(connection, campaign)
    except _UNSTORABLE as error:
        raise InvalidInput(f"the database cannot hold this: {error}") from None
