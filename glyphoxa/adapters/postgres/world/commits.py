"""Commit events to a world, undo them, and fork a campaign.

Each event is applied to the current state, and appended to the log and written to the tables in one transaction. States
are held in memory between transactions, as they were committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from glyphoxa.actors.limits import gc_paused, offload
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.world.event_log import (
    WorldLog,
    read_world,
    retractions_in_effect,
    withholdings_in_effect,
)
from glyphoxa.adapters.postgres.world.transaction import TalkRange, WorldTransaction, world_transaction
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.domain.heard import SpokenBy
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import AUTO_ACCEPT, NEVER
from glyphoxa.world.encoding import encode, event_type
from glyphoxa.world.event_kinds import FactStated
from glyphoxa.world.event_log import (
    Cause,
    Event,
    RolledBack,
    Undone,
    UtteranceCorrected,
    UtteranceRetracted,
    UtteranceWithheld,
    WorldEvent,
    apply,
    dropped,
)
from glyphoxa.world.graph import ConsentChange, WorldRead
from glyphoxa.world.state import Changes, WorldState

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection


COPIED: Final = (
    "campaign_documents",
    "campaign_times",
    "story_days",
    "sessions",
    "session_entries",
    "talk_to_embed",
    "corrections",
    "turns",
    "chunks",
    "world_events",
    "form_counts",
    "entities",
    "entity_merges",
    "slot_rules",
    "relationships",
    "attribute_facts",
    "fact_supports",
    "fact_history",
    "retracted_talk",
    "table_controls",
    "chronicle_progress",
    "chronicle_rereads",
    "turn_judgements",
    "session_states",
    "state_atoms",
    "atom_edges",
    "entity_vectors",
    "import_sources",
    "import_documents",
)
"""Tables of a campaign, referenced tables first. Snapshots are recreated when needed.

