from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Protocol

import asyncpg

from glyphoxa.adapters.postgres.names.learned import PostgresLearnedNames
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.offload import beside, uncollected
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.transcript.retracted import Spoken, Stretch, StruckTalk
from glyphoxa.adapters.postgres.world.fork import fork_campaign
from glyphoxa.adapters.postgres.world.log import WorldLog
from glyphoxa.adapters.postgres.world.tables import WorldTables
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable, did_you_mean
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import AUTO_ACCEPT
from glyphoxa.world.encoding import encode, event_type
from glyphoxa.world.events import (
    Cause,
    Event,
    FactStated,
    RolledBack,
    Undone,
    UtteranceCorrected,
    UtteranceStruck,
    WorldEvent,
)
from glyphoxa.world.preconditions import problem_with
from glyphoxa.world.projection import apply
from glyphoxa.world.read_set import asked_by
from glyphoxa.world.replay import difference, dropped
from glyphoxa.world.state import Changes, Key, Missing, WorldState

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection

_DEADLINE_MS: Final = 1_000
_COMMIT_DEADLINE_MS: Final = 10_000
_PER_HAPPENING_MS: Final = 5
_REPLAY_DEADLINE_MS: Final = 60_000
_TAKE_BACK_DEADLINE_MS: Final = 600_000
"""To strike a chunk, or give it back, is to index its vector anew: some milliseconds each."""
_FORK_DEADLINE_MS: Final = 3_600_000
_MANY: Final = 50
"""Happenings for which it is worth while to plan each statement anew, which takes some milliseconds."""
_WORTH_COUNTING: Final = 1_000
_COUNT_DEADLINE_MS: Final = 10_000
_UNSTORABLE: Final = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)


@dataclass(frozen=True, slots=True)
class _World:
    """What a transaction works on."""

    connection: Connection
    campaign: CampaignId
    log: WorldLog
    tables: WorldTables
    talk: StruckTalk


class Commit(Protocol):
    """See `World.commit`."""

    async def __call__(
        self, happenings: Sequence[Event], cause: Cause, *, expect: int | None = None
    ) -> list[WorldEvent]: ...


@dataclass(frozen=True, slots=True)
class WorldWriting:
    """A world that nobody else writes to meanwhile. What is written on the connection is kept with the events, or not.

    Attributes:
        read: The world as it is, before what is committed here, without what ended.
    """

    connection: Connection
    read: Callable[[], Awaitable[WorldState]]
    commit: Commit


