"""Long-term memory of a table: opened if reachable, reconnected in the background, never waited for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from loguru import logger

from glyphoxa.actors.clock import now_ms
from glyphoxa.actors.supervisor import Supervisor
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.log import PostgresTranscriptLog
from glyphoxa.app.background import chronicle_log, timeline_writer
from glyphoxa.app.models import LocalModels, open_embedder
from glyphoxa.chronicle.consent_requests import SpokenRequests
from glyphoxa.chronicle.ports import said_in
from glyphoxa.config.settings import Settings
from glyphoxa.dm.campaign_diff import CampaignChanges
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import Corrupt, GlyphoxaError, InvalidInput, Unavailable
from glyphoxa.domain.events import Degraded, MemoryChanged, MemoryHealth, Trouble
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.domain.knowledge import RecalledSummary
from glyphoxa.npc.session import EarlierTalk
from glyphoxa.npc.table_state import Covered, TableState
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.delivery import MemoryWatch
from glyphoxa.transcript.journal import Journal, SessionMark
from glyphoxa.transcript.ports import TranscriptLog
from glyphoxa.transcript.spool import Spool
from glyphoxa.world.graph import TalkAround

OPEN_MS = 30_000
"""Time for the database before a table opens without it. Opening continues, and memory joins later."""
PING_MS = 1_000
FLUSH_MS = 5_000
"""Time for the database at the end of a session. The next session sends the rest."""


def database_of(settings: Settings, embedder: Embedder | None, *, any_model: bool = False) -> Database:
    """Return the configured database, which is not connected.

    Args:
        any_model: It may hold the vectors of another model.

    Raises:
        InvalidInput: The embedder has other dimensions than the settings.
    """
    memory = settings.memory
    if embedder is not None and embedder.dimensions != memory.embedding_dimensions:
        raise InvalidInput(
            f"memory.embedding_dimensions is {memory.embedding_dimensions}, but the model {embedder.name} has "
            f"{embedder.dimensions}"
        )
    server: str | EmbeddedPostgres | None = memory.postgres_dsn
    return Database(
        EmbeddedPostgres(settings.data_directory / "postgres") if server is None else server,
        embedding_dimensions=memory.embedding_dimensions,
        embedding_model=None if embedder is None else embedder.name,
        any_model=any_model,
    )


async def open_store_for(settings: Settings, local: LocalModels, stack: AsyncExitStack) -> Store | None:
    """Create the store without connecting. None if the settings disable long-term memory.

    Raises:
        InvalidInput: See `open_embedder`; or the database has vectors of other dimensions.
    """
    if not settings.has_memory:
        return None
    embedder = await open_embedder(settings, local, stack)
    database, auto_accept = database_of(settings, embedder), settings.memory.auto_accept
    return await stack.enter_async_context(open_store(database, embedder=embedder, auto_accept=auto_accept))


SUMMARISE_MS = 5_000
"""Time limit at the end of a session. `glyphoxa worker summarise` does the rest."""
SAID_BEFORE = 80
"""Utterances restored from a continued session; as many as a page shows to a late player."""


class TableMemory:
    """The memory of a table. Create it inside a running event loop.

    Protocol of use: `open`, `start`; at the end `flush`, then `close`. Read from `store`, write through `journal`.

    Args:
        store: None without long-term memory. Utterances are then stored on disk only.
        spool: Directory for utterances, used by this table only.
        mark: Notes where the session is left.
        learns: Whether what was said becomes knowledge.

    Attributes:
        around: Search for talk around an entity; None without long-term memory.
    """

    def __init__(
        self,
        store: Store | None,
        state: TableState,
        spool: Path,
        *,
        mark: SessionMark | None = None,
        learns: bool = False,
    ) -> None:
        self.store = store
        self._campaign = campaign = state.campaign
        self._session = state.session
        self._mark = mark
        self._learns = learns
        self._tell = state.events.tell
        self._loop = asyncio.get_running_loop()
        self._storing = asyncio.Lock()
        self._is_stored = False
        self._watch = MemoryWatch(ping=self._ping, make_good=self._recover, changed=self._has_changed, now_ms=now_ms)
        log: TranscriptLog | None = None
        self.around: TalkAround | None = None
        if store is not None:
            log = TableLog(store, self.store_campaign)
            for held in (store.world_memory(campaign.id), store.past_talk.transcript(campaign.id)):
                held.reading.guarded = self._watch.guarded
            self.around = self._watch.guarded(store.around)
        self.journal = Journal(
            Spool(spool, alarm=self._on_spool),
            log,
            tell=self._tell,
            listener=self._on_journal,
        )

    @property
    def health(self) -> MemoryHealth:
        if self.store is None:
            return MemoryHealth("off")
        waiting = self.journal.delivery.n_waiting
        if self._watch.since_ms is None:
            return MemoryHealth("ok", waiting=waiting)
        return MemoryHealth("degraded", self._watch.since_ms, self._watch.why, waiting)

    async def open(self) -> None:
        """Connect and store the campaign. The table opens even if the database is unreachable."""
        if self.store is None:
            return
        try:
            await self.store_campaign()
            await self._read(self.store)
        except GlyphoxaError as error:
            self._watch.lost(str(error))

    def start(self, supervisor: Supervisor) -> None:
        supervisor.start("delivery", self.journal.delivery.run)
        if self.store is not None:
            supervisor.start("memory", self._watch.run)

    async def store_campaign(self) -> None:
        """Update the stored campaign from the file, once for each opening of the table.

        Raises:
            Unavailable: The database cannot be used now, for whatever reason.
            InvalidInput: The database rejects the campaign.
        """
        if self.store is None:
            return
        async with self._storing:
            if self._is_stored:
                return
            try:
                await self.store.database.open(deadline_ms=OPEN_MS)
            except GlyphoxaError as error:
                raise Unavailable(str(error)) from None
            done = await self.store.campaigns.load(self._campaign)
            await self.store.times.begin(self._campaign.id, self._session)
            self._is_stored = True
        _log_changes(self._campaign, done)

    async def _read(self, store: Store) -> None:
        """Read the campaign into memory. A failure does not block writing: the next question reads again."""
        try:
            await store.read(self._campaign.id)
        except GlyphoxaError as error:
            logger.debug("{} is not in memory yet: {}", self._campaign.id, error)
        except Exception as error:
            logger.opt(exception=error).error("{} could not be loaded into memory", self._campaign.id)

    async def said_before(self) -> EarlierTalk:
        """Return what was said in the session before a restart."""
        campaign, session = self._campaign.id, self._session
        if self.store is None:
            said = await _remembered(await self.journal.on_disk(campaign, session, limit=SAID_BEFORE))
            return EarlierTalk(said, said)
        if not self._watch.is_away:
            # Utterances in the log that the disk does not have may have been rolled back there.
            await self.journal.delivery.send(FLUSH_MS)
        unsent = await _remembered(await self.journal.unsent(campaign, session))
        try:
            logged = await self.store.log.recent(campaign, session, since_ms=0, limit=SAID_BEFORE)
            states = await self.store.states(campaign, session).all()
            after = min((state.last_ordinal for state in states.values()), default=0)
            numbered = await said_in(chronicle_log(self.store), campaign, session, after=after)
        except GlyphoxaError as error:
            logger.debug("earlier utterances could not be read: {}", error)
            on_disk = await _remembered(await self.journal.on_disk(campaign, session, limit=SAID_BEFORE))
            return EarlierTalk(_in_order(unsent), [_as_heard(one) for one in _in_order(on_disk)])
        ordinals = {each.utterance.id: each.ordinal for each in numbered}
        earlier = [each for each in logged if each.id not in ordinals]
        later = [each for each in unsent if each.id not in ordinals]
        # In the order of the log, in which summaries cover it.
        remembered = [*earlier, *(each.utterance for each in numbered), *later]
        ordinals |= dict.fromkeys((each.id for each in earlier), 0)
        return EarlierTalk(remembered, _in_order([*unsent, *logged]), Covered(states, ordinals))

    async def kept(self) -> int:
        """See `glyphoxa.npc.table_interface.Table.kept`."""
        await self.flush()
        if self.store is not None:
            try:
                return await self.store.log.count(self._campaign.id, self._session)
            except GlyphoxaError as error:
                logger.warning("utterances in the log could not be counted: {}", error)
        return len(self.journal.recent.of(self._session, limit=sys.maxsize))

    async def flush(self) -> bool:
        """Send pending utterances. False if the database did not accept all in time."""
        return await self.journal.delivery.flush(FLUSH_MS)

    async def finish(self) -> bool:
        """End a session: note its end, send pending utterances, then write the NPCs' summaries.

        Returns the result of `flush`.
        """
        if self._mark is not None:
            await self._mark.closed()
        is_all_sent = await self.flush()
        if self.store is not None and is_all_sent:
            try:
                async with asyncio.timeout(SUMMARISE_MS / 1000):
                    await self.journal.delivery.send_missing()
                    if self._learns:
                        await (await timeline_writer(self.store, self._campaign.id)).sum_up(self._session)
                        await self.store.atoms.consolidate(self._campaign.id, least=1)
            except (GlyphoxaError, TimeoutError) as error:
                logger.warning("the session was not checked and summarised: {}; run glyphoxa worker summarise", error)
        return is_all_sent

    async def close(self) -> None:
        await self.journal.close()

    async def _ping(self) -> None:
        if self.store is not None:
            await self.store.database.ping(deadline_ms=PING_MS)

    async def _recover(self) -> None:
        await self.store_campaign()
        if self.store is not None:
            await self._read(self.store)
        if self.journal.delivery.is_degraded:
            await self.flush()
        if self.journal.delivery.is_degraded:  # a mere backlog would have cleared this
            refuses = "the disk rejects writes" if self.journal.delivery.disk_fails else "it rejects writes"
            raise Unavailable(f"the database is reachable, but {refuses}")
        if self._watch.since_ms is not None:
            # What answers now may be a replica that was promoted, or a backup, without what was sent last.
            await self.journal.delivery.send_missing()

    def _on_journal(self, what: str) -> None:
        logger.debug("{}", what)  # the watch tells the table once
        self._watch.suspect()
        self._watch.hope()

    def _on_spool(self, what: str) -> None:
        """Report a problem of the spool. Called in the thread that writes it."""
        logger.warning("{}", what)
        self._loop.call_soon_threadsafe(self._tell, Degraded(what, now_ms(), Trouble.DISK))
        self._loop.call_soon_threadsafe(self._watch.suspect)

    def _has_changed(self) -> None:
        health = self.health
        if health.state == "ok":
            logger.info("long-term memory is available again; {} utterances are being sent", health.waiting)
        else:
            logger.warning("{}", _outage_message(health.why, disk_fails=self.journal.delivery.disk_fails))
        self._tell(MemoryChanged(health, now_ms()))


@dataclass(frozen=True, slots=True)
class StoredSessions:
    """Implements `glyphoxa.prompt.scene.EarlierSessions`.

    Attributes:
        session: The present one.
    """

    store: Store
    campaign: CampaignId
    session: SessionId

    def summaries(self, npc: NpcId) -> Iterator[RecalledSummary]:
        return self.store.earlier_sessions(self.campaign, npc)

    async def threads(self, npc: NpcId) -> list[RecalledSummary]:
        found = await self.store.atoms.open_threads(self.campaign, npc=npc)
        return [RecalledSummary(one.session, one.summary, one.at_ms) for one in found if one.session != self.session]

    async def arc(self, npc: NpcId) -> list[RecalledSummary]:
        return await self.store.episodes.arc(self.campaign, npc, but=self.session)


async def _remembered(said: Sequence[Utterance]) -> list[Utterance]:
    """Return utterances about which the database has not decided, without those that players asked to forget."""
    requests = SpokenRequests()
    for each in said:
        await asyncio.to_thread(requests.take, each)
    withheld = {each.id for each in requests.withheld()}
    return [each for each in said if each.id not in withheld]


def _in_order(said: Sequence[Utterance]) -> list[Utterance]:
    """Return each utterance once, in its latest version."""
    by_id = {utterance.id: utterance for utterance in said}
    return sorted(by_id.values(), key=lambda utterance: utterance.at_ms)[-SAID_BEFORE:]


def _as_heard(said: Utterance) -> Utterance:
    """Replace an NPC's intended text by what was heard, for players."""
    return said if said.npc_id is not None else replace(said, text=said.raw_text, corrections=())