Commands to an open table are not copied: a table of the fork must not execute commands to another.
"""


_COMMIT_DEADLINE_MS: Final = 10_000
_PER_EVENT_MS: Final = 5
_MANY: Final = 50
"""Number of events from which replanning each statement, some milliseconds each, pays off."""
_WORTH_ANALYZING: Final = 1_000
_ANALYZE_DEADLINE_MS: Final = 10_000


def commit_deadline_ms(amount: int) -> int:
    return _COMMIT_DEADLINE_MS + _PER_EVENT_MS * amount


async def analyze_if_grown(database: Database, committed: Sequence[WorldEvent]) -> None:
    """Analyze the tables after a large commit that at least doubled the world."""
    if len(committed) < _MANY or committed[-1].seq < _WORTH_ANALYZING:
        return
    if (committed[0].seq - 1).bit_length() == committed[-1].seq.bit_length():
        return
    with suppress(Unavailable):  # the commit itself stands
        async with database.administer(deadline_ms=_ANALYZE_DEADLINE_MS) as connection:
            await connection.execute(load_queries("world/commits")["analyze"])


def _with_threshold(event: Event, accept_at: float) -> Event:
    """Store the threshold in effect with the statement, so that every replay judges it the same."""
    if not isinstance(event, FactStated) or event.provenance.accept_at in (accept_at, NEVER):
        return event
    return replace(event, provenance=replace(event.provenance, accept_at=accept_at))


def _changes_by(state: WorldState, events: Sequence[WorldEvent]) -> Changes:
    """Apply events to a state, which is unusable if one of them cannot be applied.

    Raises:
        InvalidInput: One of them cannot be applied to this world.
    """
    state.begin()
    for n, recorded in enumerate(events, start=1):
        if (problem := recorded.event.failed_precondition(state)) is not None:
            which = f"event {n} of {len(events)}, " if len(events) > 1 else ""
            raise InvalidInput(f"{which}{event_type(recorded.event)}: {problem}")
        apply(state, recorded)
    return state.changes()


_DEADLINE_MS: Final = 1_000
_REPLAY_DEADLINE_MS: Final = 60_000
_TAKE_BACK_DEADLINE_MS: Final = 600_000
"""Retracting or restoring a chunk reindexes its vector: some milliseconds each."""
_FORK_DEADLINE_MS: Final = 3_600_000
_MOST_HELD: Final = 2
"""Campaigns whose world is held. One of 10,000 entities and 30,000 facts takes about 60 MB."""


@dataclass(slots=True)
class WorldWriting(WorldTransaction):
    """A world locked for writing. Other writes on the connection are committed together with the events.

    Attributes:
        accept_at: See `PostgresWorld`.
        recorded: Events committed here.
    """

    accept_at: float = AUTO_ACCEPT
    recorded: list[WorldEvent] = field(default_factory=list)

    async def commit(self, events: Sequence[Event], cause: Cause) -> list[WorldEvent]:
        """See `WorldHistory.commit`."""
        if len(events) >= _MANY:
            await self.connection.execute(load_queries("world/commits")["custom_plans"])
        with gc_paused(amount=len(events)):
            encoded = await offload(
                lambda: [encode(_with_threshold(event, self.accept_at)) for event in events], amount=len(events)
            )
            now = await self.current()
            self.held, last = None, 0 if now.last is None else now.last.seq
            made = [WorldEvent(seq, cause, each.event) for seq, each in enumerate(encoded, start=last + 1)]
            changes = await offload(lambda: _changes_by(now.state, made), amount=len(made))
            await self.log.append(encoded, cause, after=last)
            await self.tables.write(changes)
        self.held = WorldRead(now.state, made[-1] if made else now.last)
        self.recorded += made
        return made

    async def undo(self, seqs: Sequence[int], cause: Cause) -> None:
        """Undo these events, as far as they are not undone already."""
        if left := sorted(set(seqs) - dropped(await self.log.undoing())):
            await _take_back(self, [Undone(seq) for seq in left], cause)

    async def unlearn(self, utterances: Sequence[UtteranceId], cause: Cause) -> None:
        """Drop everything learned from these utterances so far."""
        await self.undo(await self.talk.learned_from_any(utterances), cause)


class PostgresWorld:
    """Implements `WorldHistory` and `WorldFeed`; late is `Unavailable`, and nothing was written.

    Deadlines: reading events 1 s, a commit 10 s and 5 ms per event, a current or past state a minute, undoing ten
    minutes, a fork an hour.

    Args:
        accept_at: The confidence from which newly stated facts need no review.
    """

    def __init__(self, database: Database, *, accept_at: float = AUTO_ACCEPT) -> None:
        self._database = database
        self.accept_at = accept_at
        self.deciding = asyncio.Lock()
        """Held while a transaction waits for reads on other connections: a few of these would use up the pool."""
        self._held: dict[CampaignId, WorldRead] = {}

    async def commit(self, campaign: CampaignId, events: Sequence[Event], cause: Cause) -> list[WorldEvent]:
        async with self.writing(campaign, amount=len(events)) as world:
            return await world.commit(events, cause)

    def writing(
        self, campaign: CampaignId, *, amount: int, first: Callable[[Connection], Awaitable[object]] | None = None
    ) -> AbstractAsyncContextManager[WorldWriting]:
        """One transaction for reading the world, committing events based on it, and related writes.

        Args:
            amount: Approximate number of events, for the deadline.
            first: Runs before the world is locked, and may create the campaign.

        Raises:
            NotFound: There is no such campaign.
        """
        return self._writing(campaign, deadline_ms=commit_deadline_ms(amount), first=first)

    async def now(self, campaign: CampaignId) -> WorldState:
        """The current world in the tables, without ended facts; empty for a campaign that is not stored."""
        return (await self.read(campaign)).state

    async def read(self, campaign: CampaignId) -> WorldRead:
        # All from one snapshot.
        async with world_transaction(
            self._database, campaign, deadline_ms=_REPLAY_DEADLINE_MS, isolation="repeatable_read"
        ) as world:
            about = await world.connection.fetchrow(load_queries("world/event_log")["campaign"], campaign)
            if about is None:
                return WorldRead(WorldState(), None)
            read = await read_world(world.log, world.tables)
        also = {EntityId(npc["entity"]): (npc["name"], *npc["aliases"]) for npc in about["npcs"] or ()}
        return replace(read, language=about["language"], also_called=also)

    async def undo(self, campaign: CampaignId, seqs: Sequence[int], cause: Cause) -> list[WorldEvent]:
        if not seqs:
            return []
        async with self._writing(campaign, deadline_ms=_TAKE_BACK_DEADLINE_MS) as world:
            head, undoing = await world.log.head(), await world.log.undoing()
            events: list[WorldEvent] = []
            for seq in seqs:
                if not 1 <= seq <= head:
                    raise NotFound(f"there is no event {seq} in campaign {campaign!r}: its last is {head}")
                if seq in dropped([*undoing, *events]):
                    raise NotFound(f"event {seq} of campaign {campaign!r} is already undone")
                events.append(WorldEvent(head + 1 + len(events), cause, Undone(seq)))
            return (await _take_back(world, [Undone(seq) for seq in seqs], cause))[0]

    async def rollback(self, campaign: CampaignId, session: SessionId, ordinal: int, cause: Cause) -> WorldEvent | None:
        async with self._writing(campaign, deadline_ms=_TAKE_BACK_DEADLINE_MS) as world:
            sessions = await world.talk.session_and_later(session)
            if not sessions:
                raise NotFound(f"there is no session {session!r} in campaign {campaign!r}")
            undoing = await world.log.undoing()
            learned = await world.talk.learned_behind(session, ordinal, sessions[1:])
            left = set(learned) - dropped(undoing)
            said = await world.talk.behind(session, ordinal, sessions[1:])
            if not left and not any(part.n_heard for part in said):
                return None
            rollback = RolledBack(session, ordinal, _standing(learned, undoing))
            return (await _take_back(world, [rollback], cause, [said]))[0][0]

    async def retract(self, campaign: CampaignId, utterance: UtteranceId, cause: Cause) -> WorldEvent:
        async with self._writing(campaign, deadline_ms=_TAKE_BACK_DEADLINE_MS) as world:
            undoing = await world.log.undoing()
            of_players = {each.seq for each in withholdings_in_effect(undoing).values()}
            said = await world.talk.spoken(utterance, retractions=retractions_in_effect(undoing) - of_players)
            left = _standing(await world.talk.learned_from(said), undoing)
            event = UtteranceRetracted(utterance, said.session, said.ordinal, left)
            line = TalkRange(said.session, said.ordinal - 1, said.ordinal, 1)
            return (await _take_back(world, [event], cause, [[line]]))[0][0]

    async def consent(self, campaign: CampaignId, change: ConsentChange, cause: Cause) -> list[WorldEvent]:
        async with self._writing(campaign, deadline_ms=_TAKE_BACK_DEADLINE_MS) as world:
            return await _consent(world, change, cause)

    async def correct(
        self, campaign: CampaignId, utterance: UtteranceId, text: str, cause: Cause, *, by: SpokenBy | None = None
    ) -> WorldEvent:
        async with self._writing(campaign, deadline_ms=_TAKE_BACK_DEADLINE_MS) as world:
            undoing = await world.log.undoing()
            said = await world.talk.spoken(utterance, retractions=retractions_in_effect(undoing))
            if by is not None and said.is_of_npc:
                raise InvalidInput(f"{said.speaker.name}, an NPC, spoke utterance {utterance!r}, and no player did")
            by = None if by == said.speaker else by
            if said.text == text and by is None:
                raise InvalidInput(f"utterance {utterance!r} already has the text {text!r}")
            was_by = None if by is None else said.speaker
            left = _standing(await world.talk.learned_from(said), undoing)
            event = UtteranceCorrected(utterance, said.session, said.ordinal, said.text, text, left, was_by, by)
            return (await _take_back(world, [event], cause))[0][0]

    async def events(
        self, campaign: CampaignId, *, after: int = 0, limit: int = 1_000, latest_first: bool = False
    ) -> list[WorldEvent]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            log = WorldLog(connection, campaign)
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
            raise InvalidInput("give only one of a time, a session or an event")
        async with world_transaction(self._database, campaign, deadline_ms=_REPLAY_DEADLINE_MS) as world:
            await world.require_campaign()
            head = await world.log.head()
            if seq is not None and not 0 <= seq <= head:
                raise NotFound(f"there is no event {seq} in campaign {campaign!r}: its last is {head}")
            if session is not None:
                at_ms = await world.talk.end_of(session)
                if at_ms is None:
                    raise NotFound(f"there is no session {session!r} in campaign {campaign!r}")
            with gc_paused(amount=head):
                return await world.log.state_at(head if seq is None else seq, at_ms=at_ms)

    async def fork(self, campaign: CampaignId, into: CampaignId, *, name: str) -> None:
        """Copy a campaign with its past: transcript, chunks, events and projections. The two are then independent.

        Raises:
            InvalidInput: A campaign with the id `into` exists.
            NotFound: There is no campaign to fork.
        """
        # Copied table by table, from one snapshot.
        async with world_transaction(
            self._database, campaign, deadline_ms=_FORK_DEADLINE_MS, isolation="repeatable_read"
        ) as world:
            await world.require_campaign()
            connection, sql = world.connection, load_queries("world/commits")
            if not into:
                raise InvalidInput("the new campaign needs an id")
            if await connection.fetchval(sql["new_campaign"], campaign, into, name) is None:
                raise InvalidInput(f"a campaign {into!r} already exists: choose another id")
            for table in COPIED:
                await connection.execute(sql["copy_rows"], table, campaign, into)
            await connection.execute(sql["fork_document"], into, name)

    @asynccontextmanager
    async def _writing(
        self, campaign: CampaignId, *, deadline_ms: int, first: Callable[[Connection], Awaitable[object]] | None = None
    ) -> AsyncIterator[WorldWriting]:
        """Locks the world against other writers, and holds it in memory for the next one once it is committed."""
        async with world_transaction(self._database, campaign, deadline_ms=deadline_ms) as transaction:
            world = WorldWriting.of(transaction.connection, campaign)
            if first is not None:
                await first(world.connection)
            await world.lock_campaign()
            world.accept_at, world.held = self.accept_at, self._held.pop(campaign, None)
            yield world
        if world.held is not None:
            self._held[campaign] = world.held
            while len(self._held) > _MOST_HELD:
                del self._held[next(iter(self._held))]
        await analyze_if_grown(self._database, world.recorded)


async def _consent(world: WorldTransaction, change: ConsentChange, cause: Cause) -> list[WorldEvent]:
    undoing, spoken = await world.log.undoing(), cause.utterance_id
    if spoken is not None and any(each.cause.by == "player" and each.cause.utterance_id == spoken for each in undoing):
        return []
    withheld = withholdings_in_effect(undoing)
    is_last = not change.utterances and change.session is None
    lines = await world.talk.own_lines(change.speaker, list(withheld) if is_last else change.utterances, change.session)
    decided: list[UtteranceWithheld | Undone] = []
    if change.state == "withheld":
        new = [line for line in lines if line.utterance not in withheld]
        decided += (
            UtteranceWithheld(
                line.utterance, line.range.session, line.range.after_ordinal + 1, _standing(line.learned, undoing)
            )
            for line in new
        )
    else:
        new = []
        back = [withheld[line.utterance] for line in lines if line.utterance in withheld]
        if is_last:
            back = [each for each in back if each.cause.session_id in (None, cause.session_id)]
            back = [each for each in back if each.cause.at_ms <= cause.at_ms]
            last = max((each.seq for each in back), default=0)
            back = [each for each in back if any(each.cause == one.cause for one in back if one.seq == last)]
        decided += (Undone(each.seq) for each in back)
    if not decided:
        return []
    events, changed = await _take_back(world, decided, cause, [[line.range] for line in new])
    await world.talk.read_others([seq for line in new for seq in line.learned])
    if change.state == "given":
        await world.talk.read_restored(changed)
    return events


def _standing(learned: Sequence[int], undoing: Sequence[WorldEvent]) -> tuple[int, ...]:
    """These events, unless undone one by one. Those that another retraction dropped stay dropped if that is undone."""
    return tuple(sorted(set(learned) - dropped([each for each in undoing if isinstance(each.event, Undone)])))


async def _take_back(
    world: WorldTransaction,
    events: Sequence[RolledBack | Undone | UtteranceCorrected | UtteranceRetracted],
    cause: Cause,
    ranges: Sequence[Sequence[TalkRange]] = (),
) -> tuple[list[WorldEvent], list[UtteranceId]]:
    """Append undoing events, and apply them to the tables and the transcript.

    They may drop anything, so the tables are compared with a replay of the log.

    Args:
        ranges: The utterances that each event retracts.

    Returns: The events as recorded, and the utterances that changed.
    """
    before = await world.log.undoing()
    recorded = await world.log.add(events, cause)
    after = [*before, *recorded]
    await world.log.names_changed(dropped(before) ^ dropped(after))
    await world.replay(recorded[-1])
    for event, retracted in zip(recorded, ranges, strict=False):
        await world.talk.retract(event.seq, retracted)
    return recorded, await world.talk.settle(before=before, after=after)