class PostgresWorld:
    """A `World`. Reading events has a deadline of 1 s, a commit one of 10 s and 5 ms for each happening, a look back
    one of a minute, taking back one of ten, a fork one of an hour; late is `Unavailable`, and nothing was written.

    Args:
        accept_at: The confidence from which facts that are stated now are accepted without the DM.
    """

    def __init__(self, database: Database, *, accept_at: float = AUTO_ACCEPT) -> None:
        self._database = database
        self.accept_at = accept_at
        self._names = PostgresLearnedNames(database)
        self._sql = load_queries("world/world")

    async def commit(
        self, campaign: CampaignId, happenings: Sequence[Event], cause: Cause, *, expect: int | None = None
    ) -> list[WorldEvent]:
        async with self._writing(campaign, deadline_ms=_commit_ms(len(happenings))) as world:
            events = await self._commit(world, happenings, cause, expect=expect)
        await self._count_again(events)
        return events

    @asynccontextmanager
    async def writing(
        self, campaign: CampaignId, *, amount: int, first: Callable[[Connection], Awaitable[object]]
    ) -> AsyncIterator[WorldWriting]:
        """One transaction for a look at the world, what is committed because of it, and what belongs to that.

        Args:
            amount: Of happenings, about: the deadline is that of their commit.
            first: Done before the world is locked: it may make the campaign.

        Raises:
            NotFound: There is no such campaign.
        """
        async with self._in_transaction(campaign, deadline_ms=_commit_ms(amount)) as world:
            await first(world.connection)
            await self._require(world, "lock_campaign")
            events: list[WorldEvent] = []

            async def commit(
                happenings: Sequence[Event], cause: Cause, *, expect: int | None = None
            ) -> list[WorldEvent]:
                made = await self._commit(world, happenings, cause, expect=expect)
                events.extend(made)
                return made

            yield WorldWriting(world.connection, world.tables.read_current, commit)
        await self._count_again(events)

    async def now(self, campaign: CampaignId) -> WorldState:
        """The world as it stands in the tables, without what ended.

        Raises:
            NotFound: There is no such campaign.
        """
        async with self._in_transaction(campaign, deadline_ms=_REPLAY_DEADLINE_MS) as world:
            await self._require(world, "campaign")
            return await world.tables.read_current()

    async def undo(self, campaign: CampaignId, seq: int, cause: Cause) -> WorldEvent:
        return (await self.undo_all(campaign, [seq], cause))[0]

    async def undo_all(self, campaign: CampaignId, seqs: Sequence[int], cause: Cause) -> list[WorldEvent]:
        if not seqs:
            return []
        async with self._writing(campaign, deadline_ms=_TAKE_BACK_DEADLINE_MS) as world:
            head, undoing = await world.log.head(), await world.log.undoing()
            events: list[WorldEvent] = []
            for seq in seqs:
                if not 1 <= seq <= head.seq:
                    raise NotFound(f"there is no event {seq} in campaign {campaign!r}: its last is {head.seq}")
                if seq in dropped([*undoing, *events]):
                    raise NotFound(f"event {seq} of campaign {campaign!r} is undone already")
                events.append(WorldEvent(head.seq + 1 + len(events), cause, Undone(seq)))
            await self._append_undoing(world, events)
            await self._settle_talk(world, before=undoing, after=[*undoing, *events])
        return events

    async def rollback(self, campaign: CampaignId, session: SessionId, floor: int, cause: Cause) -> WorldEvent | None:
        async with self._writing(campaign, deadline_ms=_TAKE_BACK_DEADLINE_MS) as world:
            sessions = await world.talk.session_and_later(session)
            if not sessions:
                raise NotFound(f"there is no session {session!r} in campaign {campaign!r}")
            head, undoing = await world.log.head(), await world.log.undoing()
            learned = await world.talk.learned_behind(session, floor, sessions[1:])
            left = sorted(set(learned) - dropped(undoing))
            said = await world.talk.behind(session, floor, sessions[1:])
            if not left and not any(stretch.heard for stretch in said):
                return None
            event = WorldEvent(head.seq + 1, cause, RolledBack(session, floor, tuple(left)))
            await self._append_undoing(world, [event])
            await world.talk.strike(event.seq, said)
            await self._settle_talk(world, before=undoing, after=[*undoing, event])
        return event

    async def strike(self, campaign: CampaignId, utterance: UtteranceId, cause: Cause) -> WorldEvent:
        async with self._writing(campaign, deadline_ms=_TAKE_BACK_DEADLINE_MS) as world:
            said = await world.talk.spoken(utterance)
            return await self._unlearn(
                world, said, cause, lambda left: UtteranceStruck(utterance, said.session, said.floor, left)
            )

    async def correct(self, campaign: CampaignId, utterance: UtteranceId, text: str, cause: Cause) -> WorldEvent:
        async with self._writing(campaign, deadline_ms=_TAKE_BACK_DEADLINE_MS) as world:
            said = await world.talk.spoken(utterance)
            if said.text == text:
                raise InvalidInput(f"utterance {utterance!r} says just this already: {text!r}")
            return await self._unlearn(
                world,
                said,
                cause,
                lambda left: UtteranceCorrected(utterance, said.session, said.floor, said.text, text, left),
            )

    async def _unlearn(
        self,
        world: _World,
        said: Spoken,
        cause: Cause,
        happening: Callable[[tuple[int, ...]], UtteranceStruck | UtteranceCorrected],
    ) -> WorldEvent:
        """
        Args:
            happening: Of the events that come from the utterance and are left out from now on.
        """
        head, undoing = await world.log.head(), await world.log.undoing()
        left = tuple(sorted(set(await world.talk.learned_from(said)) - dropped(undoing)))
        event = WorldEvent(head.seq + 1, cause, happening(left))
        await self._append_undoing(world, [event])
        if isinstance(event.happening, UtteranceStruck):
            await world.talk.strike(event.seq, [Stretch(said.session, said.floor - 1, said.floor, 1)])
        await self._settle_talk(world, before=undoing, after=[*undoing, event])
        return event

    async def _settle_talk(self, world: _World, *, before: Sequence[WorldEvent], after: Sequence[WorldEvent]) -> None:
        changed = await world.talk.settle(before=before, after=after)
        await self._names.follow_talk(world.connection, world.campaign, changed)

    async def rebuild(self, campaign: CampaignId) -> Changes:
        """Make the projections anew from the log; returns what was otherwise than it should have been.

        Raises:
            NotFound: There is no such campaign.
        """
        async with self._writing(campaign, deadline_ms=_REPLAY_DEADLINE_MS) as world:
            return await self._project(world, (await world.log.head()).seq)

    async def events(
        self, campaign: CampaignId, *, after: int = 0, limit: int = 1_000, latest_first: bool = False
    ) -> list[WorldEvent]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            log = WorldLog(connection, campaign, self._sql)
            return await log.page(after=after, limit=limit, latest_first=latest_first)

    async def as_of(
        self,
        campaign: CampaignId,
        *,
        at_ms: int | None = None,
        session: SessionId | None = None,
        seq: int | None = None,
    ) -> WorldState:
        if sum(given is not None for given in (at_ms, session, seq)) > 1:
            raise InvalidInput("the world is looked at as of a time, a session or an event: name one of them")
        async with self._in_transaction(campaign, deadline_ms=_REPLAY_DEADLINE_MS) as world:
            await self._require(world, "campaign")
            head = await world.log.head()
            if seq is not None and not 0 <= seq <= head.seq:
                raise NotFound(f"there is no event {seq} in campaign {campaign!r}: its last is {head.seq}")
            if session is not None:
                at_ms = await world.talk.end_of(session)
                if at_ms is None:
                    raise NotFound(f"there is no session {session!r} in campaign {campaign!r}")
            with uncollected(amount=head.seq):
                return await world.log.state_at(head.seq if seq is None else seq, at_ms=at_ms)

    async def fork(self, campaign: CampaignId, into: CampaignId, *, name: str) -> None:
        # Copied table by table, all of one moment.
        isolation: Final = "repeatable_read"
        async with self._in_transaction(campaign, deadline_ms=_FORK_DEADLINE_MS, isolation=isolation) as world:
            await self._require(world, "campaign")
            await fork_campaign(world.connection, self._sql, campaign, into, name=name)

    async def _commit(
        self, world: _World, happenings: Sequence[Event], cause: Cause, *, expect: int | None = None
    ) -> list[WorldEvent]:
        with uncollected(amount=len(happenings)):
            return await self._commit_uncollected(world, happenings, cause, expect=expect)

    async def _commit_uncollected(
        self, world: _World, happenings: Sequence[Event], cause: Cause, *, expect: int | None
    ) -> list[WorldEvent]:
        if len(happenings) >= _MANY:
            await world.connection.execute(self._sql["plan_for_many"])
        noted = [_with_threshold(happening, self.accept_at) for happening in happenings]
        encoded = await beside(lambda: [encode(happening) for happening in noted], amount=len(noted))
        head = await world.log.head()
        if expect is not None and expect != head.seq:
            raise InvalidInput(
                f"the world of campaign {world.campaign!r} has changed meanwhile: its last event is {head.seq}, "
                f"not {expect}; look again"
            )
        events = [WorldEvent(seq, cause, each.happening) for seq, each in enumerate(encoded, start=head.seq + 1)]
        state = WorldState.partial()
        state.load([("rules",)], rules=head.rules)
        asked = await beside(lambda: asked_by(event.happening for event in events), amount=len(events))
        await world.tables.load(state, asked)
        await self._apply(world, state, events)
        await world.log.append(encoded, cause, after=head.seq)
        await world.tables.write(await beside(state.changes, amount=len(events)))
        return events

    async def _count_again(self, events: Sequence[WorldEvent]) -> None:
        """After many events at once that made the world twice as large, or more."""
        if len(events) < _MANY or events[-1].seq < _WORTH_COUNTING:
            return
        if (events[0].seq - 1).bit_length() == events[-1].seq.bit_length():
            return
        with suppress(Unavailable):  # what was committed is kept all the same
            async with self._database.administer(deadline_ms=_COUNT_DEADLINE_MS) as connection:
                await connection.execute(self._sql["count_again"])

    async def _apply(self, world: _World, state: WorldState, events: Sequence[WorldEvent]) -> None:
        done, missing = 0, frozenset[Key]()
        while done < len(events):
            if missing:
                await world.tables.load(state, missing)
            waiting = events[done:]
            n, missing = await beside(partial(_apply_some, state, waiting, len(events)), amount=len(waiting))
            done += n

    async def _append_undoing(self, world: _World, events: Sequence[WorldEvent]) -> None:
        encoded = [encode(event.happening) for event in events]
        await world.log.append(encoded, events[0].cause, after=events[0].seq - 1)
        await self._project(world, events[-1].seq)

    async def _project(self, world: _World, seq: int) -> Changes:
        with uncollected(amount=seq):
            changes = await self._lacking(world, seq)
            await world.tables.write(changes)
        return changes

    async def _lacking(self, world: _World, seq: int) -> Changes:
        before, after = await world.tables.read(), await world.log.state_at(seq)
        return await beside(lambda: difference(before, after), amount=len(after.facts) + len(before.facts))

    @asynccontextmanager
    async def _writing(self, campaign: CampaignId, *, deadline_ms: int) -> AsyncIterator[_World]:
        """Nobody else writes to this world meanwhile."""
        async with self._in_transaction(campaign, deadline_ms=deadline_ms) as world:
            await self._require(world, "lock_campaign")
            yield world

    @asynccontextmanager
    async def _in_transaction(
        self, campaign: CampaignId, *, deadline_ms: int, isolation: Literal["repeatable_read"] | None = None
    ) -> AsyncIterator[_World]:
        try:
            async with (
                self._database.use(campaign, deadline_ms=deadline_ms) as connection,
                connection.transaction(isolation=isolation),
            ):
                if deadline_ms > 2 * _COMMIT_DEADLINE_MS:
                    await connection.execute(self._sql["give_time"], str(deadline_ms))
                at = connection, campaign, self._sql
                yield _World(connection, campaign, WorldLog(*at), WorldTables(*at), StruckTalk(*at))
        except _UNSTORABLE as error:
            raise InvalidInput(f"the database cannot hold this: {error}") from None

    async def _require(self, world: _World, query: str) -> None:
        if await world.connection.fetchval(self._sql[query], world.campaign) is None:
            known = [row["id"] for row in await world.connection.fetch(self._sql["campaigns"])]
            raise NotFound(f"no campaign {world.campaign!r} here: " + did_you_mean(world.campaign, known))


def _commit_ms(amount: int) -> int:
    return _COMMIT_DEADLINE_MS + _PER_HAPPENING_MS * amount


def _with_threshold(happening: Event, accept_at: float) -> Event:
    """What is stated is judged by the settings of its time, in every replay too."""
    if not isinstance(happening, FactStated) or happening.provenance.accept_at == accept_at:
        return happening
    return replace(happening, provenance=replace(happening.provenance, accept_at=accept_at))


def _apply_some(state: WorldState, events: Sequence[WorldEvent], total: int) -> tuple[int, frozenset[Key]]:
    """As many as the state knows enough for: how many, and what the next one lacks.

    Raises:
        InvalidInput: One of them cannot be said of this world.
    """
    for n, event in enumerate(events):
        try:
            if (problem := problem_with(state, event.happening)) is not None:
                which = f"{total - len(events) + n + 1}. of {total} happenings, " if total > 1 else ""
                raise InvalidInput(f"{which}{event_type(event.happening)}: {problem}")
            apply(state, event)
        except Missing as missing:
            return n, missing.keys
    return len(events), frozenset()