def _outage_message(why: str, *, disk_fails: bool) -> str:
    if disk_fails:
        return f"the disk rejects writes, so utterances go to the database only; the table plays on: {why}"
    return f"long-term memory is unavailable; the table plays on, and utterances are stored on disk: {why}"


def _log_changes(campaign: Campaign, done: CampaignChanges) -> None:
    """Log the changes without the facts' content, because players may see the log."""
    if not done.is_empty:
        logger.info(
            "campaign {}: {} added, {} changed, {} removed",
            campaign.id,
            len(done.added),
            len(done.changed),
            len(done.removed),
        )
    for remark in done.discreet_remarks:
        logger.info("campaign {}: {}", campaign.id, remark)


class TableLog(PostgresTranscriptLog):
    """Stores the campaign before any utterance, and applies requests to forget right after the utterance.

    The campaign's language decides which words index the utterances. A request that cannot be applied now makes the
    append fail, so that it is sent again, by this table or by the next process that sends from this spool.

    Args:
        store_campaign: Stores the campaign, if that is not done; None: it is stored.
    """

    def __init__(self, store: Store, store_campaign: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__(store.database)
        self._store_campaign = store_campaign
        self._decide = chronicle_log(store).decide

    async def append(self, utterances: Sequence[Utterance]) -> None:
        try:
            if self._store_campaign is not None:
                await self._store_campaign()
        except InvalidInput as error:
            logger.debug("utterances are stored without their campaign: {}", error)  # the watch reports the reason
        await super().append(utterances)
        for each in utterances:
            try:
                await self._decide(each.campaign_id, each.session_id, [each])
            except (InvalidInput, Corrupt) as error:
                logger.warning("a request to forget in session {} cannot be applied: {}", each.session_id, error)
